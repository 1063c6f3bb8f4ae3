"""PL-Rank-3 on a CPU: two passes over a list for each drawn order."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from torch import Tensor

from directrank.kernels.compiling import compiled, inlined
from directrank.kernels.draws import Drawn
from directrank.kernels.numbers import exp
from directrank.lists.conventions import discount_sums
from directrank.lists.flat import Lists

#: The work that a document takes for each order, in pairs.
WORK = 6

#: Largest range of scores whose exponentials, and sums of their inverses, float64 can hold.
SPREAD = 300.0


def drawn_dcg(
    scores: Tensor, gains: Tensor, mask: Lists, orders: Iterable[Tensor], k: int | None
) -> Tensor:
    """See :func:`directrank.losses._pl_rank.drawn_dcg`."""
    drawn = Drawn(scores, gains, mask)
    batch = drawn.batch
    value, gradient = np.zeros_like(batch.per_list()), batch.zeros()
    L = batch.shape[1]
    theta = np.diff(discount_sums("log2", L, None))[: L if k is None else k]
    arrays = batch.flat(batch.scores), batch.flat(batch.labels)
    for some in orders:
        places = drawn.orders(some)
        work = WORK * batch.documents * len(places)
        batch.run(_drawn_dcg, work, *arrays, places, theta, value, gradient)
    return batch.loss(value, gradient)


@compiled
def _drawn_dcg(begin, end, starts, lengths, scores, gains, orders, theta, value, gradient):
    """Add the DCG of ``orders [S, N]`` to ``value [B]`` and the estimates of its gradient to
    ``gradient [N]``; ``theta`` are the weights of the ranks up to the cut-off."""
    L = lengths[begin:end].max()
    room = np.empty((6, L), np.float64)
    s, g, weights, push = room[0], room[1], room[2], room[3]
    following, tails = room[4], room[5]
    for b in range(begin, end):
        first, n = starts[b], lengths[b]
        cut = min(n, len(theta))
        least, top, lowest, some = np.inf, -np.inf, 0.0, False
        for i in range(n):
            s[i], g[i] = scores[first + i], gains[first + i]
            least, top, lowest = min(least, s[i]), max(top, s[i]), min(lowest, g[i])
            some |= g[i] != 0
        if not some or cut == 0:
            continue
        for i in range(n):
            g[i] -= lowest  # does not change the expected gradient
            weights[i] = exp(s[i] - top)
        for order in range(len(orders)):
            place = orders[order, first : first + n]
            total = _follow(place, g, theta, cut, following)
            for r in range(cut):
                total += lowest * theta[r]
            value[b] += total
            push[:n] = 0
            if top - least < SPREAD:
                _of_near(place, g, weights, theta, n, cut, following, tails, push)
            else:
                _of_far(place, g, s, theta, n, cut, following, tails, push)
            for i in range(n):
                gradient[first + i] += push[i]


@inlined
def _follow(place, g, theta, cut, following):
    """The DCG from each rank on; returns that of the whole list."""
    total = 0.0
    for r in range(cut - 1, -1, -1):
        total += theta[r] * g[place[r]]
        following[r] = total
    return total


@inlined
def _of_near(place, g, weights, theta, n, cut, following, tails, push):
    """Add the estimate for an order, from the exponentials ``weights``."""
    tail = 0.0
    for r in range(n - 1, cut - 1, -1):
        tail += weights[place[r]]
    for r in range(cut - 1, -1, -1):
        tail += weights[place[r]]
        tails[r] = 1 / tail
    direct, risk = 0.0, 0.0
    for r in range(cut):
        i = place[r]
        direct += theta[r] * tails[r]
        risk += following[r] * tails[r]
        later = following[r] - theta[r] * g[i]
        push[i] += later + weights[i] * (g[i] * direct - risk)
    for r in range(cut, n):
        i = place[r]
        push[i] += weights[i] * (g[i] * direct - risk)


@inlined
def _of_far(place, g, s, theta, n, cut, following, tails, push):
    """The same with logarithms in place of sums; ``direct`` and ``risk`` include the tail."""
    tail = -np.inf
    for r in range(n - 1, -1, -1):
        x = s[place[r]]
        tail = max(tail, x) + math.log1p(math.exp(min(tail, x) - max(tail, x)))
        if r < cut:
            tails[r] = tail
    direct, risk = 0.0, 0.0
    for r in range(cut):
        i = place[r]
        fewer = math.exp(tails[r] - tails[r - 1]) if r > 0 else 0.0
        direct = direct * fewer + theta[r]
        risk = risk * fewer + following[r]
        later = following[r] - theta[r] * g[i]
        push[i] += later + math.exp(s[i] - tails[r]) * (g[i] * direct - risk)
    for r in range(cut, n):
        i = place[r]
        push[i] += math.exp(s[i] - tails[cut - 1]) * (g[i] * direct - risk)
