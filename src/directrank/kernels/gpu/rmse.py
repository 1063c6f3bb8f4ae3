"""The root of the mean squared error on a GPU: a program computes a list, in two passes."""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

from directrank.kernels.gpu.lists import DeviceLists, are_real, bounds
from directrank.kernels.gpu.pairs import sigmoid
from directrank.lists.flat import Lists

#: Documents that a program reads at a time.
BLOCK = tl.constexpr(256)


def rmse(
    scores: Tensor,
    labels: Tensor,
    mask: Lists | None,
    *,
    levels: float | None,
    document_weights: Tensor | None,
) -> Tensor:
    """See :func:`directrank.losses.rmse`."""
    lists = DeviceLists(scores, labels, mask)
    weights = document_weights
    if weights is not None:
        weights = weights.detach().to(lists.scores).contiguous()
    value = lists.per_list()
    gradient = lists.per_document() if lists.gradient_needed else None
    lists.run(_rmse, 1, lists.scores, lists.labels, weights,
              1.0 if levels is None else float(levels), value, gradient,
              SQUASHED=levels is not None)  # fmt: skip
    return lists.loss(value, gradient)


@triton.jit
def _rmse(
    spans, mask, L, scores, labels, weights, levels: tl.float64, value, gradient,
    SQUASHED: tl.constexpr,
):  # fmt: skip
    """The loss, ``[B]``, and its gradient, ``[N]``: 0 at a perfect fit."""
    begin, n, places = bounds(spans, mask, L)
    dtype = scores.dtype.element_ty
    largest = tl.full((), levels, dtype)
    squares, total = tl.full((), 0.0, dtype), tl.full((), 0.0, dtype)
    for first in range(0, n, BLOCK):
        i = first + tl.arange(0, BLOCK)
        real = are_real(mask, begin, i, n)
        error, weight, _ = _error(scores, labels, weights, begin + i, real, largest, SQUASHED)
        squares += tl.sum(weight * error * error, 0)
        total += tl.sum(weight, 0)
    divisor = tl.where(total > 0, total, 1.0)
    loss = tl.sqrt(squares / divisor)
    tl.store(value + tl.program_id(0), loss)
    if gradient is not None:
        scale = tl.where(loss > 0, 1.0 / (tl.where(loss > 0, loss, 1.0) * divisor), loss)
        for first in range(0, places, BLOCK):
            i = first + tl.arange(0, BLOCK)
            real = are_real(mask, begin, i, n)
            error, weight, slope = _error(
                scores, labels, weights, begin + i, real, largest, SQUASHED
            )
            push = scale * (weight * error * slope)
            tl.store(gradient + begin + i, tl.where(real, push, 0.0), mask=i < places)


@triton.jit
def _error(scores, labels, weights, places, real, levels, SQUASHED: tl.constexpr):
    """Error and weight, 0 where there is no document, and the derivative of the error."""
    s = tl.load(scores + places, mask=real, other=0.0)
    y = tl.load(labels + places, mask=real, other=0.0)
    output, slope = s, tl.full(s.shape, 1.0, s.dtype)
    if SQUASHED:
        share = sigmoid(s)
        output, slope = levels * share, levels * share * (1.0 - share)
    weight = real.to(s.dtype)
    if weights is not None:
        weight = tl.load(weights + places, mask=real, other=0.0)
    return tl.where(real, output - y, 0.0), weight, slope
