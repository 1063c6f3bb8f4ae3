"""Layers that compiled loops compute on a CPU: when they can be used, scores and gradients."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from directrank.kernels.batch import array
from directrank.kernels.dispatch import find
from directrank.kernels.philox import Dropping, dropping
from directrank.kernels.threads import blas_on_one_thread, over_lists
from directrank.lists.documents import Documents, copied
from directrank.lists.gradient import once_differentiable
from directrank.models.dropout import Dropout


class CompiledLayers(ABC):
    """Layers that compiled loops can compute together.

    The lists of a model are divided into chunks, each of which has its own gradient of the
    parameters.

    Args:
        modules: the layers, in the order in which kernels take their parameters.
        narrow: whether they are narrow enough; PyTorch divides products of wide layers among
            threads.
    """

    def __init__(self, modules: Sequence[nn.Module], narrow: bool) -> None:
        self.narrow = narrow
        self.parameters = [parameter for module in modules for parameter in module.parameters()]
        counts = [parameter[0].numel() for parameter in self.parameters]
        #: int64 ``[parameters, 2]``, see :func:`directrank.kernels.layers.sum_of_chunks`.
        self.sizes = np.stack([np.cumsum([0, *counts])[:-1], counts], 1)

    def __call__(
        self, x: Tensor | Documents, lengths: np.ndarray, dropout: Dropout | None
    ) -> Tensor:
        """Scores ``[M, N]`` before an activation that the loops do not contain.

        Arguments and errors are those of :meth:`begin`.
        """
        return _Scores.apply(self.begin(x, lengths, dropout), *self.parameters)

    @abstractmethod
    def begin(
        self, x: Tensor | Documents, lengths: np.ndarray, dropout: Dropout | None
    ) -> CompiledPass:
        """A pass over documents, which allots room for a gradient if PyTorch records one.

        Args:
            x: ``[M, N, F]`` or ``[1, N, F]``, packed documents of whole lists, in their order.
            lengths: int ``[M, B]`` or ``[1, B]``, documents per list.
            dropout: None for no dropout.

        Raises:
            ValueError: more documents than rows.
        """

    @property
    def available(self) -> bool:
        """Whether loops can compute these layers where their parameters are."""
        weight = self.parameters[0]
        return (
            self.narrow
            and find(type(self), weight) is not None
            and weight.dtype in (torch.float32, torch.float64)
        )

    def accept(self, x: Tensor | Documents) -> bool:
        """Whether loops can compute the scores of these documents."""
        return (
            self.available
            and x.dtype == self.parameters[0].dtype
            and (isinstance(x, Documents) or not x.requires_grad)
            and not torch.is_autocast_enabled("cpu")
        )


def dropping_of(dropout: Dropout | None, draws: int, room: int) -> Dropping:
    """The dropout of a pass, as kernels take it, with ``draws`` draws and ``room`` for their bits.

    Without dropout the room is filled with zeros.
    """
    if dropout is None:
        return dropping(None, draws, 0, 1.0, room)
    return dropping(dropout.counters, draws, dropout.dropped, dropout.scale, room)


def unchanged(scores: Tensor) -> Tensor:
    """The scores themselves."""
    return scores


@dataclass(frozen=True)
class CompiledPass:
    """A pass of a stack of models over the documents of a batch.

    Attributes:
        kernels: a module with ``forward(begin, end, arrays)`` and ``backward(begin, end, arrays,
            of_chunks)``, as :mod:`directrank.kernels.query_layers` has them.
        arrays: with attributes ``chunks``, ``first``, ``parameters`` and ``y``, see
            :class:`directrank.kernels.query_layers.Arrays`.
        sizes: int64 ``[parameters, 2]``, see :func:`directrank.kernels.layers.sum_of_chunks`.
        work: for :func:`directrank.kernels.threads.over_lists`.
        complete: whether each chunk gives a gradient of each parameter, and each model has a chunk.
        activation: of the scores, after the loops.
    """

    kernels: ModuleType
    arrays: Any
    sizes: np.ndarray
    work: int
    complete: bool
    activation: Callable[[Tensor], Tensor] = unchanged

    def scores(self) -> Tensor:
        """The scores ``[M, N]`` before the activation, without a graph for autograd."""
        with blas_on_one_thread():
            over_lists(self.kernels.forward, self.work, len(self.arrays.chunks), self.arrays)
        return torch.from_numpy(self.arrays.y)

    def gradient(self, of_scores: Tensor) -> Tensor:
        """The gradients of all parameters, one after the other, from that of the scores."""
        from directrank.kernels.layers import sum_of_chunks

        arrays = self.arrays._replace(y=array(of_scores))
        models, chunks, dtype = len(arrays.y), len(arrays.chunks), arrays.parameters.dtype
        room = np.empty if self.complete else np.zeros
        of_chunks = room(len(arrays.parameters) // models * chunks, dtype)
        with blas_on_one_thread():
            over_lists(self.kernels.backward, self.work, chunks, arrays, of_chunks)
        if chunks == models and self.complete:
            return torch.from_numpy(of_chunks)
        gradients = room(len(arrays.parameters), dtype)
        arguments = self.sizes, arrays.first, of_chunks, gradients
        over_lists(sum_of_chunks, len(of_chunks), len(self.sizes), *arguments)
        return torch.from_numpy(gradients)


class _Scores(torch.autograd.Function):
    """The scores ``[M, N]`` of a :class:`CompiledPass`, and the gradients of its parameters."""

    @staticmethod
    def forward(ctx, passed: CompiledPass, *parameters: Tensor) -> Tensor:
        ctx.passed = passed
        ctx.shapes = [parameter.shape for parameter in parameters]
        return passed.scores()

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient: Tensor) -> tuple[Tensor | None, ...]:
        counts = [shape.numel() for shape in ctx.shapes]
        parts = ctx.passed.gradient(gradient).split(counts)
        return None, *(part.view(shape) for part, shape in zip(parts, ctx.shapes, strict=True))


def table_and_rows(x: Tensor | Documents, models: int) -> tuple[np.ndarray, np.ndarray]:
    """Features, and which rows of them a stack of M ``models`` reads.

    They are ``[1, T, F]`` and int64 ``[M, N]`` if ``x`` are documents of a table of their own type.
    Others are copied here, so that kernels need not be compiled for two types; features are then
    ``[M, N, F]``, or ``[1, N, F]`` for all models, and rows ``[M, 0]``.
    """
    if isinstance(x, Documents) and x.table.dtype == x.dtype:
        return array(x.table)[None], x.rows
    return array(copied(x)), np.empty((models, 0), np.int64)


def lengths_of_models(lengths: np.ndarray, models: int) -> np.ndarray:
    """The lengths of each model's lists, int64 ``[M, B]``, from ``[M, B]`` or ``[1, B]``.

    They are in one layout, so that kernels need not be compiled for several.
    """
    if len(lengths) == models and lengths.flags.carray and lengths.dtype == np.int64:
        return lengths
    return np.broadcast_to(lengths, (models, lengths.shape[1])).copy()


def flattened(values: Sequence[Tensor]) -> np.ndarray:
    """The numbers of parameters in one array, without a copy if they adjoin in memory."""
    first, place = values[0], values[0].storage_offset()
    memory = first.untyped_storage().data_ptr()
    for value in values:
        if value.untyped_storage().data_ptr() != memory or value.storage_offset() != place:
            return np.concatenate([array(value).reshape(-1) for value in values])
        place += value.numel()
    return first.detach().as_strided((place - first.storage_offset(),), (1,)).numpy()
