"""K-SONG on a CPU: two passes over the list for each document with a weight."""

from __future__ import annotations

import math

import numpy as np
from torch import Tensor

from directrank.kernels.batch import Batch
from directrank.kernels.compiling import compiled, inlined
from directrank.kernels.numbers import like
from directrank.kernels.pairs import front_first, room_for
from directrank.lists.flat import Lists

LN2 = math.log(2.0)


def hinged_dcg(scores: Tensor, weights: Tensor, mask: Lists, margin: float) -> Tensor:
    """See :func:`directrank.losses._k_song.hinged_dcg`."""
    batch = Batch(scores, weights, mask)
    value, gradient = batch.per_list(), batch.zeros()
    arrays = batch.flat(batch.scores), batch.flat(batch.labels)
    batch.run(_hinged_dcg, batch.pairs // 4, *arrays, float(margin), value, gradient)
    return batch.loss(value, gradient)


@compiled
def _hinged_dcg(begin, end, starts, lengths, scores, weights, margin, value, gradient):
    """``Σ_i weights_i / log2(1 + r_i)`` with ``r_i = Σ_j max(0, margin - (s_i - s_j))²``, ``[B]``,
    and its gradient ``[N]``."""
    L = lengths[begin:end].max()
    place = np.empty(L + 1, np.int64)
    room = np.empty((2, room_for(L)), scores.dtype)
    s, push = room[0], room[1]
    for b in range(begin, end):
        value[b] = 0
        first, n = starts[b], lengths[b]
        n_front = front_first(weights[first : first + n], place)
        if n_front == 0:
            continue
        for j in range(n):
            s[j] = scores[first + place[j]]
        push[:n] = 0
        total = 0.0
        for i in range(n_front):
            weight = weights[first + place[i]]
            own = s[i]
            s[i] = -np.inf if own == own else own  # its own force would swamp small ones
            rank = margin * margin + _sum_of_squares(s, n, own - margin)
            log = math.log1p(rank)
            total += weight * LN2 / log
            slope = -2.0 * weight * LN2 / (log * log * (1.0 + rank))
            push[i] -= _forces(s, n, own - margin, slope, push)
            s[i] = own
        value[b] = total
        for j in range(n):
            gradient[first + place[j]] = push[j]


@inlined
def _sum_of_squares(s, n, least):
    """``Σ_j max(0, s_j - least)²``."""
    zero = like(s[0], 0.0)
    bound = like(s[0], least)
    total = zero
    for j in range(n):
        short = max(s[j] - bound, zero)
        total += short * short
    return total


@inlined
def _forces(s, n, least, slope, push):
    """Add the forces ``slope · max(0, s_j - least)`` to ``push``; returns their sum."""
    zero = like(s[0], 0.0)
    bound, factor = like(s[0], least), like(s[0], slope)
    total = zero
    for j in range(n):
        force = factor * max(s[j] - bound, zero)
        push[j] += force
        total += force
    return total
