"""Normalisation with the statistics of each query, on a CPU, in the order of the formula."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from directrank.kernels.batch import array
from directrank.kernels.compiling import in_order
from directrank.kernels.threads import over_lists


def standardised(x: Tensor, segments: Any, epsilon: float) -> Tensor:
    """See :func:`directrank.models.query_norm.standardised`."""
    if x.dtype not in (torch.float32, torch.float64):
        return NotImplemented
    return _Standardised.apply(x, segments, epsilon)


class _Standardised(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor, segments: Any, epsilon: float) -> Tensor:
        values, lengths = array(x), segments.sizes.numpy()
        lists = lengths.cumsum() - lengths, lengths
        standard = np.empty_like(values)
        scale = np.empty((len(lengths), values.shape[1]), values.dtype)
        over_lists(
            _standardise, values.size, len(lengths), *lists, values, epsilon, standard, scale
        )
        ctx.saved = lists, standard, scale
        return torch.from_numpy(standard)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, gradient: Tensor) -> tuple[Tensor, None, None]:
        lists, standard, scale = ctx.saved
        own, result = array(gradient), np.empty_like(standard)
        over_lists(_gradient, own.size, len(scale), *lists, own, standard, scale, result)
        return torch.from_numpy(result), None, None


@in_order
def _standardise(begin, end, starts, lengths, x, epsilon, standard, scale):
    """Standardise the rows of each list of ``x`` ``[R, W]``; ``scale`` is ``[lists, W]``."""
    width, kind = x.shape[1], x.dtype.type
    mean, variance = np.empty(width, x.dtype), np.empty(width, x.dtype)
    for b in range(begin, end):
        first, last, count = starts[b], starts[b] + lengths[b], kind(lengths[b])
        mean[:] = 0
        variance[:] = 0
        for i in range(first, last):
            for j in range(width):
                mean[j] += x[i, j]
        for j in range(width):
            mean[j] /= count
        for i in range(first, last):
            for j in range(width):
                centred = x[i, j] - mean[j]
                standard[i, j] = centred
                variance[j] += centred * centred
        for j in range(width):
            scale[b, j] = kind(1) / np.sqrt(variance[j] / count + kind(epsilon))
        for i in range(first, last):
            for j in range(width):
                standard[i, j] *= scale[b, j]


@in_order
def _gradient(begin, end, starts, lengths, gradient, standard, scale, result):
    """The gradient with respect to what was standardised; arrays as in :func:`_standardise`."""
    width, kind = gradient.shape[1], gradient.dtype.type
    mean, along = np.empty(width, gradient.dtype), np.empty(width, gradient.dtype)
    for b in range(begin, end):
        first, last, count = starts[b], starts[b] + lengths[b], kind(lengths[b])
        mean[:] = 0
        along[:] = 0
        for i in range(first, last):
            for j in range(width):
                mean[j] += gradient[i, j]
                along[j] += gradient[i, j] * standard[i, j]
        for j in range(width):
            mean[j] /= count
            along[j] /= count
        for i in range(first, last):
            for j in range(width):
                moved = gradient[i, j] - mean[j] - standard[i, j] * along[j]
                result[i, j] = moved * scale[b, j]
