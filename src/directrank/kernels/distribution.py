"""Precisions and the cascade under a distribution over ranks, on a CPU.

Rank by rank, over the documents that count. Value and gradient come in one pass; of the cascade, a
pass over the documents in each direction gives the products over all others, and their derivatives,
without a division: a document may be certain to end the search.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from directrank.kernels.batch import array, zeros
from directrank.kernels.compiling import compiled, inlined
from directrank.kernels.numbers import like
from directrank.kernels.threads import over_lists


def expected_precisions(probabilities: Tensor, chosen: Tensor) -> Tensor:
    """See :func:`directrank.relaxations.distribution.expected_precisions`."""
    return _Expected.apply(probabilities, chosen, _precisions)


def expected_cascade(probabilities: Tensor, stops: Tensor) -> Tensor:
    """See :func:`directrank.relaxations.distribution.expected_cascade`."""
    return _Expected.apply(probabilities, stops, _cascade)


class _Expected(torch.autograd.Function):
    """Value and gradient at once; what is kept for the gradient is as large as the distribution."""

    @staticmethod
    def forward(ctx, probabilities: Tensor, weights: Tensor, kernel: Callable[..., None]) -> Tensor:
        # Kernels go along documents; a distribution that is a matrix of ranks lies that way.
        by_rank = array(probabilities.mT)
        value = probabilities.new_zeros(len(weights))
        needed = probabilities.requires_grad
        gradient = zeros(probabilities, *(by_rank.shape if needed else (len(weights), 0, 0)))
        over_lists(
            kernel, by_rank.size, len(weights), by_rank, array(weights), needed, value.numpy(),
            gradient.numpy(),
        )  # fmt: skip
        ctx.save_for_backward(gradient)
        return value

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad_output: Tensor) -> tuple[Tensor, None, None]:
        (gradient,) = ctx.saved_tensors
        return (grad_output.view(-1, 1, 1) * gradient).mT, None, None


@inlined
def _with_weight(weights, place):
    """Positions of a list's documents whose weight is not 0, and their number."""
    n = 0
    for j in range(len(weights)):
        place[n] = j
        n += weights[j] != 0
    return n


@inlined
def _add_of_before(of_before, place, n, total, gradient):
    """Add the adjoints of the sums over earlier ranks to the gradient of these ranks."""
    total[:n] = 0
    for r in range(len(of_before) - 1, -1, -1):
        for i in range(n):
            gradient[r, place[i]] += total[i]
            total[i] += of_before[r, i]


@compiled
def _precisions(begin, end, by_rank, chosen, gradient_needed, value, gradient):
    """The expected precisions ``[B]`` and, where needed, their gradient by the probabilities.

    ``by_rank`` and ``gradient``, which is 0 before, are ``[B, r, i]``; ``chosen [B, i]``.
    """
    R, L = by_rank.shape[1:]
    room = np.empty((3, L), by_rank.dtype)
    before, c, p = room[0], room[1], room[2]
    place = np.empty(L + 1, np.int64)
    of_before = np.empty((R if gradient_needed else 0, L), by_rank.dtype)
    one, zero = like(by_rank.dtype.type(0), 1.0), like(by_rank.dtype.type(0), 0.0)
    for b in range(begin, end):
        n = _with_weight(chosen[b], place)
        for i in range(n):
            c[i] = chosen[b, place[i]]
        before[:n] = 0
        total = 0.0
        for r in range(R):
            inverse_rank = one / like(one, r + 1.0)
            at_rank, earlier, itself = zero, zero, zero
            for i in range(n):
                p[i] = by_rank[b, r, place[i]]
            for i in range(n):
                share = c[i] * min(max(before[i], zero), one)
                at_rank += c[i] * p[i]
                earlier += share
                itself += c[i] * p[i] * share
            total += inverse_rank * (at_rank * (one + earlier) - itself)
            if gradient_needed:
                for i in range(n):
                    weight = inverse_rank * c[i]
                    inside = before[i] >= zero and before[i] <= one
                    share = c[i] * min(max(before[i], zero), one)
                    gradient[b, r, place[i]] = weight * (one + earlier - share)
                    of_before[r, i] = weight * (at_rank - c[i] * p[i]) if inside else zero
            for i in range(n):
                before[i] += p[i]
        value[b] = total
        if gradient_needed:
            _add_of_before(of_before, place, n, before, gradient[b])


@compiled
def _cascade(begin, end, by_rank, stops, gradient_needed, value, gradient):
    """The expected cascade ``[B]`` and, where needed, its gradient by the probabilities.

    ``by_rank`` and ``gradient``, which is 0 before, are ``[B, r, i]``; ``stops [B, i]``.
    """
    R, L = by_rank.shape[1:]
    room = np.empty((5, L), by_rank.dtype)
    before, passed, chance, product, reached = room[0], room[1], room[2], room[3], room[4]
    place = np.empty(L + 1, np.int64)
    of_before = np.empty((R if gradient_needed else 0, L), by_rank.dtype)
    one, zero = like(by_rank.dtype.type(0), 1.0), like(by_rank.dtype.type(0), 0.0)
    for b in range(begin, end):
        n = _with_weight(stops[b], place)
        before[:n] = 0
        total = 0.0
        for r in range(R):
            inverse_rank = one / like(one, r + 1.0)
            row = by_rank[b, r]
            all_pass, stopped = one, zero  # every document so far; all but one, which stops
            for i in range(n):
                stop, p = stops[b, place[i]], row[place[i]]
                product[i], reached[i] = all_pass, stopped
                passed[i] = one - stop * min(max(before[i], zero), one)
                chance[i] = stop * p * inverse_rank
                stopped = stopped * passed[i] + chance[i] * all_pass
                all_pass *= passed[i]
                before[i] += p
            total += stopped
            if not gradient_needed:
                continue
            all_pass, stopped = one, zero
            for i in range(n - 1, -1, -1):
                stop, p = stops[b, place[i]], row[place[i]]
                gradient[b, r, place[i]] = stop * inverse_rank * product[i] * all_pass
                start = before[i] - p
                inside = start >= zero and start <= one
                force = -stop * (reached[i] * all_pass + product[i] * stopped)
                of_before[r, i] = force if inside else zero
                stopped = stopped * passed[i] + chance[i] * all_pass
                all_pass *= passed[i]
        value[b] = total
        if gradient_needed:
            _add_of_before(of_before, place, n, before, gradient[b])
