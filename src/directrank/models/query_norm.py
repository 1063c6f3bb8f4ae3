"""Normalisation of a layer's output with the statistics of each query alone (Yu2020).

The released code of Yu2020 trains on one query per step and batch-normalises with the statistics of
that query, at test time as well. Here each query of a batch has its own statistics, so that the
scores of a query do not depend on what else is in the batch.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from directrank.kernels.dispatch import find
from directrank.lists.devices import on_device
from directrank.lists.flat import DeviceFlat
from directrank.lists.gradient import once_differentiable


@dataclass(frozen=True)
class Segments:
    """Which rows of the flattened documents ``[M * N]`` of a stack belong together.

    Padding behind a model's documents is a segment of its own.

    Attributes:
        of_row: int64 ``[M * N]``, the segment of each row.
        sizes: int64 ``[S]``, rows per segment.
    """

    of_row: Tensor
    sizes: Tensor

    @classmethod
    def of(cls, lengths: np.ndarray, models: int, width: int, device: torch.device) -> Segments:
        """The queries of every model's batch.

        Args:
            lengths: int ``[M, B]``, or ``[1, B]`` where all models see the same documents.
            models: M.
            width: N, rows per model.
            device: where the documents are.

        Raises:
            ValueError: more documents than rows.
        """
        padding = width - documents_of(lengths, width)[:, None]
        per_model = np.concatenate([lengths, padding], axis=1)
        per_model = np.broadcast_to(per_model, (models, per_model.shape[1]))
        sizes = per_model[per_model > 0]
        of_row = np.repeat(np.arange(len(sizes)), sizes)
        return cls(on_device(of_row, device), on_device(sizes, device))

    def means(self, x: Tensor) -> Tensor:
        """The mean of each segment's rows; ``[M * N, W]`` to ``[S, W]``."""
        if x.is_cuda:  # adding by index is not deterministic there
            # Unsafe is not to check the lengths, for which the program would wait for the GPU.
            sums = torch.segment_reduce(x, "sum", lengths=self.sizes, axis=0, unsafe=True)
        else:
            sums = x.new_zeros(len(self.sizes), x.shape[1]).index_add_(0, self.of_row, x)
        return sums / self.sizes[:, None].to(x.dtype)

    def spread(self, values: Tensor) -> Tensor:
        """Each segment's values at each of its rows; ``[S, W]`` to ``[M * N, W]``."""
        return values.index_select(0, self.of_row)


def documents_of(lengths: np.ndarray, width: int) -> np.ndarray:
    """The documents of each model's queries, int ``[M]``, from ``lengths`` ``[M, B]``.

    Raises:
        ValueError: more documents than ``width``, the rows per model.
    """
    documents: np.ndarray = lengths.sum(1)
    if documents.max() > width:
        raise ValueError(f"the queries have more documents than the {width} rows given")
    return documents


class QueryNorm(nn.Module):
    """``(x - mean) / sqrt(variance + epsilon) * weight + bias`` with the statistics of each query.

    The variance is the population's, in training and in scoring.

    Args:
        models: M.
        width: number of features W.
        epsilon: added to the variance.
    """

    def __init__(self, models: int, width: int, epsilon: float) -> None:
        super().__init__()
        self.epsilon = epsilon
        self.weight = nn.Parameter(torch.ones(models, 1, width))
        self.bias = nn.Parameter(torch.zeros(models, 1, width))

    def forward(self, x: Tensor, segments: Segments | DeviceFlat) -> Tensor:
        """``x`` ``[M, N, W]``, normalised query by query.

        ``segments`` are its queries, or the lists of a captured step.
        """
        if isinstance(segments, DeviceFlat):
            kernel = find(QueryNorm, x)
            assert kernel is not None  # steps are captured only where it exists
            normalised: Tensor = kernel(x, self.weight, self.bias, segments, self.epsilon)
            return normalised
        if len(segments.sizes) == 1 and x.shape[1] > 1:
            # One query: PyTorch's own layer is faster, but refuses a single document.
            return torch.nn.functional.batch_norm(
                x[0],
                None,
                None,
                self.weight.view(-1),
                self.bias.view(-1),
                training=True,
                eps=self.epsilon,
            )[None]
        standard = _Standardised.apply(x.reshape(-1, x.shape[2]), segments, self.epsilon)
        return torch.addcmul(self.bias, standard.view(x.shape), self.weight)


class _Standardised(torch.autograd.Function):
    """``(x - mean) / sqrt(variance + epsilon)`` of each segment's rows of ``x`` ``[M * N, W]``."""

    @staticmethod
    def forward(ctx, x: Tensor, segments: Segments, epsilon: float) -> Tensor:
        centred = x - segments.spread(segments.means(x))
        variance = segments.means(centred.square())
        scale = segments.spread(torch.rsqrt(variance + epsilon))
        standard = centred.mul_(scale)
        ctx.save_for_backward(standard, scale)
        ctx.segments = segments
        return standard

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient: Tensor) -> tuple[Tensor, None, None]:
        standard, scale = ctx.saved_tensors
        segments = ctx.segments
        mean = segments.spread(segments.means(gradient))
        along = segments.spread(segments.means(gradient * standard))
        return (gradient - mean - standard * along).mul_(scale), None, None
