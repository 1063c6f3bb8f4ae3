"""Ranks as sums of sigmoids, and NDCG at them, on a CPU."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from directrank.kernels.batch import Batch, per_list
from directrank.kernels.compiling import compiled
from directrank.kernels.ndcg import at_ranks, front_of
from directrank.kernels.pairs import (
    discount_at,
    front_first,
    gradient_of_derivatives,
    room_for,
    sigmoid_gradient,
    sigmoid_sums,
    sigmoid_sums_and_derivatives,
    split_exponentials,
    whole_vectors,
)
from directrank.lists.flat import Lists
from directrank.lists.gradient import once_differentiable

#: The largest number of pairs of a list whose derivatives are kept from one pass to the next. They
#: leave space for the rest in a core's cache; for longer lists they are computed again.
KEPT = 1 << 16


def soft_counts(values: Tensor, front: Tensor, mask: Tensor) -> Tensor:
    """See :func:`directrank.relaxations.real_valued.soft_counts`."""
    return _SoftCounts.apply(values, front, mask)


class _SoftCounts(torch.autograd.Function):
    @staticmethod
    def forward(ctx, values: Tensor, front: Tensor, mask: Tensor) -> Tensor:
        batch = Batch.of_valid(values.detach(), front, mask)
        arrays = batch.flat(batch.scores), batch.flat(batch.labels)
        counts = batch.zeros()
        batch.run(_soft_counts, batch.pairs, *arrays, counts)
        ctx.batch, ctx.arrays = batch, arrays
        ctx.save_for_backward(values)
        return batch.padded(counts)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output: Tensor) -> tuple[Tensor, None, None]:
        batch = ctx.batch
        gradient = batch.zeros()
        outer = batch.flat(grad_output)
        batch.run(_soft_counts_gradient, batch.pairs, *ctx.arrays, outer, gradient)
        return batch.padded(gradient), None, None


def ndcg(
    scores: Tensor,
    labels: Tensor,
    mask: Lists | None,
    *,
    k: int | None,
    gain: str,
    discount: str,
    alpha: float | Tensor,
    beta: float,
) -> Tensor:
    """Minus NDCG at sigmoid ranks; see :func:`directrank.losses.approx_ndcg`."""
    batch = Batch(scores, labels, mask)
    own = per_list(alpha, batch.shape[0]), batch.gradient_needed
    return at_ranks(_ndcg, batch, batch.pairs, k, gain, discount, beta, *own)


@compiled
def _soft_counts(begin, end, starts, lengths, values, front, counts):
    """``Σ_{j≠i} sigmoid(v_j - v_i)`` for the documents i in front; all arrays ``[N]``."""
    L = lengths[begin:end].max()
    place = np.empty(L + 1, np.int64)
    room = np.empty((3, room_for(L)), values.dtype)
    mantissa, power, sums = room[0], room[1], room[2]
    for b in range(begin, end):
        first, n = starts[b], lengths[b]
        n_front = front_first(front[first : first + n], place)
        split_exponentials(values[first : first + n], place, n, -1.0, mantissa, power)
        sigmoid_sums(mantissa, power, n_front, n, sums)
        for i in range(n_front):
            counts[first + place[i]] = sums[i]


@compiled
def _soft_counts_gradient(begin, end, starts, lengths, values, front, outer, gradient):
    """The gradient of ``Σ_i outer_i counts_i`` with respect to ``values``; all arrays ``[N]``."""
    L = lengths[begin:end].max()
    place = np.empty(L + 1, np.int64)
    room = np.empty((4, room_for(L)), values.dtype)
    mantissa, power, weights, push = room[0], room[1], room[2], room[3]
    for b in range(begin, end):
        first, n = starts[b], lengths[b]
        n_front = front_first(front[first : first + n], place)
        split_exponentials(values[first : first + n], place, n, -1.0, mantissa, power)
        for i in range(n_front):
            weights[i] = outer[first + place[i]]
        sigmoid_gradient(mantissa, power, weights, n_front, n, push)
        for i in range(n):
            gradient[first + place[i]] = push[i]


@compiled
def _ndcg(
    begin,
    end,
    starts,
    lengths,
    scores,
    gains,
    alpha,
    gradient_needed,
    cut,
    beta,
    letor,
    cumulative,
    value,
    gradient,
):
    """NDCG ``[B]`` at sigmoid ranks and, where needed, its gradient ``[N]``.

    ``alpha`` is ``[B]``; ``cut`` is infinite without a cut-off; ``cumulative [L + 1]`` holds sums
    of the (``letor`` or ``log2``) discounts up to the cut-off.
    """
    L = lengths[begin:end].max()
    place = np.empty(L + 1, np.int64)
    room = np.empty((5, room_for(L)), scores.dtype)
    mantissa, power, ranks, weights, push = room[0], room[1], room[2], room[3], room[4]
    pairs = np.empty(min(KEPT, L * whole_vectors(L)) if gradient_needed else 0, scores.dtype)
    for b in range(begin, end):
        value[b] = 0
        first, n = starts[b], lengths[b]
        n_front, best = front_of(gains[first : first + n], cumulative, place, weights)
        if best <= 0:
            continue
        split_exponentials(scores[first : first + n], place, n, -alpha[b], mantissa, power)
        size = n_front * whole_vectors(n)
        keeps = gradient_needed and size <= KEPT
        derivatives = pairs[: size if keeps else 0].reshape(-1, whole_vectors(n))
        if keeps:
            sigmoid_sums_and_derivatives(mantissa, power, n_front, n, ranks, derivatives)
        else:
            sigmoid_sums(mantissa, power, n_front, n, ranks)
        total = 0.0
        for i in range(n_front):
            discount, derivative = discount_at(1.0 + ranks[i], cut, beta, letor)
            total += weights[i] * discount
            weights[i] = alpha[b] * weights[i] * derivative / best
        value[b] = total / best
        if gradient_needed:
            if keeps:
                gradient_of_derivatives(derivatives, weights, n_front, n, push)
            else:
                sigmoid_gradient(mantissa, power, weights, n_front, n, push)
            for i in range(n):
                gradient[first + place[i]] = push[i]
