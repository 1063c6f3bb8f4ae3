"""WassRank on a GPU: a program computes all Sinkhorn rounds of a list.

The transport kernel of two documents is computed again each time from their labels.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from directrank.kernels.gpu.lists import DeviceLists, are_real, bounds
from directrank.kernels.gpu.pairs import LOW, with_exponentials
from directrank.lists.flat import Lists

#: Documents in each direction of the pairs that a program computes at a time, and its warps.
BLOCK = tl.constexpr(64)
WARPS = 16


def cost_of_transport(
    scores: Tensor,
    labels: Tensor,
    mask: Lists | None,
    gradient: str,
    lam: float,
    iterations: int,
    gap: float,
    base: float,
    penalty: float,
) -> Tensor:
    """See :func:`directrank.losses._wassrank.cost_of_transport`; only the dual gradient."""
    if gradient != "dual":
        return NotImplemented
    lists = DeviceLists(scores, labels, mask)
    heights = torch.where(lists.labels >= 1, base**lists.labels - 1, -gap)
    log_u, log_v = lists.per_document(), lists.per_document()
    value = lists.per_list()
    by_scores = lists.per_document() if lists.gradient_needed else None
    lists.run(_transport, 1, lists.scores, lists.labels, heights, float(lam), float(penalty),
              iterations, log_u, log_v, value, by_scores, num_warps=WARPS)  # fmt: skip
    return lists.loss(value, by_scores)


@triton.jit
def _transport(
    spans, mask, L, scores, labels, heights, lam: tl.float64, penalty: tl.float64, rounds, log_u,
    log_v, value, gradient,
):  # fmt: skip
    """The cost ``[B]``, the gradient by the dual potential ``[N]``, and the logarithms of both
    scalings ``[N]``."""
    begin, n, places = bounds(spans, mask, L)
    dtype = scores.dtype.element_ty
    strength, near = tl.full((), lam, dtype), tl.full((), penalty, dtype)
    of_scores = _log_sum(mask, scores, begin, n)
    of_labels = _log_sum(mask, labels, begin, n)
    for first in range(0, n, BLOCK):
        i = first + tl.arange(0, BLOCK)
        tl.store(log_u + begin + i, tl.zeros([BLOCK], dtype), mask=i < n)
    # Documents of a program's other threads are read after each barrier.
    tl.debug_barrier()
    for _ in range(rounds):
        _scale(mask, begin, n, heights, strength, near, log_u, labels, of_labels, log_v)
        tl.debug_barrier()
        _scale(mask, begin, n, heights, strength, near, log_v, scores, of_scores, log_u)
        tl.debug_barrier()
    cost, mean = tl.full((), 0.0, dtype), tl.full((), 0.0, dtype)
    for first in range(0, n, BLOCK):
        i = (first + tl.arange(0, BLOCK))[:, None]
        real = are_real(mask, begin, i, n)
        u = tl.load(log_u + begin + i, mask=real, other=LOW)
        s = tl.load(scores + begin + i, mask=real, other=LOW)
        height = tl.load(heights + begin + i, mask=real, other=0.0)
        mean += tl.sum(tl.sum(tl.where(real, tl.exp(s - of_scores) * u, 0.0), 1), 0)
        for start in range(0, n, BLOCK):
            j = (start + tl.arange(0, BLOCK))[None, :]
            other = are_real(mask, begin, j, n)
            v = tl.load(log_v + begin + j, mask=other, other=LOW)
            height_j = tl.load(heights + begin + j, mask=other, other=0.0)
            apart = _distance(height, i, height_j, j, near)
            moved = tl.where(real & other, apart * tl.exp(u + v - apart / strength), 0.0)
            cost += tl.sum(tl.sum(moved, 1), 0)
    tl.store(value + tl.program_id(0), cost)
    if gradient is not None:
        for first in range(0, places, BLOCK):
            i = first + tl.arange(0, BLOCK)
            real = are_real(mask, begin, i, n)
            u = tl.load(log_u + begin + i, mask=real, other=0.0)
            s = tl.load(scores + begin + i, mask=real, other=LOW)
            slope = strength * tl.exp(s - of_scores) * (u - mean)
            tl.store(gradient + begin + i, tl.where(real, slope, 0.0), mask=i < places)


@triton.jit
def _log_sum(mask, values, begin, n):
    """The logarithm of the sum of the exponentials of a list's values."""
    dtype = values.dtype.element_ty
    top, sums = tl.full([1], LOW, dtype), tl.zeros([1], dtype)
    for first in range(0, n, BLOCK):
        i = first + tl.arange(0, BLOCK)
        x = tl.load(values + begin + i, mask=are_real(mask, begin, i, n), other=LOW)
        top, sums = with_exponentials(top, sums, x[None, :])
    return tl.sum(top + tl.log(sums), 0)


@triton.jit
def _scale(mask, begin, n, heights, lam, penalty, log_x, target, normaliser, scaled):
    """``scaled``, the ``target`` distribution over the product of the transport kernel with x, in
    logarithms."""
    dtype = log_x.dtype.element_ty
    for first in range(0, n, BLOCK):
        i = (first + tl.arange(0, BLOCK))[:, None]
        real = are_real(mask, begin, i, n)
        height = tl.load(heights + begin + i, mask=real, other=0.0)
        top, sums = tl.full([BLOCK], LOW, dtype), tl.zeros([BLOCK], dtype)
        for start in range(0, n, BLOCK):
            j = (start + tl.arange(0, BLOCK))[None, :]
            other = are_real(mask, begin, j, n)
            x = tl.load(log_x + begin + j, mask=other, other=LOW)
            height_j = tl.load(heights + begin + j, mask=other, other=0.0)
            apart = _distance(height, i, height_j, j, penalty)
            logs = tl.where(other, x - apart / lam, LOW)
            top, sums = with_exponentials(top, sums, logs)
        x = tl.load(target + begin + i, mask=real, other=0.0) - normaliser
        tl.store(scaled + begin + i, x - (top + tl.log(sums))[:, None], mask=real)


@triton.jit
def _distance(height, i, other, j, penalty):
    """The cost of moving mass between documents."""
    apart = tl.abs(height - other)
    return tl.where(i == j, 0.0, tl.where(apart < 1, penalty, apart))
