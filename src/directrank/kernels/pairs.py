"""Parts of kernels that process the pairs of a list's documents.

``exp(scale s)`` of a document is stored as ``m · 2^p``, with an integer p and m close to one. A
pair then needs no exponential: ``e = exp(scale (s_j - s_i)) = (m_j / m_i) · 2^(p_j - p_i)`` with a
bounded difference of integers, and ``1 / (1 + e)`` is a division that vectorises. It neither
overflows nor loses digits, however far apart the scores are.
"""

from __future__ import annotations

import math

import numpy as np

from directrank.kernels.compiling import inlined
from directrank.kernels.numbers import is_single, like, power_of_two, slope_of

#: Lists are filled up to multiples of this many documents.
VECTOR = 16


@inlined
def bounded_power(difference):
    """``2^difference``, but 0 for very small and bounded for very large differences.

    There, a sigmoid is below 1e-18 (float64: 1e-150) in any case, and products with it would be
    denormal numbers, which are slow.
    """
    far = like(difference, 60.0) if is_single(difference) else like(difference, 500.0)
    power = power_of_two(min(max(difference, -far), far))
    return power if difference > -far else like(difference, 0.0)


@inlined
def split_exponentials(values, place, n, scale, mantissa, power):
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
def front_first(front, place):
    """Positions of a list's documents, those with a ``front`` other than 0 first; their number.

    ``place`` is one longer than the list.
    """
    n_front = 0
    for j in range(len(front)):  # without branches, which a processor could not predict
        place[n_front] = j
        n_front += front[j] != 0
    n = n_front
    for j in range(len(front)):
        place[n] = j
        n += front[j] == 0
    return n_front


@inlined
def by_falling_label(labels, place, end):
    """Positions of a list's documents by descending label, and where each one's label ends.

    Returns the number of documents; those with a label of minus infinity are left out. There
    is one pass for each different label.
    """
    n = 0
    above = np.inf
    while True:
        level = -np.inf
        for j in range(len(labels)):
            if labels[j] < above:
                level = max(level, labels[j])
        begin = n
        if level > -np.inf:
            for j in range(len(labels)):
                if labels[j] == level:
                    place[n] = j
                    n += 1
        if n == begin:
            return n
        end[begin:n] = n
        above = level


@inlined
def fill_up(n, mantissa, power, side):
    """Add documents infinitely far to one side, and round n up to a whole number of vectors.

    A remainder after the last whole vector would take as long as all vectors before it. The arrays
    must be long enough (:func:`room_for`).
    """
    mantissa[n : n + VECTOR] = 1
    power[n : n + VECTOR] = side * 1e37
    return whole_vectors(n)


@inlined
def whole_vectors(n):
    """n rounded up to a whole number of vectors."""
    return (n + VECTOR - 1) // VECTOR * VECTOR


@inlined
def room_for(n):
    """The length of arrays of n documents, with space for :func:`fill_up`.

    With it all rows of a table begin at the same position of a cache line; loads that straddle two
    lines take twice as long.
    """
    return whole_vectors(n) + VECTOR


@inlined
def sigmoid_sums(mantissa, power, n_front, n, sums):
    """``Σ_{j≠i} 1 / (1 + e_ij)`` over all n documents, for the documents i in front."""
    one, zero = like(mantissa[0], 1.0), like(mantissa[0], 0.0)
    n = fill_up(n, mantissa, power, 1)
    for i in range(n_front):
        own, inverse, own_power = mantissa[i], one / mantissa[i], power[i]
        mantissa[i] = np.inf if own == own else own  # adds 0 to its own sum
        total = zero
        for j in range(n):
            total += one / (one + inverse * mantissa[j] * bounded_power(power[j] - own_power))
        mantissa[i] = own
        sums[i] = total


@inlined
def sigmoid_gradient(mantissa, power, weights, n_front, n, push):
    """``push``: ``Σ_i weights_i e_ij / (1 + e_ij)²``, added to j and subtracted from i in front."""
    one, zero = like(mantissa[0], 1.0), like(mantissa[0], 0.0)
    n = fill_up(n, mantissa, power, -1)
    push[:n] = 0
    for i in range(n_front):
        own, inverse, own_power, weight = mantissa[i], one / mantissa[i], power[i], weights[i]
        mantissa[i] = zero  # its own force would swamp small ones
        total = zero
        for j in range(n):
            e = inverse * mantissa[j] * bounded_power(power[j] - own_power)
            s = one / (one + e)
            force = weight * slope_of(e, s)
            push[j] += force
            total += force
        mantissa[i] = own
        push[i] -= total


@inlined
def sigmoid_sums_and_derivatives(mantissa, power, n_front, n, sums, derivatives):
    """As :func:`sigmoid_sums`; keeps ``e_ij / (1 + e_ij)²`` of all pairs, ``[n_front, whole]``."""
    one, zero = like(mantissa[0], 1.0), like(mantissa[0], 0.0)
    whole = fill_up(n, mantissa, power, 1)
    for i in range(n_front):
        own, inverse, own_power = mantissa[i], one / mantissa[i], power[i]
        mantissa[i] = np.inf if own == own else own  # adds 0 to its own sum
        kept = derivatives[i]
        total = zero
        for j in range(whole):
            e = inverse * mantissa[j] * bounded_power(power[j] - own_power)
            s = one / (one + e)
            kept[j] = slope_of(e, s)
            total += s
        mantissa[i] = own
        kept[i] = zero
        kept[n:] = zero
        sums[i] = total


@inlined
def gradient_of_derivatives(derivatives, weights, n_front, n, push):
    """As :func:`sigmoid_gradient`, from what :func:`sigmoid_sums_and_derivatives` kept."""
    n = whole_vectors(n)
    push[:n] = 0
    for i in range(n_front):
        weight, kept = weights[i], derivatives[i]
        total = like(weight, 0.0)
        for j in range(n):
            force = weight * kept[j]
            push[j] += force
            total += force
        push[i] -= total


@inlined
def ideal_dcg(gains, n_front, n, cumulative):
    """The best DCG of n documents, of which those in front have a gain; NaN if a gain is NaN.

    ``cumulative[r]`` is the sum of the first r discounts. There is one pass for each gain.
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
            first += n - n_front  # documents without a gain come before negative ones
        total += level * (cumulative[first + number] - cumulative[first])
        first += number
        left -= number
        above = level
    return total


@inlined
def discount_at(rank, cut, beta, letor):
    """The (``letor`` or ``log2``) discount of a rank with a smooth cut-off, and its derivative.

    ``cut`` is infinite without a cut-off.
    """
    if letor:
        logarithm = math.log2(max(rank, 2.0))
        derivative = 1 / rank if rank >= 2 else 0.0
    else:
        logarithm = math.log2(1 + rank)
        derivative = 1 / (1 + rank)
    discount = 1 / logarithm
    derivative *= -discount * discount / math.log(2.0)
    if cut < np.inf:
        within = 1 / (1 + math.exp(-beta * (cut + 0.5 - rank)))
        derivative = within * (derivative - beta * (1 - within) * discount)
        discount *= within
    return discount, derivative


@inlined
def softplus(e, s, difference):
    """``log(1 + e)`` with ``s = 1 / (1 + e)`` and ``difference = log(e)``.

    ``max(difference, 0) + 2 artanh(z)``, where z is at most a third, so that few terms suffice.
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


@inlined
def begin_pairs(values, place, n, sigma, room):
    """What :func:`logistic_pair` needs of the first n documents in ``place``, filled up.

    The rows of ``room`` become the mantissas and the powers of ``exp(sigma · values)``, ``sigma ·
    values``, and the push of each document, which is 0 before any pair.
    """
    mantissa, power, scaled, push = room[0], room[1], room[2], room[3]
    split_exponentials(values, place, n, sigma, mantissa, power)
    for i in range(n):
        scaled[i] = sigma * values[place[i]]
    fill_up(n, mantissa, power, -1)
    scaled[n:] = -1e37
    push[:] = 0
    return mantissa, power, scaled, push


@inlined
def logistic_pair(inverse, own_power, lead, mantissa, power):
    """``log(1 + e)``, ``e / (1 + e)`` and ``1 / (1 + e)`` of ``e = exp(lead)``, the lead of a
    document over one whose inverse mantissa and power are given."""
    one = like(mantissa, 1.0)
    e = inverse * mantissa * bounded_power(power - own_power)
    s = one / (one + e)
    return softplus(e, s, lead), e * s, s
