"""The gradient of twin-sigmoid ranks on a CPU."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from directrank.kernels.batch import Batch
from directrank.kernels.compiling import compiled, inlined
from directrank.kernels.numbers import like, slope_of
from directrank.kernels.pairs import (
    bounded_power,
    fill_up,
    front_first,
    room_for,
    sigmoid_gradient,
    split_exponentials,
)

TYPES = {"type1": 1, "type2": 2, "type3": 3}


def twin_ranks(
    scores: Tensor, exact: Tensor, labels: Tensor, mask: Tensor, gradient: str, alpha_b: float
) -> Tensor:
    """See :func:`directrank.relaxations.twin.twin_ranks`."""
    return _TwinRanks.apply(scores, exact, labels, mask, TYPES[gradient], float(alpha_b))


class _TwinRanks(torch.autograd.Function):
    """The exact ranks, with the gradient of the chosen type."""

    @staticmethod
    def forward(
        ctx, scores: Tensor, exact: Tensor, labels: Tensor, mask: Tensor, kind: int, alpha: float
    ) -> Tensor:
        ctx.save_for_backward(scores, labels, mask)
        ctx.kind, ctx.alpha = kind, alpha
        return exact.clone()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad_output: Tensor):
        scores, labels, mask = ctx.saved_tensors
        batch = Batch.of_valid(scores, labels, mask)
        gradient = batch.zeros()
        batch.run(
            _twin_gradient,
            batch.pairs,
            *(batch.flat(values) for values in (batch.scores, batch.labels, grad_output)),
            ctx.alpha,
            ctx.kind,
            gradient,
        )
        return batch.padded(gradient), None, None, None, None, None


@compiled
def _twin_gradient(begin, end, starts, lengths, scores, labels, outer, alpha, kind, gradient):
    """``Σ_i outer_i dr_i/ds`` for twin-sigmoid ranks r of type ``kind``; all arrays ``[N]``."""
    L = lengths[begin:end].max()
    place = np.empty(L + 1, np.int64)
    room = np.empty((5, room_for(L)), scores.dtype)
    mantissa, power, weights, push, y = room[0], room[1], room[2], room[3], room[4]
    for b in range(begin, end):
        first, n = starts[b], lengths[b]
        n_front = front_first(outer[first : first + n], place)
        split_exponentials(scores[first : first + n], place, n, alpha, mantissa, power)
        for i in range(n):
            weights[i] = alpha * outer[first + place[i]]
            y[i] = labels[first + place[i]]
        if kind == 1:
            sigmoid_gradient(mantissa, power, weights, n_front, n, push)
        else:
            # Documents that fill the list up are behind all others and below every label, where
            # both types vanish.
            whole = fill_up(n, mantissa, power, -1)
            y[n:] = -np.inf
            push[:] = 0
            for i in range(n_front):
                _twin_row(mantissa, power, y, i, whole, weights[i], kind, push)
        for i in range(n):
            gradient[first + place[i]] = push[i]


@inlined
def _twin_row(mantissa, power, y, i, n, weight, kind, push):
    """The contribution of document i to the gradient under type 2 or 3."""
    one, zero = like(mantissa[0], 1.0), like(mantissa[0], 0.0)
    inverse, own, label = one / mantissa[i], power[i], y[i]
    total = zero
    for j in range(n):
        e = inverse * mantissa[j] * bounded_power(power[j] - own)  # 1 / (1 + e) is Yu2020's b
        s = one / (one + e)
        if kind == 2:
            up, down = slope_of(e, s), slope_of(e, s)
        else:
            up, down = e * s + e * s, s + s
        force = weight * (up if label > y[j] else (-down if label < y[j] else zero))
        push[j] += force
        total += force
    push[i] -= total
