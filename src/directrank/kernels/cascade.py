"""The cascade under a distribution over ranks, on a CPU.

Rank by rank, one pass over the documents in each direction gives the products over all others, and
their derivatives, without a division: a document may be certain to end the search.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from directrank.kernels.batch import array
from directrank.kernels.compiling import compiled
from directrank.kernels.numbers import like
from directrank.kernels.threads import over_lists


def expected_cascade(probabilities: Tensor, stops: Tensor) -> Tensor:
    """See :func:`directrank.relaxations.distribution.expected_cascade`."""
    return _ExpectedCascade.apply(probabilities, stops)


class _ExpectedCascade(torch.autograd.Function):
    """Value and gradient at once; what is kept for the gradient is as large as the distribution."""

    @staticmethod
    def forward(ctx, probabilities: Tensor, stops: Tensor) -> Tensor:
        # Kernels go along documents; a distribution that is a matrix of ranks lies that way.
        by_rank = array(probabilities.mT)
        value = probabilities.new_zeros(len(stops))
        needed = probabilities.requires_grad
        gradient = torch.zeros_like(probabilities.mT, memory_format=torch.contiguous_format)
        over_lists(
            _cascade, probabilities.numel(), len(stops), by_rank, array(stops), needed,
            value.numpy(), gradient.numpy(),
        )  # fmt: skip
        ctx.save_for_backward(gradient)
        return value

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad_output: Tensor) -> tuple[Tensor, None]:
        (gradient,) = ctx.saved_tensors
        return (grad_output.view(-1, 1, 1) * gradient).mT, None


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
        n = 0
        for j in range(L):
            place[n] = j
            n += stops[b, j] != 0
        before[:n] = 0
        total = 0.0
        for r in range(R):
            inverse_rank = one / like(one, r + 1.0)
            row, target = by_rank[b, r], gradient[b, r]
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
                target[place[i]] = stop * inverse_rank * product[i] * all_pass
                start = before[i] - p
                inside = start >= zero and start <= one
                force = -stop * (reached[i] * all_pass + product[i] * stopped)
                of_before[r, i] = force if inside else zero
                stopped = stopped * passed[i] + chance[i] * all_pass
                all_pass *= passed[i]
        value[b] = total
        if gradient_needed:
            before[:n] = 0
            for r in range(R - 1, -1, -1):
                for i in range(n):
                    gradient[b, r, place[i]] += before[i]
                    before[i] += of_before[r, i]
