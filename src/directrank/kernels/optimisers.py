"""Updates of optimisers, on a CPU.

Each function passes once over vectors of weights and of an optimiser's state, which the cache
cannot hold if layers are wide. Results are, to the last bit, those of PyTorch's operations on
vectors of AVX2, which round a product only together with the sum that it goes into. PyTorch's
square roots are not rounded as a processor rounds them, so that it has to compute them itself.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from directrank.kernels.compiling import compiled_as_written
from directrank.kernels.numbers import multiply_add
from directrank.kernels.threads import over_lists

#: The number of weights that one thread updates at a time.
BLOCK = 1 << 14


def over_weights(kernel: Callable[..., None], weights: np.ndarray, *arguments: object) -> None:
    """Call ``kernel(begin, end, weights, *arguments)`` for ranges of blocks that cover a vector."""
    over_lists(kernel, len(weights), -(-len(weights) // BLOCK), weights, *arguments)


@compiled_as_written
def add_squares(begin, end, sums, gradient):
    """``sums ← sums + gradient²``."""
    first, last = begin * BLOCK, min(end * BLOCK, len(sums))
    sums, gradient = sums[first:last], gradient[first:last]
    for i in range(len(sums)):
        sums[i] = multiply_add(gradient[i], gradient[i], sums[i])


@compiled_as_written
def average(begin, end, means, squares, gradient, steps):
    """The moving averages of a gradient and of its square.

    Args:
        begin, end: the range of blocks.
        means: ``means ← means + steps[0] (gradient - means)``.
        squares: ``squares ← steps[1] squares + steps[2] gradient²``.
        gradient: like both.
        steps: those three factors, in the type of the gradient.
    """
    first, last = begin * BLOCK, min(end * BLOCK, len(means))
    means, squares, gradient = means[first:last], squares[first:last], gradient[first:last]
    to_mean, keep, to_square = steps[0], steps[1], steps[2]
    for i in range(len(means)):
        g = gradient[i]
        means[i] = multiply_add(to_mean, g - means[i], means[i])
        squares[i] = multiply_add(to_square * g, g, squares[i] * keep)


@compiled_as_written
def move(begin, end, weights, ends, models, directions, sizes, rates, roots, epsilon):
    """``weights ← weights - rate · direction / (size / root + epsilon)``.

    Args:
        begin, end: the range of blocks.
        weights: ``[P]``, of all models.
        ends: int64 ``[S]``; each range of weights up to one of them belongs to one model.
        models: int64 ``[S]``, these models.
        directions, sizes: ``[P]``.
        rates, roots: ``[M]``, of each model.
        epsilon: in the type of the weights.
    """
    first, last = begin * BLOCK, min(end * BLOCK, len(weights))
    part = np.searchsorted(ends, first, "right")
    while first < last:
        stop = min(ends[part], last)
        rate, root = rates[models[part]], roots[models[part]]
        own, direction, size = weights[first:stop], directions[first:stop], sizes[first:stop]
        for i in range(len(own)):
            own[i] -= direction[i] * rate / (size[i] / root + epsilon)
        first = stop
        part += 1
