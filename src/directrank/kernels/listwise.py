"""ListNet and ListMLE as compiled loops on a CPU: a few passes over each list."""

from __future__ import annotations

import math

import numpy as np

from directrank.kernels.compiling import compiled, inlined
from directrank.kernels.numbers import exp, largest, like

#: Lists are filled up to multiples of so many documents, with so low a score.
VECTOR, LOW = 16, -1e37

#: Largest spread of scores whose exponentials, and sums of their inverses, float64 can hold.
SPREAD = 300.0


@inlined
def _exponentials(values, n, found):
    """``exp(values - top)`` of the first n, their sum, and top, the largest."""
    top = largest(values, n)
    total = like(top, 0.0)
    for i in range(n):
        found[i] = exp(values[i] - top)
        total += found[i]
    return total, top


@compiled
def listnet(begin, end, scores, labels, mask, value, gradient):
    """Cross entropy of the scores' softmax under the labels' ``[B]``, its gradient ``[B, L]``."""
    L = scores.shape[1]
    room = np.empty((2, L + VECTOR), scores.dtype)
    s, y = room[0], room[1]
    for b in range(begin, end):
        n = L
        while n > 0 and not mask[b, n - 1]:
            n -= 1
        gradient[b, n:] = 0
        value[b] = 0
        if n > 0:
            whole = _filled_up(scores[b], mask[b], n, s)
            _filled_up(labels[b], mask[b], n, y)
            value[b] = _cross_entropy(s, y, n, whole, gradient[b])


@inlined
def _filled_up(row, mask, n, values):
    """The first n of a row, masked ones so low that their exponentials vanish; how many values.

    That is n up to a whole number of vectors: what is left over after the last whole one would cost
    as much as all that went before.
    """
    for j in range(n):
        values[j] = row[j] if mask[j] else like(row[j], LOW)
    whole = (n + VECTOR - 1) // VECTOR * VECTOR
    values[n:whole] = LOW
    return whole


@inlined
def _cross_entropy(s, y, n, whole, gradient):
    """The loss; the gradient by the first n. ``s`` and ``y`` become their exponentials."""
    top, label_top = largest(s, whole), largest(y, whole)
    zero, one = like(top, 0.0), like(top, 1.0)
    total, label_total, met = zero, zero, zero
    for i in range(whole):
        x = s[i] - top
        p, q = exp(x), exp(y[i] - label_top)
        total += p
        label_total += q
        met += q * x
        s[i] = p
        y[i] = q
    share, label_share = one / total, one / label_total
    for i in range(n):
        gradient[i] = share * s[i] - label_share * y[i]
    return math.log(total) - label_share * met


@compiled
def listmle(begin, end, scores, order, lengths, value, gradient):
    """``Σ_i [log Σ_{k≥i} exp(s_k) - s_i]`` over the documents in ``order``, and its gradient.

    ``order [B, L]`` begins with the ``lengths [B]`` documents of each list.
    """
    L = scores.shape[1]
    room = np.empty((3, L), np.float64)
    s, weights, tails = room[0], room[1], room[2]
    for b in range(begin, end):
        value[b] = 0
        gradient[b] = 0
        n = lengths[b]
        if n == 0:
            continue
        least = np.inf
        for i in range(n):
            s[i] = scores[b, order[b, i]]
            least = min(least, s[i])
        _, top = _exponentials(s, n, weights)
        if top - least < SPREAD:
            value[b] = _likelihood(s, top, n, weights, tails)
        else:
            value[b] = _likelihood_of_far(s, n, weights, tails)
        for i in range(n):
            gradient[b, order[b, i]] = weights[i] - 1


@inlined
def _likelihood(s, top, n, weights, tails):
    """The loss; ``weights``, the exponentials ``exp(s - top)``, become the gradient plus one."""
    total, tail, product = 0.0, 0.0, 1.0
    for i in range(n - 1, -1, -1):
        tail += weights[i]
        tails[i] = 1 / tail
        total += top - s[i]
        product *= tail
        if not 1e-140 < product < 1e140:  # a logarithm now and then is enough
            total += math.log(product)
            product = 1.0
    inverse = 0.0
    for i in range(n):
        inverse += tails[i]
        weights[i] *= inverse
    return total + math.log(product)


@inlined
def _likelihood_of_far(s, n, weights, tails):
    """The same with logarithms for sums."""
    total, tail = 0.0, -np.inf
    for i in range(n - 1, -1, -1):
        tail = _log_of_sum(tail, s[i])
        tails[i] = tail
        total += tail - s[i]
    inverse = -np.inf
    for i in range(n):
        inverse = _log_of_sum(inverse, -tails[i])
        weights[i] = math.exp(s[i] + inverse)
    return total


@inlined
def _log_of_sum(x, y):
    """``log(exp(x) + exp(y))``."""
    high, low = max(x, y), min(x, y)
    return high + math.log1p(math.exp(low - high))
