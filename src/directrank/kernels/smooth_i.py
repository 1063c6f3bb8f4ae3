"""NDCG under SmoothI's rank indicators on a CPU, rank by rank, without storing them."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor

from directrank.kernels.batch import Batch, per_list
from directrank.kernels.compiling import compiled, inlined
from directrank.kernels.ndcg import in_distribution, top_discounts
from directrank.kernels.numbers import exp, largest, like
from directrank.lists.flat import Lists

#: Smaller factors of a document count as 0, because they would become denormal, which is slow.
LEAST = 1e-30


def ndcg(
    scores: Tensor,
    labels: Tensor,
    mask: Lists | None,
    *,
    k: int | None,
    gain: str,
    discount: str,
    alpha: float | Tensor,
    delta: float,
    stop_gradient: bool,
) -> Tensor:
    """Minus NDCG under rank indicators; see :func:`directrank.losses.smooth_ndcg`.

    It is used only if the gradient treats the product of factors as a constant.
    """
    if not stop_gradient:
        return NotImplemented

    def own(batch: Batch, mask: Lists) -> tuple[int, Any]:
        discounts = top_discounts(batch, discount, k)
        work = batch.shape[0] * batch.shape[1] * len(discounts)
        return work, (discounts, per_list(alpha, batch.shape[0]), float(delta))

    return in_distribution(_ndcg, scores, labels, mask, k, gain, discount, own)


@inlined
def _write(scores, lowest, push, n, gradient):
    """The gradient by scores from that by heights above the lowest score, which ties share."""
    together, number = 0.0, 0
    for i in range(n):
        together += push[i]
        number += scores[i] == lowest
    for i in range(n):
        gradient[i] = push[i] - (together / number if scores[i] == lowest else 0.0)


@compiled
def _ndcg(begin, end, starts, lengths, scores, gains, discounts, alpha, delta, value, gradient):
    """``Σ_r D(r) Σ_j I^r_j gains_j`` ``[B]`` and its gradient ``[N]``.

    ``discounts [R]`` are those of the ranks up to the cut-off; ``alpha`` is ``[B]``.
    """
    room = np.empty((4, lengths[begin:end].max() + 1), scores.dtype)
    heights, left, shares, push = room[0], room[1], room[2], room[3]
    one, zero = like(scores.dtype.type(0), 1.0), like(scores.dtype.type(0), 0.0)
    keeps, least = like(one, 1 - delta), like(one, LEAST)
    for b in range(begin, end):
        value[b] = 0
        first, n = starts[b], lengths[b]
        own, g = scores[first : first + n], gains[first : first + n]
        if not np.any(g):
            continue
        lowest, steep = own.min(), like(one, alpha[b])
        for i in range(n):
            heights[i] = steep * (own[i] - lowest)
            left[i] = one
            push[i] = zero
        total = 0.0
        for r in range(min(n, len(discounts))):
            for i in range(n):
                shares[i] = heights[i] * left[i]
            top, sums, met = largest(shares, n), zero, zero
            for i in range(n):
                shares[i] = exp(shares[i] - top)
                sums += shares[i]
                met += shares[i] * g[i]
            met /= sums
            total += discounts[r] * met
            inverse, weight = one / sums, discounts[r] * steep
            for i in range(n):
                share = shares[i] * inverse
                push[i] += weight * share * (g[i] - met) * left[i]
                factor = left[i] * (keeps - share)
                left[i] = factor if abs(factor) > least else zero
        value[b] = total
        _write(own, lowest, push, n, gradient[first : first + n])
