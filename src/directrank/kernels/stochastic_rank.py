"""StochasticRank on a CPU: a pass over the first ranks for each document and draw."""

from __future__ import annotations

import math

import numpy as np
from torch import Tensor

from directrank.kernels.compiling import compiled, inlined
from directrank.kernels.draws import Drawn
from directrank.kernels.numbers import exp, like
from directrank.lists.conventions import discount_sums
from directrank.lists.sorting import descending_order


def noisy_dcg(
    means: Tensor, gains: Tensor, mask: Tensor, noise: Tensor, sigma: float, k: int | None
) -> Tensor:
    """See :func:`directrank.losses._stochastic_rank.noisy_dcg`."""
    samples = len(noise)
    noisy = (means + noise).detach()
    orders = descending_order(noisy.flatten(0, 1), mask.repeat(samples, 1)).view(noise.shape)
    drawn = Drawn(means, gains, mask, orders)
    batch = drawn.batch
    value, gradient = batch.per_list(), batch.zeros()
    L = batch.shape[1]
    batch.run(
        _noisy_dcg,
        samples * batch.shape[0] * L * (L if k is None else min(k + 1, L)),
        *(batch.flat(values) for values in (batch.scores, batch.labels)),
        drawn.flat(noisy),
        drawn.orders,
        float(sigma),
        np.diff(discount_sums("log2", L + 1, k)),
        L if k is None else k + 1,
        value,
        gradient,
    )
    return batch.loss(value, gradient)


@compiled
def _noisy_dcg(
    begin, end, starts, lengths, means, gains, drawn, orders, sigma, theta, reach, value, gradient
):
    """The mean DCG of the ``orders [samples, N]`` of the scores ``drawn``, ``[B]``, and the
    estimate of its gradient by the ``means``, ``[N]``.

    ``theta [L + 1]`` are the weights of ranks, 0 behind the cut-off, and ``reach`` the number of
    the first ranks that a document may pass to some effect.
    """
    L = lengths[begin:end].max()
    room = np.empty((3, L), means.dtype)
    x, g, steps = room[0], room[1], room[2]
    for r in range(L):
        steps[r] = theta[r] - theta[r + 1]
    scale = 1 / (math.sqrt(2 * math.pi) * sigma * len(orders))
    for b in range(begin, end):
        first, n = starts[b], lengths[b]
        within = min(n, reach)
        total = 0.0
        for t in range(len(orders)):
            place = orders[t, first : first + n]
            for r in range(n):
                x[r] = drawn[t, first + place[r]] / sigma
                g[r] = gains[first + place[r]]
                total += theta[r] * g[r]
            for r in range(n):
                i, ahead = first + place[r], min(r, within)
                mean = means[i] / sigma
                force = _passed(x, g, steps, ahead, mean, g[r])
                force += _passed(x[r + 1 :], g[r + 1 :], steps[r:], within - r - 1, mean, g[r])
                gradient[i] += scale * force
        value[b] = total / len(orders)


@inlined
def _passed(x, g, steps, n, mean, gain):
    """What a document gains as it passes the first n, by the density of its noise there."""
    zero, half = like(steps[0], 0.0), like(steps[0], -0.5)
    own, mine = like(steps[0], mean), like(steps[0], gain)
    total = zero
    for j in range(n):
        apart = x[j] - own
        total += (mine - g[j]) * steps[j] * exp(half * apart * apart)
    return total
