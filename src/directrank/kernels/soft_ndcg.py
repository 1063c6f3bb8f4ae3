"""NDCG at projected and at Laplace ranks on a CPU: one sort, and passes over the sorted list."""

from __future__ import annotations

import numpy as np
from torch import Tensor

from directrank.kernels.batch import Batch, per_list
from directrank.kernels.compiling import compiled
from directrank.kernels.ndcg import at_ranks, front_of
from directrank.kernels.pairs import discount_at
from directrank.kernels.soft_rank_parts import (
    laplace,
    laplace_gradient,
    project,
    project_gradient,
)
from directrank.kernels.soft_ranks import WORK, sorted_lists
from directrank.lists.flat import Lists

#: The kinds of ranks, by number.
KINDS = ("l2", "entropic", "laplace")
ENTROPIC, LAPLACE = 1, 2


def fast_soft_ndcg(
    scores: Tensor,
    labels: Tensor,
    mask: Lists | None,
    *,
    k: int | None,
    gain: str,
    discount: str,
    tau: float | Tensor,
    regularisation: str,
    beta: float,
) -> Tensor:
    """Minus NDCG at projected ranks; see :func:`directrank.losses.fast_soft_ndcg`."""
    if regularisation not in KINDS[:LAPLACE]:
        return NotImplemented
    return _loss(regularisation, Batch(scores, labels, mask), mask, k, gain, discount, tau, beta)


def lapsum_ndcg(
    scores: Tensor,
    labels: Tensor,
    mask: Lists | None,
    *,
    k: int | None,
    gain: str,
    discount: str,
    tau: float | Tensor,
    beta: float,
) -> Tensor:
    """Minus NDCG at Laplace ranks; see :func:`directrank.losses.lapsum_ndcg`."""
    return _loss("laplace", Batch(scores, labels, mask), mask, k, gain, discount, tau, beta)


def _loss(
    kind: str,
    batch: Batch,
    mask: Lists | None,
    k: int | None,
    gain: str,
    discount: str,
    tau: float | Tensor,
    beta: float,
) -> Tensor:
    order = sorted_lists(batch, batch.scores, mask)
    own = order, per_list(tau, batch.shape[0]), KINDS.index(kind)
    return at_ranks(_ndcg, batch, WORK * batch.documents, k, gain, discount, beta, *own)


@compiled
def _ndcg(
    begin,
    end,
    starts,
    lengths,
    scores,
    gains,
    order,
    tau,
    kind,
    cut,
    beta,
    letor,
    cumulative,
    value,
    gradient,
):
    """NDCG ``[B]`` at soft ranks and its gradient ``[N]``.

    ``order [N]`` counts from each list's first document; ``tau`` is ``[B]``; ``cut`` is infinite
    without a cut-off; ``cumulative [L + 1]`` holds sums of the (``letor`` or ``log2``) discounts up
    to the cut-off.
    """
    L = lengths[begin:end].max()
    front, ends = np.empty(L + 1, np.int64), np.empty(L + 1, np.int64)
    room = np.empty((5, L + 1), scores.dtype)
    values, ranks, weights, outer, decays = room[0], room[1], room[2], room[3], room[4]
    room_of_blocks = np.empty((3, L + 1), np.float64)
    for b in range(begin, end):
        value[b] = 0
        first, n = starts[b], lengths[b]
        n_front, best = front_of(gains[first : first + n], cumulative, front, weights)
        if best <= 0:
            continue
        temperature = tau[b]
        for i in range(n):
            values[i] = scores[first + i] / temperature
            outer[i] = 0
        place, own = order[first : first + n], gradient[first : first + n]
        if kind == LAPLACE:
            laplace(values, place, n, decays, ranks)
        else:
            project(values, place, n, kind == ENTROPIC, ends, room_of_blocks, ranks)
        total = 0.0
        for i in range(n_front):
            discount, derivative = discount_at(ranks[front[i]], cut, beta, letor)
            total += weights[i] * discount
            outer[front[i]] = weights[i] * derivative / (best * temperature)
        value[b] = total / best
        if kind == LAPLACE:
            laplace_gradient(place, n, decays, outer, own)
        else:
            project_gradient(place, n, kind == ENTROPIC, ends, ranks, outer, own)
