"""LambdaRank on a CPU."""

from __future__ import annotations

import math

import numpy as np
from torch import Tensor

from directrank.kernels.batch import Batch
from directrank.kernels.compiling import compiled, inlined
from directrank.kernels.numbers import like
from directrank.kernels.pairs import (
    begin_pairs,
    by_falling_label,
    ideal_dcg,
    logistic_pair,
    room_for,
    whole_vectors,
)
from directrank.lists.conventions import discount_sums, gains
from directrank.lists.flat import Lists


def lambdarank(
    scores: Tensor,
    labels: Tensor,
    mask: Lists | None,
    *,
    k: int | None,
    cutoff: str,
    sigma: float,
    gain: str,
) -> Tensor:
    """See :func:`directrank.losses.lambdarank`."""
    if cutoff not in ("both", "either"):
        return NotImplemented
    batch = Batch(scores, labels, mask)
    # Before the gradient is allocated, because gains need additional memory for a moment.
    gained = gains(batch.labels, gain)
    value, gradient = batch.per_list(), batch.zeros()
    L, both = batch.shape[1], cutoff == "both"
    batch.run(
        _lambdarank,
        batch.pairs,
        *(batch.flat(values) for values in (batch.scores, batch.labels, gained)),
        float(sigma),
        math.inf if k is None else float(k),
        both,
        np.diff(discount_sums("log2", L, None)),
        discount_sums("log2", L, k if both else None),
        value,
        gradient,
    )
    return batch.loss(value, gradient)


@inlined
def ranks_of(values, ranks):
    """Ranks (from 1) by descending value, ties in order of appearance."""
    n = len(values)
    one, zero = like(values[0], 1.0), like(values[0], 0.0)
    for i in range(n):
        own, rank = values[i], one
        for j in range(n):
            rank += one if values[j] > own else zero
        for j in range(i):
            rank += one if values[j] == own else zero
        ranks[i] = rank


@compiled
def _lambdarank(
    begin,
    end,
    starts,
    lengths,
    scores,
    labels,
    gains,
    sigma,
    cut,
    both,
    discounts,
    cumulative,
    value,
    gradient,
):
    """``Σ |ΔNDCG_ij| log(1 + exp(-sigma (s_i - s_j)))`` over pairs with ``y_i > y_j``, ``[B]``, and
    its gradient ``[N]``.

    ``cut`` is infinite without a cut-off; ``both`` requires both documents of a pair to be within
    it. ``discounts [L]`` are those of the ranks, and ``cumulative [L + 1]`` their sums up to the
    cut-off of NDCG.
    """
    L = lengths[begin:end].max()
    place, level_end = np.empty(L, np.int64), np.empty(L, np.int64)
    room = np.empty((9, room_for(L)), scores.dtype)
    push, ranks, level = room[3], room[7], room[8]
    for b in range(begin, end):
        value[b] = 0
        first, n = starts[b], lengths[b]
        if n == 0:
            continue
        s, y, g = scores[first : first + n], labels[first : first + n], gains[first : first + n]
        best = ideal_dcg(g, n, n, cumulative)
        if best <= 0:
            continue
        ranks_of(s, ranks)
        for j in range(n):
            level[j] = y[j] if not both or ranks[j] <= cut else -np.inf
        n = by_falling_label(level[:n], place, level_end)
        value[b] = lambdarank_pushes(s, g, best, discounts, cut, place, level_end, n, sigma, room)
        for i in range(n):
            gradient[first + place[i]] = sigma * push[i]


@inlined
def lambdarank_pushes(s, g, best, discounts, cut, place, level_end, n, sigma, room):
    """The weighted cost of a list's pairs; ``room[3]`` becomes its derivative by ``sigma s``.

    Args:
        s, g: scores and gains.
        best: the DCG of the best order.
        discounts: of ranks from 1.
        cut: two documents that are both behind this rank do not form a pair.
        place, level_end, n: of the list's documents, from :func:`~.pairs.by_falling_label`.
        sigma: steepness.
        room: ``[8, room_for(longest)]``; its last row holds :func:`ranks_of` the scores.
    """
    mantissa, power, scaled, push = begin_pairs(s, place, n, sigma, room)
    gain, discount, behind, ranks = room[4], room[5], room[6], room[7]
    for i in range(n):
        j = place[i]
        gain[i] = g[j] / best
        discount[i] = discounts[int(ranks[j]) - 1]
        behind[i] = ranks[j] > cut
    gain[n:] = 0
    discount[n:] = 0
    behind[n:] = 0
    total = 0.0
    for i in range(n):
        cost, force = _swapped(
            mantissa, power, scaled, gain, discount, behind, i, level_end[i], n, push
        )
        total += cost
        push[i] -= force
    return total


@inlined
def _swapped(mantissa, power, scaled, gain, discount, behind, i, first, n, push):
    """Costs and forces of document i against those from ``first`` on, whose push is accumulated;
    each pair is weighted by the change of NDCG."""
    one = like(mantissa[0], 1.0)
    inverse, own, mine = one / mantissa[i], power[i], scaled[i]
    cost = force = like(mantissa[0], 0.0)
    m, p, v, g = mantissa[first:], power[first:], scaled[first:], push[first:]
    others_gain, others_discount, others_behind = gain[first:], discount[first:], behind[first:]
    for j in range(whole_vectors(n - first)):
        change = (gain[i] - others_gain[j]) * abs(discount[i] - others_discount[j])
        change *= one - behind[i] * others_behind[j]
        lost, push_of_pair, _ = logistic_pair(inverse, own, v[j] - mine, m[j], p[j])
        cost += change * lost
        pair = change * push_of_pair
        g[j] += pair
        force += pair
    return cost, force
