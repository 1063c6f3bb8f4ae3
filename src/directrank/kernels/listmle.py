"""ListMLE on a CPU: a few passes over each list."""

from __future__ import annotations

import math

import numpy as np
from torch import Tensor

from directrank.kernels.batch import Batch
from directrank.kernels.compiling import compiled, inlined
from directrank.kernels.numbers import exp, largest, like
from directrank.lists.flat import Lists

#: Largest range of scores whose exponentials, and sums of their inverses, float64 can hold.
SPREAD = 300.0


def likelihood(scores: Tensor, order: Tensor, mask: Lists) -> Tensor:
    """See :func:`directrank.losses._listmle.likelihood`."""
    batch = Batch(scores, scores.detach(), mask)
    value, gradient = batch.per_list(), batch.zeros()
    arrays = batch.flat(batch.scores), batch.places(order)
    batch.run(_likelihood, 20 * scores.numel(), *arrays, value, gradient)
    return batch.loss(value, gradient)


@compiled
def _likelihood(begin, end, starts, lengths, scores, order, value, gradient):
    """``Σ_i [log Σ_{k≥i} exp(s_k) - s_i]`` over the documents of a list in ``order``, ``[B]``, and
    its gradient ``[N]``; ``order [N]`` counts from each list's first document."""
    room = np.empty((3, lengths[begin:end].max()), np.float64)
    s, weights, tails = room[0], room[1], room[2]
    for b in range(begin, end):
        value[b] = 0
        first, n = starts[b], lengths[b]
        if n == 0:
            continue
        place, own = order[first : first + n], scores[first : first + n]
        by_scores = gradient[first : first + n]
        least = np.inf
        for i in range(n):
            s[i] = own[place[i]]
            least = min(least, s[i])
        _, top = _exponentials(s, n, weights)
        if top - least < SPREAD:
            value[b] = _of_near(s, top, n, weights, tails)
        else:
            value[b] = _of_far(s, n, weights, tails)
        for i in range(n):
            by_scores[place[i]] = weights[i] - 1


@inlined
def _exponentials(values, n, exponentials):
    """``exp(values - top)`` of the first n values, their sum, and ``top``, the largest value."""
    top = largest(values, n)
    total = like(top, 0.0)
    for i in range(n):
        exponentials[i] = exp(values[i] - top)
        total += exponentials[i]
    return total, top


@inlined
def _of_near(s, top, n, weights, tails):
    """The loss; ``weights``, the exponentials ``exp(s - top)``, become the gradient plus one."""
    total, tail, product = 0.0, 0.0, 1.0
    for i in range(n - 1, -1, -1):
        tail += weights[i]
        tails[i] = 1 / tail
        total += top - s[i]
        product *= tail
        if not 1e-140 < product < 1e140:  # an occasional logarithm is enough
            total += math.log(product)
            product = 1.0
    inverse = 0.0
    for i in range(n):
        inverse += tails[i]
        weights[i] *= inverse
    return total + math.log(product)


@inlined
def _of_far(s, n, weights, tails):
    """The same with logarithms in place of sums."""
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
