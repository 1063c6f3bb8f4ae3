"""StochasticRank on a CPU: one pass over the first ranks for each document and draw."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from torch import Tensor

from directrank.kernels.compiling import compiled, inlined
from directrank.kernels.draws import Drawn
from directrank.kernels.numbers import exp, like
from directrank.lists.conventions import discount_sums
from directrank.lists.flat import Lists
from directrank.lists.sorting import descending_order


def noisy_dcg(
    means: Tensor,
    gains: Tensor,
    mask: Lists,
    noise: Iterable[Tensor],
    sigma: float,
    k: int | None,
) -> Tensor:
    """See :func:`directrank.losses._stochastic_rank.noisy_dcg`."""
    lists = Drawn(means, gains, mask)
    batch = lists.batch
    value, gradient = np.zeros_like(batch.per_list()), batch.zeros()
    L = batch.shape[1]
    reach = L if k is None else min(k + 1, L)
    theta = np.diff(discount_sums("log2", L + 1, k))
    arrays = batch.flat(batch.scores), batch.flat(batch.labels)
    for draw in noise:
        drawn = means.detach() + draw
        batch.run(
            _noisy_dcg,
            means.numel() * reach,
            *arrays,
            lists.flat(drawn),
            lists.orders(descending_order(drawn, mask)[None])[0],
            float(sigma),
            theta,
            reach,
            value,
            gradient,
        )
    return batch.loss(value, gradient)


@compiled
def _noisy_dcg(
    begin, end, starts, lengths, means, gains, drawn, order, sigma, theta, reach, value, gradient
):
    """Add the DCG of an ``order [N]``, that of the scores ``drawn``, to ``value [B]``, and the
    estimate of its gradient with respect to the ``means`` to ``gradient [N]``.

    ``theta [L + 1]`` are the weights of the ranks, 0 behind the cut-off, and ``reach`` is the
    number of first ranks past which a move changes the DCG.
    """
    L = lengths[begin:end].max()
    room = np.empty((3, L), means.dtype)
    x, g, steps = room[0], room[1], room[2]
    for r in range(L):
        steps[r] = theta[r] - theta[r + 1]
    scale = 1 / (math.sqrt(2 * math.pi) * sigma)
    for b in range(begin, end):
        first, n = starts[b], lengths[b]
        within = min(n, reach)
        place = order[first : first + n]
        total, some = 0.0, False
        for r in range(n):
            x[r] = drawn[first + place[r]] / sigma
            g[r] = gains[first + place[r]]
            total += theta[r] * g[r]
            some |= g[r] != 0
        if not some:
            continue
        value[b] += total
        for r in range(n):
            i, ahead = first + place[r], min(r, within)
            mean = means[i] / sigma
            force = _passed(x, g, steps, ahead, mean, g[r])
            force += _passed(x[r + 1 :], g[r + 1 :], steps[r:], within - r - 1, mean, g[r])
            gradient[i] += scale * force


@inlined
def _passed(x, g, steps, n, mean, gain):
    """What a document gains by passing each of the first n, times its noise's density there."""
    zero, half = like(steps[0], 0.0), like(steps[0], -0.5)
    own, mine = like(steps[0], mean), like(steps[0], gain)
    total = zero
    for j in range(n):
        apart = x[j] - own
        total += (mine - g[j]) * steps[j] * exp(half * apart * apart)
    return total
