"""ListNet and ListMLE as compiled loops on a CPU: a few passes over each list."""

from __future__ import annotations

import math

import numpy as np

from directrank.relaxations._compiled import compiled
from directrank.relaxations._numbers import exp, largest, like

#: Largest spread of scores whose exponentials, and sums of their inverses, float64 can hold.
SPREAD = 300.0


@compiled
def _documents(row, mask, place, values):
    """A list's documents one after the other, and their positions, with room for one more."""
    n = 0
    for j in range(len(mask)):
        place[n] = j
        n += mask[j]
    for i in range(n):
        values[i] = row[place[i]]


@compiled
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
    place = np.empty(L + 1, np.int64)
    room = np.empty((4, L), scores.dtype)
    s, y, p, q = room[0], room[1], room[2], room[3]
    for b in range(begin, end):
        n = 0
        for j in range(L):
            n += mask[b, j]
        if n == L > 0:  # nothing to pack
            value[b] = _cross_entropy(scores[b], labels[b], n, gradient[b], q)
            continue
        value[b] = 0
        gradient[b] = 0
        if n > 0:
            _documents(scores[b], mask[b], place, s)
            _documents(labels[b], mask[b], place, y)
            value[b] = _cross_entropy(s, y, n, p, q)
            for i in range(n):
                gradient[b, place[i]] = p[i]


@compiled
def _cross_entropy(s, y, n, p, q):
    """The loss of n documents; its gradient into p."""
    total, top = _exponentials(s, n, p)
    label_total, _ = _exponentials(y, n, q)
    one = like(total, 1.0)
    share, label_share = one / total, one / label_total
    met = like(total, 0.0)
    for i in range(n):
        met += q[i] * (s[i] - top)
        p[i] = share * p[i] - label_share * q[i]
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


@compiled
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


@compiled
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


@compiled
def _log_of_sum(x, y):
    """``log(exp(x) + exp(y))``."""
    high, low = max(x, y), min(x, y)
    return high + math.log1p(math.exp(low - high))
