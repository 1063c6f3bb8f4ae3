"""NDCG under SoftSort on a CPU: passes over the sorted list instead of a matrix.

With ``d_p = exp((s_(p) - s_(p-1)) / tau)`` the sum ``Σ_i g_i exp(-|s_(p) - s_i| / tau)`` is
``A_p + B_p - g_p``, where ``A_p = g_p + d_p A_{p-1}`` and ``B_p = g_p + d_{p+1} B_{p+1}``. The
softmax divides it by the same sum of ones.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor

from directrank.kernels.batch import Batch, per_list
from directrank.kernels.compiling import compiled, inlined
from directrank.kernels.ndcg import in_distribution, top_discounts
from directrank.kernels.soft_rank_parts import neighbours
from directrank.kernels.soft_ranks import WORK, sorted_lists
from directrank.lists.flat import Lists


def ndcg(
    scores: Tensor,
    labels: Tensor,
    mask: Lists | None,
    *,
    k: int | None,
    gain: str,
    discount: str,
    tau: float | Tensor,
) -> Tensor:
    """Minus NDCG under SoftSort; see :func:`directrank.losses.soft_sort_ndcg`."""

    def own(batch: Batch, mask: Lists) -> tuple[int, Any]:
        order, taus = sorted_lists(batch, batch.scores, mask), per_list(tau, batch.shape[0])
        return WORK * batch.documents, (order, top_discounts(batch, discount, k), taus)

    return in_distribution(_ndcg, scores, labels, mask, k, gain, discount, own)


@compiled
def _ndcg(begin, end, starts, lengths, scores, gains, order, discounts, tau, value, gradient):
    """``Σ_r D(r) (P gains)_r`` ``[B]`` and its gradient ``[N]``.

    ``order [N]`` counts from each list's first document; ``discounts [R]`` are those of the ranks
    up to the cut-off; ``tau`` is ``[B]``.
    """
    room = np.empty((8, lengths[begin:end].max() + 1))
    values, decays, push = room[0], room[1], room[2]
    ahead, ones_ahead, behind, ones_behind, of_sums = room[3], room[4], room[5], room[6], room[7]
    for b in range(begin, end):
        value[b] = 0
        first, n = starts[b], lengths[b]
        g, place = gains[first : first + n], order[first : first + n]
        if not np.any(g):
            continue
        steepness = 1 / tau[b]
        for i in range(n):
            values[i] = scores[first + i] * steepness
        neighbours(values, place, n, decays)
        total, ones = 0.0, 0.0
        for p in range(n):
            total = g[place[p]] + decays[p] * total
            ones = 1 + decays[p] * ones
            ahead[p], ones_ahead[p], push[p] = total, ones, 0
        decays[n] = total = ones = 0.0
        for p in range(n - 1, -1, -1):
            total = g[place[p]] + decays[p + 1] * total
            ones = 1 + decays[p + 1] * ones
            behind[p], ones_behind[p] = total, ones
        # The derivatives by the sum over gains and, times -1, by that over ones.
        for p in range(n):
            of_sums[p] = 0
            if p < len(discounts):
                ones = ones_ahead[p] + ones_behind[p] - 1
                of_sums[p] = discounts[p] / ones
                values[p] = of_sums[p] * (ahead[p] + behind[p] - g[place[p]])
                value[b] += values[p]
                values[p] /= ones
            else:
                values[p] = 0
        from_sums, from_ones = 0.0, 0.0
        for p in range(n - 1, 0, -1):
            from_sums = of_sums[p] + decays[p + 1] * from_sums
            from_ones = values[p] + decays[p + 1] * from_ones
            slope = decays[p] * (from_sums * ahead[p - 1] - from_ones * ones_ahead[p - 1])
            push[p] += slope
            push[p - 1] -= slope
        from_sums, from_ones = 0.0, 0.0
        for p in range(n - 1):
            from_sums = of_sums[p] + decays[p] * from_sums
            from_ones = values[p] + decays[p] * from_ones
            slope = decays[p + 1] * (from_sums * behind[p + 1] - from_ones * ones_behind[p + 1])
            push[p + 1] += slope
            push[p] -= slope
        _without_ties(scores[first : first + n], g, place, n, of_sums, values, push)
        for p in range(n):
            gradient[first + place[p]] = push[p] * steepness


@inlined
def _without_ties(s, g, place, n, of_sums, of_ones, push):
    """Take from ``push`` what documents with equal scores do to each other.

    The distance has no derivative there, for which 0 is taken, as PyTorch does.
    """
    begin = 0
    while begin < n:
        end = begin + 1
        while end < n and s[place[end]] == s[place[begin]]:
            end += 1
        if end - begin > 1:
            # What those before have, minus what those behind have.
            gains, sums, ones, number = 0.0, 0.0, 0.0, begin - end
            for p in range(begin, end):
                gains -= g[place[p]]
                sums -= of_sums[p]
                ones -= of_ones[p]
            for p in range(begin, end):
                own = g[place[p]]
                # Each document leaves those behind, and later joins those before.
                gains, sums, ones = gains + own, sums + of_sums[p], ones + of_ones[p]
                number += 1
                push[p] -= of_sums[p] * gains - of_ones[p] * number + own * sums - ones
                gains, sums, ones = gains + own, sums + of_sums[p], ones + of_ones[p]
                number += 1
        begin = end
