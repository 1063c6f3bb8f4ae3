"""ListNet on a CPU: a few passes over each list."""

from __future__ import annotations

import math

import numpy as np
from torch import Tensor

from directrank.kernels.batch import Batch
from directrank.kernels.compiling import compiled, inlined
from directrank.kernels.numbers import exp, largest, like
from directrank.kernels.pairs import whole_vectors
from directrank.lists.flat import Lists

#: The score with which lists are filled up.
LOW = -1e37


def listnet(
    scores: Tensor,
    labels: Tensor,
    mask: Lists | None,
    *,
    document_weights: Tensor | None,
) -> Tensor:
    """See :func:`directrank.losses.listnet`; weights of documents are not supported."""
    if document_weights is not None:
        return NotImplemented
    batch = Batch(scores, labels, mask)
    value, gradient = batch.per_list(), batch.zeros()
    arrays = batch.flat(batch.scores), batch.flat(batch.labels)
    batch.run(_listnet, 4 * batch.scores.numel(), *arrays, value, gradient)
    return batch.loss(value, gradient)


@compiled
def _listnet(begin, end, starts, lengths, scores, labels, value, gradient):
    """Cross entropy of the scores' softmax under that of the labels, ``[B]``, and its gradient
    ``[N]``."""
    longest = lengths[begin:end].max()
    room = np.empty((2, whole_vectors(longest)), scores.dtype)
    s, y = room[0], room[1]
    for b in range(begin, end):
        value[b] = 0
        first, n = starts[b], lengths[b]
        if n > 0:
            whole = whole_vectors(n)
            own, grades = scores[first : first + n], labels[first : first + n]
            for j in range(n):  # an assignment to a slice would check for overlaps
                s[j] = own[j]
                y[j] = grades[j]
            s[n:whole] = LOW
            y[n:whole] = LOW
            value[b] = _cross_entropy(s, y, n, whole, gradient[first : first + n])


@inlined
def _cross_entropy(s, y, n, whole, gradient):
    """The loss, and its gradient for the first n documents; ``s`` and ``y`` become exponentials."""
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
