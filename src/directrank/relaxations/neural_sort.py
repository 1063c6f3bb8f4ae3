"""NeuralSort (Grover et al., 2019) with Sinkhorn scaling, as Pobrotyn2021 uses it."""

from __future__ import annotations

import torch
from torch import Tensor


def neural_sort(scores: Tensor, mask: Tensor, tau: float) -> Tensor:
    """Row-stochastic relaxation of the permutation that sorts scores descending.

    Row r is ``softmax(((n + 1 - 2r) s - A) / tau)`` with ``A_i = Σ_j |s_i - s_j|``, n and the sums
    over the real documents alone (Pobrotyn2021 eq. 8).

    Args:
        scores: ``[B, L]``, 0 at masked positions.
        mask: bool ``[B, L]``.
        tau: temperature; towards 0 rows become one-hot.

    Returns:
        ``[B, r, i]``; rows beyond the list and columns of masked documents are 0.
    """
    n = mask.sum(1, keepdim=True)
    ranks = torch.arange(1, scores.shape[1] + 1, dtype=scores.dtype, device=scores.device)
    apart = (scores.unsqueeze(2) - scores.unsqueeze(1)).abs()
    apart = (apart * mask.unsqueeze(1)).sum(2)
    scaling = (n + 1 - 2 * ranks).unsqueeze(2)
    logits = (scaling * scores.unsqueeze(1) - apart.unsqueeze(1)) / tau
    logits = logits.masked_fill(~mask.unsqueeze(1), torch.finfo(scores.dtype).min)
    inside = (ranks <= n).unsqueeze(2) & mask.unsqueeze(1)
    return torch.softmax(logits, 2).masked_fill(~inside, 0.0)


def sinkhorn(matrix: Tensor, iterations: int, tolerance: float) -> Tensor:
    """Scale columns and rows of a non-negative matrix alternately until both sum to one.

    Each matrix stops when every sum of its non-empty rows and columns is within ``tolerance`` of
    one, or after ``iterations`` rounds of columns, then rows.

    Args:
        matrix: ``[B, r, i]``.
        iterations: at most this many rounds; 0 returns the matrix as it is.
        tolerance: see above.

    Returns:
        ``[B, r, i]``.
    """
    used_rows, used_columns = (matrix > 0).any(2), (matrix > 0).any(1)
    for _ in range(iterations):
        rows, columns = matrix.sum(2), matrix.sum(1)
        off = torch.maximum(
            ((rows - 1).abs() * used_rows).amax(1), ((columns - 1).abs() * used_columns).amax(1)
        )
        going = (off > tolerance).view(-1, 1, 1)
        if not bool(going.any()):
            break
        scaled = matrix / _or_one(matrix.sum(1, keepdim=True))
        scaled = scaled / _or_one(scaled.sum(2, keepdim=True))
        matrix = torch.where(going, scaled, matrix)
    return matrix


def gumbel_noise(scores: Tensor, mask: Tensor, generator: torch.Generator | None) -> Tensor:
    """Standard Gumbel noise for the real documents, ``[B, L]``."""
    uniform = torch.rand(
        scores.shape, generator=generator, dtype=scores.dtype, device=scores.device
    )
    tiny = torch.finfo(scores.dtype).tiny
    exponential = (-torch.log(uniform.clamp_min(tiny))).clamp_min(tiny)
    return (-torch.log(exponential)).masked_fill(~mask, 0.0)


def _or_one(sums: Tensor) -> Tensor:
    return torch.where(sums > 0, sums, 1.0)
