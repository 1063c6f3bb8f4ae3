"""NDCG under the first rows of NeuralSort's matrix on a CPU, row by row, without storing it."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor

from directrank.kernels.batch import Batch, per_list
from directrank.kernels.compiling import compiled, inlined
from directrank.kernels.ndcg import in_distribution, top_discounts
from directrank.kernels.numbers import exp, largest, like
from directrank.kernels.soft_ranks import sorted_lists
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
    straight_through: bool,
) -> Tensor:
    """Minus NDCG under NeuralSort's rows; see :func:`directrank.losses.pirank`."""

    def own(batch: Batch, mask: Lists) -> tuple[int, Any]:
        discounts = top_discounts(batch, discount, k)
        order, taus = sorted_lists(batch, batch.scores, mask), per_list(tau, batch.shape[0])
        work = batch.shape[0] * batch.shape[1] * len(discounts)
        return work, (order, discounts, taus, bool(straight_through))

    return in_distribution(_ndcg, scores, labels, mask, k, gain, discount, own)


@inlined
def _distances(v, place, n, distances):
    """``Σ_j |v_i - v_j|``, from sums along the sorted list."""
    total, above = 0.0, 0.0
    for i in range(n):
        total += v[i]
    for p in range(n):
        own = float(v[place[p]])
        above += own
        distances[place[p]] = 2 * above - total + (n - 2 * (p + 1)) * own


@inlined
def _through_distances(v, place, n, weights, push):
    """Add the gradient of ``Σ_i weights_i distances_i`` to ``push``; ties do not affect each other.

    It is ``Σ_i (weights_i + weights_j) sign(v_j - v_i)``.
    """
    total, above = 0.0, 0.0
    for i in range(n):
        total += weights[i]
    p = 0
    while p < n:
        tied, stop = 0.0, p
        while stop < n and v[place[stop]] == v[place[p]]:
            tied += weights[place[stop]]
            stop += 1
        below = total - above - tied
        for q in range(p, stop):
            own = weights[place[q]]
            push[place[q]] += below - above + own * (n - stop - p)
        above += tied
        p = max(stop, p + 1)  # NaN is not equal to itself


@compiled
def _ndcg(
    begin,
    end,
    starts,
    lengths,
    scores,
    gains,
    order,
    discounts,
    tau,
    straight_through,
    value,
    gradient,
):
    """``Σ_r D(r) (P gains)_r`` ``[B]`` and its gradient ``[N]``.

    ``order [N]`` counts from each list's first document; ``discounts [R]`` are those of the ranks
    up to the cut-off; ``tau`` is ``[B]``. If ``straight_through``, the value is that of the sorted
    list.
    """
    room = np.empty((5, lengths[begin:end].max() + 1), scores.dtype)
    v, distances, shares, of_distances, push = room[0], room[1], room[2], room[3], room[4]
    one, zero = like(scores.dtype.type(0), 1.0), like(scores.dtype.type(0), 0.0)
    for b in range(begin, end):
        value[b] = 0
        first, n = starts[b], lengths[b]
        own, g = scores[first : first + n], gains[first : first + n]
        place, pushed = order[first : first + n], gradient[first : first + n]
        if not np.any(g):
            continue
        inverse_tau = like(one, 1 / tau[b])
        for i in range(n):
            v[i] = own[i] * inverse_tau
            of_distances[i] = zero
            push[i] = zero
        _distances(v, place, n, distances)
        soft, exact = 0.0, 0.0
        for r in range(min(n, len(discounts))):
            slope = like(one, n - 1.0 - 2 * r)
            for i in range(n):
                shares[i] = slope * v[i] - distances[i]
            top, sums, met = largest(shares, n), zero, zero
            for i in range(n):
                shares[i] = exp(shares[i] - top)
                sums += shares[i]
                met += shares[i] * g[i]
            met /= sums
            soft += discounts[r] * met
            exact += discounts[r] * g[place[r]]
            weight = discounts[r] / sums
            for i in range(n):
                force = weight * shares[i] * (g[i] - met)
                push[i] += slope * force
                of_distances[i] -= force
        value[b] = exact if straight_through and soft == soft else soft  # NaN stays NaN
        _through_distances(v, place, n, of_distances, push)
        for i in range(n):
            pushed[i] = push[i] * inverse_tau
