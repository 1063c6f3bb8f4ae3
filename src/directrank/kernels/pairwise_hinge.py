"""The hinge loss over pairs on a CPU."""

from __future__ import annotations

import numpy as np
from torch import Tensor

from directrank.kernels.batch import Batch
from directrank.kernels.compiling import compiled, inlined
from directrank.kernels.numbers import like
from directrank.kernels.pairs import by_falling_label, room_for, whole_vectors
from directrank.lists.flat import Lists


def pairwise_hinge(scores: Tensor, labels: Tensor, mask: Lists | None, *, margin: float) -> Tensor:
    """See :func:`directrank.losses.pairwise_hinge`."""
    batch = Batch(scores, labels, mask)
    value, gradient = batch.per_list(), batch.zeros()
    arrays = batch.flat(batch.scores), batch.flat(batch.labels)
    batch.run(_pairwise_hinge, batch.pairs, *arrays, float(margin), value, gradient)
    return batch.loss(value, gradient)


@compiled
def _pairwise_hinge(begin, end, starts, lengths, scores, labels, margin, value, gradient):
    """``Σ max(0, margin - (s_i - s_j))`` over pairs with ``y_i > y_j``, ``[B]``, and its gradient
    ``[N]``."""
    L = lengths[begin:end].max()
    place, level_end = np.empty(L, np.int64), np.empty(L, np.int64)
    room = np.empty((2, room_for(L)), scores.dtype)
    own, push = room[0], room[1]
    for b in range(begin, end):
        first = starts[b]
        s, y = scores[first : first + lengths[b]], labels[first : first + lengths[b]]
        n = by_falling_label(y, place, level_end)
        for i in range(n):
            own[i] = s[place[i]]
        own[n:] = -1e37  # too far behind to cost anything
        push[:] = 0
        total = 0.0
        for i in range(n):
            lead = like(own[0], margin) - own[i]
            cost, force = _of_document(own, lead, level_end[i], n, push)
            total += cost
            push[i] -= force
        value[b] = total
        for i in range(n):
            gradient[first + place[i]] = push[i]


@inlined
def _of_document(own, lead, first, n, push):
    """The cost of a document with those from ``first`` on, and how many pairs cost something."""
    one, zero = like(own[0], 1.0), like(own[0], 0.0)
    v, g = own[first:], push[first:]
    cost = force = zero
    for j in range(whole_vectors(n - first)):
        short = lead + v[j]
        cost += zero if short < zero else short  # NaN stays
        pair = zero if short < zero else one
        g[j] += pair
        force += pair
    return cost, force
