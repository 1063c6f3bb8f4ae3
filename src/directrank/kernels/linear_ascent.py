"""Passes of Qin2010's Algorithm 1 over the training queries, for one linear scorer.

A step processes one query: it computes scores, ranks from sigmoids and the gradient of NDCG or AP
at these ranks, and moves the weights. Documents are kept in the order of their scores, so that a
document's sigmoids need to be computed only for the documents near it: where ``alpha`` times the
difference of two scores is beyond :data:`FLAT`, the sigmoid is 0 or 1 to the last digit of a rank.
The steeper the sigmoids are, the fewer remain.
"""

from __future__ import annotations

import math

import numpy as np

from directrank.kernels.compiling import compiled, inlined
from directrank.kernels.numbers import slope_of
from directrank.kernels.pairs import (
    bounded_power,
    fill_up,
    room_for,
    split_exponentials,
    whole_vectors,
)

#: ``exp(-FLAT)`` is a thirtieth of float64's rounding of 1.
FLAT = 40.0


@compiled
def passes(
    orders, starts, lengths, fronts, features, gains, best, alpha, beta, rate, tolerance, weights
):
    """Pass over the queries until the weights move by no more than ``tolerance``.

    The documents of a query are contiguous, and those with a gain come first.

    Args:
        orders: int64 ``[E, Q]``, the order of the queries in each pass.
        starts, lengths: int64 ``[Q]``, the first of a query's documents, and their number.
        fronts: int64 ``[Q]``, the number of them that have a gain.
        features: float64 ``[N, F]``.
        gains: float64 ``[N]``, used for NDCG.
        best: float64 ``[Q]``, DCG of the best order, used for NDCG.
        alpha: steepness of the ranks.
        beta: steepness of the comparison of ranks, for AP; negative for NDCG.
        rate: learning rate.
        tolerance: a Euclidean distance.
        weights: float64 ``[F]``, changed in place.

    Returns:
        The number of passes that were made, whether the last one met the tolerance, and the mean of
        the objective over the steps of the last one (each before its move).
    """
    N, F = features.shape
    L, most = lengths.max(), max(1, fronts.max())
    by_score = np.empty(N, np.int64)  # each query's documents by descending score at its last step
    for q in range(len(starts)):
        for i in range(lengths[q]):
            by_score[starts[q] + i] = i
    every = np.arange(most)
    rows = np.empty(most, np.int64)
    window, between = np.empty((most, 2), np.int64), np.empty((most, 2), np.int64)
    slopes = np.empty((most, room_for(L)))
    slopes_between = np.empty((most, room_for(most)))
    room = np.empty((5, room_for(L)))
    scores, ordered, mantissa, power, push = room[0], room[1], room[2], room[3], room[4]
    ranks, counts, by_rank = np.empty(most), np.empty(most), np.empty(most)
    total = 0.0
    for epoch in range(len(orders)):
        before = weights.copy()
        total = 0.0
        for q in orders[epoch]:
            first, n, R = starts[q], lengths[q], fronts[q]
            if R == 0:
                continue
            documents, place = features[first : first + n], by_score[first : first + n]
            for i in range(n):
                score = 0.0
                for f in range(F):
                    score += documents[i, f] * weights[f]
                scores[i] = score
            _sort(scores, place)
            row = 0
            for p in range(n):
                ordered[p] = scores[place[p]]
                if place[p] < R:
                    rows[row] = p
                    row += 1
            split_exponentials(scores, place, n, -alpha, mantissa, power)
            _sums(ordered, n, FLAT / alpha, rows, R, mantissa, power, ranks, slopes, window)
            for i in range(R):
                ranks[i] += 1.0
            if beta < 0:
                worth = gains[first : first + n]
                total += _ndcg_by_rank(ranks, worth, place, rows, R, best[q], by_rank)
            else:
                split_exponentials(ranks, every, R, beta, mantissa, power)
                _sums(
                    ranks,
                    R,
                    FLAT / beta,
                    every,
                    R,
                    mantissa,
                    power,
                    counts,
                    slopes_between,
                    between,
                )
                total += _ap_by_rank(ranks, counts, slopes_between, between, R, beta, by_rank)
            push[: room_for(n)] = 0
            for i in range(R):
                begin, end = window[i]
                kept, pushed = slopes[i], push[begin:]
                weight, taken = alpha * by_rank[i], 0.0
                for j in range(whole_vectors(end - begin)):
                    force = weight * kept[j]
                    pushed[j] += force
                    taken += force
                push[rows[i]] -= taken
            for p in range(n):
                if push[p] != 0:
                    step, document = rate * push[p], documents[place[p]]
                    for f in range(F):
                        weights[f] += step * document[f]
        moved = 0.0
        for f in range(F):
            moved += (weights[f] - before[f]) ** 2
        if not math.sqrt(moved) > tolerance:
            return epoch + 1, True, total / orders.shape[1]
    return len(orders), False, total / orders.shape[1]


@inlined
def _sort(scores, place):
    """Sort the positions ``place``, which are nearly sorted already, by descending score."""
    for p in range(1, len(place)):
        moving = place[p]
        score = scores[moving]
        q = p
        while q > 0 and scores[place[q - 1]] < score:
            place[q] = place[q - 1]
            q -= 1
        place[q] = moving


@inlined
def _sums(values, n, near, rows, n_rows, mantissa, power, sums, slopes, window):
    """``Σ_{j≠i} 1 / (1 + e_ij)`` of the rows i over all n, with ``e = mantissa · 2^power``.

    ``values`` are sorted, so that of the documents farther than ``near`` from i the fraction is 1
    for those before i and 0 for those after it. For the others, the positions from
    ``window[i, 0]`` to ``window[i, 1]``, ``slopes`` keeps ``e / (1 + e)²``. They are extended to
    whole vectors by the documents that follow, because a remainder after the last vector would take
    as long as all vectors before it.
    """
    fill_up(n, mantissa, power, 1)
    begin = end = 0
    for row in range(n_rows):
        i = rows[row]
        while abs(values[begin] - values[i]) > near:
            begin += 1
        end = max(end, i + 1)
        while end < n and abs(values[end] - values[i]) <= near:
            end += 1
        inverse, own_power, kept = 1 / mantissa[i], power[i], slopes[row]
        near_mantissa, near_power = mantissa[begin:], power[begin:]
        total = 0.0
        for j in range(whole_vectors(end - begin)):
            e = inverse * near_mantissa[j] * bounded_power(near_power[j] - own_power)
            s = 1 / (1 + e)
            kept[j] = slope_of(e, s)
            total += s
        kept[i - begin] = 0
        sums[row] = begin + total - 0.5  # its own fraction
        window[row, 0], window[row, 1] = begin, end


@inlined
def _ndcg_by_rank(ranks, gains, place, rows, n, best, by_rank):
    """NDCG at the ranks of the n documents with a gain, and its derivative for each rank."""
    total = 0.0
    for i in range(n):
        gain, logarithm = gains[place[rows[i]]], math.log2(1 + ranks[i])
        total += gain / logarithm
        by_rank[i] = -gain / (logarithm * logarithm * math.log(2.0) * (1 + ranks[i]) * best)
    return total / best


@inlined
def _ap_by_rank(ranks, counts, slopes, window, n, beta, by_rank):
    """AP at the ranks of the n relevant documents, and its derivative for each rank.

    ``counts`` are ``Σ_{j≠i} sigmoid(beta (r_i - r_j))`` over these documents, with the ``slopes``
    and ``window`` that :func:`_sums` gives. The ranks are overwritten.
    """
    total = 0.0
    for i in range(n):
        ranks[i] = 1 / ranks[i]
        total += (1 + counts[i]) * ranks[i]
    for i in range(n):
        own, through = ranks[i], 0.0
        begin, end = window[i]
        for j in range(begin, end):
            through += slopes[i, j - begin] * (own - ranks[j])
        by_rank[i] = (beta * through - (1 + counts[i]) * own * own) / n
    return total / n
