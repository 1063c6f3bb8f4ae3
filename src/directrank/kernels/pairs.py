"""Sums over the pairs of a list as compiled loops: what :mod:`._pairs` does in blocks, on a CPU.

``exp(scale s)`` of a document is kept as ``m · 2^p``, p whole and m near one. A pair then costs no
exponential: ``e = exp(scale (s_j - s_i)) = (m_j / m_i) · 2^(p_j - p_i)`` with a bounded difference
of whole numbers, and ``1 / (1 + e)`` is a division that vectorises. It neither overflows nor loses
digits however far apart the scores are.

All that is compiled together stays in this file, but for :mod:`._numbers`: see
:func:`._compiled.compiled`.
"""

from __future__ import annotations

import math

import numpy as np

from directrank.kernels.compiled import compiled, inlined
from directrank.kernels.numbers import is_single, like, power_of_two, slope_of

#: Lists are filled up to multiples of so many documents.
VECTOR = 16

#: Pairs of a list whose slopes are kept from one pass over them to the next, at most. They leave
#: room for the rest in a core's cache; of longer lists they are worked out again.
KEPT = 1 << 16

# ------------------------------------------------------------------------------- powers and places


@inlined
def _bounded(difference):
    """``2^difference``, but 0 far below and bounded far above.

    Beyond, a sigmoid is below 1e-18 (float64: 1e-150) in any case, and products with it would be
    denormal numbers, which are slow.
    """
    far = like(difference, 60.0) if is_single(difference) else like(difference, 500.0)
    power = power_of_two(min(max(difference, -far), far))
    return power if difference > -far else like(difference, 0.0)


# ------------------------------------------------------------------------------ documents of a list


@inlined
def _split(values, place, n, scale, mantissa, power):
    """``exp(scale · values[place]) = mantissa · 2^power`` for the first n."""
    for i in range(n):
        mantissa[i] = values[place[i]]
    for i in range(n):
        x = scale * 1.4426950408889634 * mantissa[i]
        whole = np.floor(x + 0.5)
        y = 0.6931471805599453 * (x - whole)  # NaN where the value is NaN or infinite
        series = 1.0
        for term in range(13, 0, -1):
            series = 1.0 + y * series * (1.0 / term)
        mantissa[i] = series
        power[i] = whole if y == y else 0.0


@inlined
def _front_first(front, mask, place):
    """Positions of a list's documents, those in front first; the number of these and of all.

    ``place`` is one longer than the list.
    """
    n_front = 0
    for j in range(len(mask)):  # without branches, which no processor could foresee
        place[n_front] = j
        n_front += mask[j] and front[j] != 0
    n = n_front
    for j in range(len(mask)):
        place[n] = j
        n += mask[j] and front[j] == 0
    return n_front, n


@inlined
def _by_level(labels, mask, place, end):
    """Positions of a list's documents by falling label, and where each one's label ends.

    Returns the number of documents. One pass for each different label.
    """
    n = 0
    above = np.inf
    while True:
        level = -np.inf
        for j in range(len(mask)):
            if mask[j] and labels[j] < above:
                level = max(level, labels[j])
        begin = n
        for j in range(len(mask)):
            if mask[j] and labels[j] == level and level < above:
                place[n] = j
                n += 1
        if n == begin:
            return n
        end[begin:n] = n
        above = level


# --------------------------------------------------------------------------------- sums of sigmoids


@inlined
def _fill_up(n, mantissa, power, side):
    """Add documents infinitely far to one side, and round n up to a whole number of vectors.

    What is left over after the last whole vector would cost as much as all that went before. Arrays
    have room for it.
    """
    mantissa[n : n + VECTOR] = 1
    power[n : n + VECTOR] = side * 1e37
    return _whole(n)


@inlined
def _whole(n):
    """n rounded up to a whole number of vectors."""
    return (n + VECTOR - 1) // VECTOR * VECTOR


@inlined
def _sums(mantissa, power, n_front, n, sums):
    """``Σ_{j≠i} 1 / (1 + e_ij)`` of the documents i in front over all n."""
    one, zero = like(mantissa[0], 1.0), like(mantissa[0], 0.0)
    n = _fill_up(n, mantissa, power, 1)
    for i in range(n_front):
        own, inverse, own_power = mantissa[i], one / mantissa[i], power[i]
        mantissa[i] = np.inf if own == own else own  # adds 0 to its own sum
        total = zero
        for j in range(n):
            total += one / (one + inverse * mantissa[j] * _bounded(power[j] - own_power))
        mantissa[i] = own
        sums[i] = total


@inlined
def _push(mantissa, power, weights, n_front, n, push):
    """``push``: ``Σ_i weights_i e_ij / (1 + e_ij)²`` to the j, and taken from the i in front."""
    one, zero = like(mantissa[0], 1.0), like(mantissa[0], 0.0)
    n = _fill_up(n, mantissa, power, -1)
    push[:n] = 0
    for i in range(n_front):
        own, inverse, own_power, weight = mantissa[i], one / mantissa[i], power[i], weights[i]
        mantissa[i] = zero  # its own force would drown small ones
        total = zero
        for j in range(n):
            e = inverse * mantissa[j] * _bounded(power[j] - own_power)
            s = one / (one + e)
            force = weight * slope_of(e, s)
            push[j] += force
            total += force
        mantissa[i] = own
        push[i] -= total


@inlined
def _sums_and_slopes(mantissa, power, n_front, n, sums, slopes):
    """As :func:`_sums`; keeps ``e_ij / (1 + e_ij)²`` of the pairs ``[n_front, whole n]``."""
    one, zero = like(mantissa[0], 1.0), like(mantissa[0], 0.0)
    whole = _fill_up(n, mantissa, power, 1)
    for i in range(n_front):
        own, inverse, own_power = mantissa[i], one / mantissa[i], power[i]
        mantissa[i] = np.inf if own == own else own  # adds 0 to its own sum
        kept = slopes[i]
        total = zero
        for j in range(whole):
            e = inverse * mantissa[j] * _bounded(power[j] - own_power)
            s = one / (one + e)
            kept[j] = slope_of(e, s)
            total += s
        mantissa[i] = own
        kept[i] = zero
        kept[n:] = zero
        sums[i] = total


@inlined
def _push_by_slopes(slopes, weights, n_front, n, push):
    """As :func:`_push`, with what :func:`_sums_and_slopes` kept."""
    n = _whole(n)
    push[:n] = 0
    for i in range(n_front):
        weight, kept = weights[i], slopes[i]
        total = like(weight, 0.0)
        for j in range(n):
            force = weight * kept[j]
            push[j] += force
            total += force
        push[i] -= total


@compiled
def soft_counts(begin, end, values, front, mask, counts):
    """``Σ_{j≠i} sigmoid(v_j - v_i)`` for the documents i in front; all arrays ``[B, L]``."""
    L = values.shape[1]
    place = np.empty(L + 1, np.int64)
    room = np.empty((3, L + VECTOR), values.dtype)
    mantissa, power, sums = room[0], room[1], room[2]
    for b in range(begin, end):
        n_front, n = _front_first(front[b], mask[b], place)
        _split(values[b], place, n, -1.0, mantissa, power)
        _sums(mantissa, power, n_front, n, sums)
        for i in range(n_front):
            counts[b, place[i]] = sums[i]


@compiled
def soft_counts_slope(begin, end, values, front, mask, slopes, gradient):
    """The gradient by ``values`` of ``Σ_i slopes_i counts_i``; all arrays ``[B, L]``."""
    L = values.shape[1]
    place = np.empty(L + 1, np.int64)
    room = np.empty((4, L + VECTOR), values.dtype)
    mantissa, power, weights, push = room[0], room[1], room[2], room[3]
    for b in range(begin, end):
        n_front, n = _front_first(front[b], mask[b], place)
        _split(values[b], place, n, -1.0, mantissa, power)
        for i in range(n_front):
            weights[i] = slopes[b, place[i]]
        _push(mantissa, power, weights, n_front, n, push)
        for i in range(n):
            gradient[b, place[i]] = push[i]


# --------------------------------------------------------------------------------------- ApproxNDCG


@inlined
def _ideal(gains, n_front, n, cumulative):
    """The best DCG of n documents, of which those in front have gain; NaN if a gain is NaN.

    ``cumulative[r]`` is the sum of the first r discounts. One pass for each different gain.
    """
    total, first, left, above = 0.0, 0, n_front, np.inf
    while left > 0:
        level, number = -np.inf, 0
        for i in range(n_front):
            if gains[i] < above:
                level = max(level, gains[i])
        for i in range(n_front):
            number += gains[i] == level
        if number == 0 or not level < above:
            return np.nan
        if level < 0 and above > 0:
            first += n - n_front  # documents without gain come before negative ones
        total += level * (cumulative[first + number] - cumulative[first])
        first += number
        left -= number
        above = level
    return total


@compiled
def approx_ndcg(
    begin, end, scores, gains, mask, alpha, cut, beta, letor, cumulative, wanted, value, gradient
):
    """NDCG ``[B]`` at sigmoid ranks and, where wanted, its gradient ``[B, L]``.

    ``alpha`` is ``[B]``; ``cut`` is infinite without a cut-off; ``cumulative [L + 1]`` holds sums
    of the (``letor`` or ``log2``) discounts up to the cut-off.
    """
    L = scores.shape[1]
    place = np.empty(L + 1, np.int64)
    room = np.empty((5, L + VECTOR), scores.dtype)
    mantissa, power, ranks, weights, push = room[0], room[1], room[2], room[3], room[4]
    pairs = np.empty(min(KEPT, L * _whole(L)) if wanted else 0, scores.dtype)
    for b in range(begin, end):
        value[b] = 0
        gradient[b] = 0
        n_front, n = _front_first(gains[b], mask[b], place)
        for i in range(n_front):
            weights[i] = gains[b, place[i]]
        best = _ideal(weights, n_front, n, cumulative)
        if best <= 0:
            continue
        _split(scores[b], place, n, -alpha[b], mantissa, power)
        size = n_front * _whole(n)
        keeps = wanted and size <= KEPT
        slopes = pairs[: size if keeps else 0].reshape(-1, _whole(n))
        if keeps:
            _sums_and_slopes(mantissa, power, n_front, n, ranks, slopes)
        else:
            _sums(mantissa, power, n_front, n, ranks)
        total = 0.0
        for i in range(n_front):
            rank = 1.0 + ranks[i]
            if letor:
                logarithm = math.log2(max(rank, 2.0))
                slope = 1 / rank if rank >= 2 else 0.0
            else:
                logarithm = math.log2(1 + rank)
                slope = 1 / (1 + rank)
            discount = 1 / logarithm
            slope *= -discount * discount / math.log(2.0)
            if cut < np.inf:
                within = 1 / (1 + math.exp(-beta * (cut + 0.5 - rank)))
                slope = within * (slope - beta * (1 - within) * discount)
                discount *= within
            total += weights[i] * discount
            weights[i] = alpha[b] * weights[i] * slope / best
        value[b] = total / best
        if wanted:
            if keeps:
                _push_by_slopes(slopes, weights, n_front, n, push)
            else:
                _push(mantissa, power, weights, n_front, n, push)
            for i in range(n):
                gradient[b, place[i]] = push[i]


# ------------------------------------------------------------------------------ RankNet, LambdaRank


@inlined
def _softplus(e, s, difference):
    """``log(1 + e)`` with ``s = 1 / (1 + e)`` and ``difference = log(e)``.

    ``max(difference, 0) + 2 artanh(z)``, where z is at most a third: the series ends soon.
    """
    t = e * s
    small, large = min(s, t), max(s, t)
    z = small / (large + large + small)
    square = z * z
    series = like(z, 0.0)
    if is_single(z):
        for term in range(15, 0, -2):
            series = like(z, 2.0 / term) + square * series
    else:
        for term in range(33, 0, -2):
            series = like(z, 2.0 / term) + square * series
    return max(difference, like(z, 0.0)) + z * series


@compiled
def ranknet(begin, end, scores, labels, mask, sigma, value, gradient, pairs):
    """``Σ log(1 + exp(-sigma (s_i - s_j)))`` over pairs with ``y_i > y_j``, its gradient, and the
    number of pairs; ``[B]``, ``[B, L]``, ``[B]``."""
    L = scores.shape[1]
    place, level_end = np.empty(L + 1, np.int64), np.empty(L, np.int64)
    room = np.empty((4, L + VECTOR), scores.dtype)
    mantissa, power, scaled, push = room[0], room[1], room[2], room[3]
    for b in range(begin, end):
        gradient[b] = 0
        n = _by_level(labels[b], mask[b], place, level_end)
        _split(scores[b], place, n, sigma, mantissa, power)
        for i in range(n):
            scaled[i] = sigma * scores[b, place[i]]
        _fill_up(n, mantissa, power, -1)
        scaled[n:] = -1e37
        push[:] = 0
        total, number = 0.0, 0
        for i in range(n):
            first = level_end[i]
            cost, force = _lost(mantissa, power, scaled, i, first, n, push)
            total += cost
            push[i] -= force
            number += n - first
        value[b] = total
        pairs[b] = number
        for i in range(n):
            gradient[b, place[i]] = sigma * push[i]


@inlined
def _lost(mantissa, power, scaled, i, first, n, push):
    """Costs and forces of document i against those from ``first`` on, whose push is added up."""
    one = like(mantissa[0], 1.0)
    inverse, own, mine = one / mantissa[i], power[i], scaled[i]
    cost = force = like(mantissa[0], 0.0)
    m, p, v, g = mantissa[first:], power[first:], scaled[first:], push[first:]
    for j in range(_whole(n - first)):
        e = inverse * m[j] * _bounded(p[j] - own)
        s = one / (one + e)
        cost += _softplus(e, s, v[j] - mine)
        g[j] += e * s
        force += e * s
    return cost, force


@inlined
def _ranks(row, mask, place, values, ranks):
    """Ranks (from 1) by falling value, ties in order of appearance, of a list's documents."""
    n = 0
    for j in range(len(mask)):
        place[n] = j
        n += mask[j]
    for i in range(n):
        values[i] = row[place[i]]
    one, zero = like(values[0], 1.0), like(values[0], 0.0)
    for i in range(n):
        own, rank = values[i], one
        for j in range(n):
            rank += one if values[j] > own else zero
        for j in range(i):
            rank += one if values[j] == own else zero
        ranks[place[i]] = rank
    return n


@compiled
def lambdarank(
    begin,
    end,
    scores,
    labels,
    gains,
    mask,
    sigma,
    cut,
    both,
    discounts,
    cumulative,
    value,
    gradient,
):
    """``Σ |ΔNDCG_ij| log(1 + exp(-sigma (s_i - s_j)))`` over pairs with ``y_i > y_j``, ``[B]``, and
    its gradient ``[B, L]``.

    ``cut`` is infinite without a cut-off; ``both`` asks both documents of a pair to be within it.
    ``discounts [L]`` are those of ranks, ``cumulative [L + 1]`` their sums as far as NDCG counts.
    """
    L = scores.shape[1]
    place, level_end = np.empty(L + 1, np.int64), np.empty(L, np.int64)
    room = np.empty((8, L + VECTOR), scores.dtype)
    mantissa, power, scaled, push = room[0], room[1], room[2], room[3]
    gain, discount, behind, ranks = room[4], room[5], room[6], room[7]
    within = np.empty(L, np.bool_)
    for b in range(begin, end):
        value[b] = 0
        gradient[b] = 0
        n = _ranks(scores[b], mask[b], place, scaled, ranks)
        for i in range(n):
            gain[i] = gains[b, place[i]]
        best = _ideal(gain, n, n, cumulative)
        if best <= 0:
            continue
        for j in range(L):
            within[j] = mask[b, j] and (not both or ranks[j] <= cut)
        n = _by_level(labels[b], within, place, level_end)
        _split(scores[b], place, n, sigma, mantissa, power)
        for i in range(n):
            j = place[i]
            scaled[i] = sigma * scores[b, j]
            gain[i] = gains[b, j] / best
            discount[i] = discounts[int(ranks[j]) - 1]
            behind[i] = ranks[j] > cut
        _fill_up(n, mantissa, power, -1)
        scaled[n:] = -1e37
        gain[n:] = 0
        discount[n:] = 0
        behind[n:] = 0
        push[:] = 0
        total = 0.0
        for i in range(n):
            cost, force = _swapped(
                mantissa, power, scaled, gain, discount, behind, i, level_end[i], n, push
            )
            total += cost
            push[i] -= force
        value[b] = total
        for i in range(n):
            gradient[b, place[i]] = sigma * push[i]


@inlined
def _swapped(mantissa, power, scaled, gain, discount, behind, i, first, n, push):
    """As :func:`_lost`, each pair weighted by the change of NDCG."""
    one = like(mantissa[0], 1.0)
    inverse, own, mine = one / mantissa[i], power[i], scaled[i]
    cost = force = like(mantissa[0], 0.0)
    m, p, v, g = mantissa[first:], power[first:], scaled[first:], push[first:]
    others_gain, others_discount, others_behind = gain[first:], discount[first:], behind[first:]
    for j in range(_whole(n - first)):
        change = (gain[i] - others_gain[j]) * abs(discount[i] - others_discount[j])
        change *= one - behind[i] * others_behind[j]
        e = inverse * m[j] * _bounded(p[j] - own)
        s = one / (one + e)
        cost += change * _softplus(e, s, v[j] - mine)
        pair = change * (e * s)
        g[j] += pair
        force += pair
    return cost, force


# ------------------------------------------------------------------------------------ twin sigmoids


@compiled
def twin_slope(begin, end, scores, labels, mask, slopes, alpha, kind, gradient):
    """``Σ_i slopes_i dr_i/ds`` for twin-sigmoid ranks r of type ``kind``; all arrays ``[B, L]``."""
    L = scores.shape[1]
    place = np.empty(L + 1, np.int64)
    room = np.empty((5, L + VECTOR), scores.dtype)
    mantissa, power, weights, push, y = room[0], room[1], room[2], room[3], room[4]
    for b in range(begin, end):
        gradient[b] = 0
        n_front, n = _front_first(slopes[b], mask[b], place)
        _split(scores[b], place, n, alpha, mantissa, power)
        for i in range(n):
            weights[i] = alpha * slopes[b, place[i]]
            y[i] = labels[b, place[i]]
        if kind == 1:
            _push(mantissa, power, weights, n_front, n, push)
        else:
            # What is filled up is behind all and below every label: both types vanish there.
            whole = _fill_up(n, mantissa, power, -1)
            y[n:] = -np.inf
            push[:] = 0
            for i in range(n_front):
                _twin_row(mantissa, power, y, i, whole, weights[i], kind, push)
        for i in range(n):
            gradient[b, place[i]] = push[i]


@inlined
def _twin_row(mantissa, power, y, i, n, weight, kind, push):
    """Document i's part of the gradient under type 2 or 3."""
    one, zero = like(mantissa[0], 1.0), like(mantissa[0], 0.0)
    inverse, own, label = one / mantissa[i], power[i], y[i]
    total = zero
    for j in range(n):
        e = inverse * mantissa[j] * _bounded(power[j] - own)  # 1 / (1 + e) is Yu2020's b
        s = one / (one + e)
        if kind == 2:
            up, down = slope_of(e, s), slope_of(e, s)
        else:
            up, down = e * s + e * s, s + s
        force = weight * (up if label > y[j] else (-down if label < y[j] else zero))
        push[j] += force
        total += force
    push[i] -= total
