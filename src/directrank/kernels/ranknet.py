"""RankNet on a CPU."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from directrank.kernels.batch import Batch
from directrank.kernels.compiling import compiled, inlined
from directrank.kernels.numbers import like
from directrank.kernels.pairs import (
    begin_pairs,
    by_falling_label,
    logistic_pair,
    room_for,
    whole_vectors,
)
from directrank.lists.flat import Flat, Lists
from directrank.lists.inputs import validated
from directrank.lists.sorting import top


def ranknet(
    scores: Tensor,
    labels: Tensor,
    mask: Lists | None,
    *,
    k: int | None,
    sigma: float,
    pair_reduction: str,
) -> Tensor:
    """See :func:`directrank.losses.ranknet`."""
    if pair_reduction not in ("sum", "mean"):
        return NotImplemented
    if k is not None:
        if isinstance(mask, Flat):
            return NotImplemented
        scores, labels, mask = validated(scores, labels, mask)
        mask = top(k, scores, mask)
    batch = Batch(scores, labels, mask)
    value, gradient, pairs = batch.per_list(), batch.zeros(), batch.per_list()
    arrays = batch.flat(batch.scores), batch.flat(batch.labels)
    batch.run(_ranknet, batch.pairs, *arrays, float(sigma), value, gradient, pairs)
    if pair_reduction == "sum":
        return batch.loss(value, gradient)
    count = torch.from_numpy(pairs).clamp_min(1)
    mean = torch.from_numpy(value) / count
    return batch.with_gradient(mean, batch.padded(gradient) / batch.spread(count))


@compiled
def _ranknet(begin, end, starts, lengths, scores, labels, sigma, value, gradient, pairs):
    """``Σ log(1 + exp(-sigma (s_i - s_j)))`` over pairs with ``y_i > y_j``, its gradient, and the
    number of pairs; ``[B]``, ``[N]``, ``[B]``."""
    L = lengths[begin:end].max()
    place, level_end = np.empty(L, np.int64), np.empty(L, np.int64)
    room = np.empty((4, room_for(L)), scores.dtype)
    push = room[3]
    for b in range(begin, end):
        first = starts[b]
        s, y = scores[first : first + lengths[b]], labels[first : first + lengths[b]]
        n = by_falling_label(y, place, level_end)
        value[b] = ranknet_pushes(s, place, level_end, n, sigma, room)
        number = 0
        for i in range(n):
            number += n - level_end[i]
        pairs[b] = number
        for i in range(n):
            gradient[first + place[i]] = sigma * push[i]


@inlined
def ranknet_pushes(s, place, level_end, n, sigma, room):
    """The cost of a list's pairs; ``room[3]`` becomes its derivative by ``sigma s``, by place.

    Args:
        s: scores.
        place, level_end, n: of the list's documents, from :func:`~.pairs.by_falling_label`.
        sigma: steepness.
        room: ``[4, room_for(longest)]``.
    """
    mantissa, power, scaled, push = begin_pairs(s, place, n, sigma, room)
    total = 0.0
    for i in range(n):
        cost, force = _lost(mantissa, power, scaled, i, level_end[i], n, push)
        total += cost
        push[i] -= force
    return total


@inlined
def _lost(mantissa, power, scaled, i, first, n, push):
    """Costs and forces of document i against those from ``first`` on, whose push is accumulated."""
    inverse, own, mine = like(mantissa[0], 1.0) / mantissa[i], power[i], scaled[i]
    cost = force = like(mantissa[0], 0.0)
    m, p, v, g = mantissa[first:], power[first:], scaled[first:], push[first:]
    for j in range(whole_vectors(n - first)):
        lost, pair, _ = logistic_pair(inverse, own, v[j] - mine, m[j], p[j])
        cost += lost
        g[j] += pair
        force += pair
    return cost, force
