"""YetiLoss on a CPU: one pass over a list for each drawn order and each distance of neighbours."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from torch import Tensor

from directrank.kernels.compiling import compiled, inlined
from directrank.kernels.draws import Drawn
from directrank.kernels.numbers import exp, like
from directrank.kernels.pairs import softplus
from directrank.lists.conventions import discount_sums
from directrank.lists.flat import Lists

#: The work that a document takes for each order and distance, in pairs.
WORK = 10


def costs_of_neighbours(
    scores: Tensor,
    gains: Tensor,
    mask: Lists,
    orders: Iterable[Tensor],
    neighbours: int,
    k: int | None,
) -> Tensor:
    """See :func:`directrank.losses._yeti_loss.costs_of_neighbours`."""
    drawn = Drawn(scores, gains, mask)
    batch = drawn.batch
    value, gradient = np.zeros_like(batch.per_list()), batch.zeros()
    theta = np.diff(discount_sums("log2", batch.shape[1], k)).astype(gradient.dtype)
    arrays = batch.flat(batch.scores), batch.flat(batch.labels)
    for some in orders:
        places = drawn.orders(some)
        work = WORK * batch.documents * neighbours * len(places)
        batch.run(_costs_of_neighbours, work, *arrays, places, neighbours, theta, value, gradient)
    return batch.loss(value, gradient)


@compiled
def _costs_of_neighbours(
    begin, end, starts, lengths, scores, gains, orders, neighbours, theta, value, gradient
):
    """Add the weighted costs of neighbours in ``orders [S, N]`` to ``value [B]``, and their forces
    to ``gradient [N]``; ``theta [L]`` are the weights of the ranks."""
    L = lengths[begin:end].max()
    room = np.empty((4, L), scores.dtype)
    s, g, push, force = room[0], room[1], room[2], room[3]
    for b in range(begin, end):
        first, n = starts[b], lengths[b]
        for order in range(len(orders)):
            place = orders[order, first : first + n]
            for r in range(n):
                s[r] = scores[first + place[r]]
                g[r] = gains[first + place[r]]
            push[:n] = 0
            for apart in range(1, min(neighbours, n - 1) + 1):
                value[b] += _of_distance(s, g, theta, n, apart, force)
                for r in range(n - apart):
                    push[r] -= force[r]
                for r in range(n - apart):
                    push[r + apart] += force[r]
            for r in range(n):
                gradient[first + place[r]] += push[r]


@inlined
def _of_distance(s, g, theta, n, apart, force):
    """Costs and forces of documents at a distance of ``apart`` ranks."""
    one, zero = like(s[0], 1.0), like(s[0], 0.0)
    others, gain, weight = s[apart:], g[apart:], theta[apart:]
    total = zero
    for r in range(n - apart):
        better = (g[r] - gain[r]) * (theta[r] - weight[r])
        lead = s[r] - others[r] if better > 0 else others[r] - s[r]
        e = exp(-abs(lead))
        share = one / (one + e)
        total += abs(better) * (softplus(e, share, -abs(lead)) + max(-lead, zero))
        force[r] = better * (e * share if lead > 0 else share)
    return total
