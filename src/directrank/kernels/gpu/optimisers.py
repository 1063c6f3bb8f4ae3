"""Updates of all weights of a stack in one pass on a GPU."""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

from directrank.kernels.gpu.lists import EXACT

BLOCK = 1024


def adagrad(
    weights: Tensor, gradient: Tensor, sums: Tensor, models: Tensor, rates: Tensor, epsilon: float
) -> None:
    """Move the ``weights`` ``[P]`` by Adagrad; ``models`` is int32 ``[P]``, ``rates`` ``[M]``."""
    grid = (triton.cdiv(len(weights), BLOCK),)
    _adagrad[grid](weights, gradient, sums, models, rates, epsilon, len(weights), BLOCK=BLOCK,
                   **EXACT)  # fmt: skip


def adam(
    weights: Tensor,
    gradient: Tensor,
    means: Tensor,
    squares: Tensor,
    models: Tensor,
    moves: Tensor,
    roots: Tensor,
    betas: tuple[float, float],
    epsilon: float,
) -> None:
    """Move the ``weights`` ``[P]`` by Adam.

    ``moves`` and ``roots`` ``[M]`` are the learning rates after the correction of the mean, and the
    roots of that of the squares.
    """
    grid = (triton.cdiv(len(weights), BLOCK),)
    _adam[grid](weights, gradient, means, squares, models, moves, roots, *betas, epsilon,
                len(weights), BLOCK=BLOCK, **EXACT)  # fmt: skip


@triton.jit
def _adagrad(
    weights, gradient, sums, models, rates, epsilon: tl.float64, P, BLOCK: tl.constexpr
):  # fmt: skip
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    there = i < P
    g = tl.load(gradient + i, mask=there, other=0.0)
    total = tl.load(sums + i, mask=there, other=1.0) + g * g
    rate = tl.load(rates + tl.load(models + i, mask=there, other=0), mask=there, other=0.0)
    tl.store(sums + i, total, mask=there)
    move = g * rate / (tl.sqrt(total) + tl.full((), epsilon, g.dtype))
    tl.store(weights + i, tl.load(weights + i, mask=there, other=0.0) - move, mask=there)


@triton.jit
def _adam(
    weights, gradient, means, squares, models, moves, roots, keep: tl.float64,
    keep_square: tl.float64, epsilon: tl.float64, P, BLOCK: tl.constexpr,
):  # fmt: skip
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    there = i < P
    g = tl.load(gradient + i, mask=there, other=0.0)
    rest = tl.full((), 1.0 - keep, g.dtype)
    rest_square = tl.full((), 1.0 - keep_square, g.dtype)
    mean = tl.load(means + i, mask=there, other=0.0)
    mean += (g - mean) * rest
    square = tl.load(squares + i, mask=there, other=0.0) * tl.full((), keep_square, g.dtype)
    square += rest_square * g * g
    model = tl.load(models + i, mask=there, other=0)
    move = tl.load(moves + model, mask=there, other=0.0)
    root = tl.load(roots + model, mask=there, other=1.0)
    tl.store(means + i, mean, mask=there)
    tl.store(squares + i, square, mask=there)
    size = tl.sqrt(square) / root + tl.full((), epsilon, g.dtype)
    w = tl.load(weights + i, mask=there, other=0.0)
    tl.store(weights + i, w - mean * move / size, mask=there)
