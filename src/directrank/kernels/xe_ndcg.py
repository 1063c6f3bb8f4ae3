"""A cross entropy on a CPU: two passes over each list."""

from __future__ import annotations

import math

from torch import Tensor

from directrank.kernels.batch import Batch
from directrank.kernels.compiling import compiled, inlined
from directrank.kernels.numbers import exp, largest, like
from directrank.lists.flat import Lists


def cross_entropy(scores: Tensor, powers: Tensor, gamma: Tensor, mask: Lists) -> Tensor:
    """See :func:`directrank.losses._xe_ndcg.cross_entropy`."""
    batch = Batch(scores, powers, mask)
    value, gradient = batch.per_list(), batch.zeros()
    arrays = batch.flat(batch.scores), batch.flat(batch.labels), batch.flat(gamma)
    batch.run(_cross_entropy, 2 * batch.documents, *arrays, value, gradient)
    return batch.loss(value, gradient)


@compiled
def _cross_entropy(begin, end, starts, lengths, scores, powers, gamma, value, gradient):
    """``log Σ exp(s) - Σ target s / Σ target``, ``[B]``, and its gradient ``[N]``."""
    for b in range(begin, end):
        value[b] = 0
        first, n = starts[b], lengths[b]
        if n > 0:
            part = slice(first, first + n)
            value[b] = _of_list(scores[part], powers[part], gamma[part], gradient[part])


@inlined
def _of_list(s, powers, gamma, gradient):
    """The loss of a list that has documents, and its gradient."""
    top, zero, one = largest(s, len(s)), like(s[0], 0.0), like(s[0], 1.0)
    total, target_total, met = zero, zero, zero
    for i in range(len(s)):
        x, target = s[i] - top, powers[i] - gamma[i]
        gradient[i] = exp(x)
        total += gradient[i]
        target_total += target
        met += target * x
    if not target_total > 0:
        gradient[:] = 0
        return 0.0
    share, target_share = one / total, one / target_total
    for i in range(len(s)):
        gradient[i] = share * gradient[i] - target_share * (powers[i] - gamma[i])
    return math.log(total) - target_share * met
