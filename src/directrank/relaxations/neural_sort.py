"""NeuralSort (Grover et al., 2019) with Sinkhorn scaling, as Pobrotyn2021 uses it."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from directrank.kernels import accelerated
from directrank.lists.pairs import differences
from directrank.relaxations.distribution import expected_cascade, expected_precisions
from directrank.relaxations.protocol import no_cutoff

#: Smaller sums count as empty, because their squared inverse would overflow float32.
LEAST = 1e-18


def neural_sort(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor,
    generator: torch.Generator | None = None,
    *,
    tau: float = 1.0,
    iterations: int = 30,
    tolerance: float = 1e-6,
    rows_first: bool = False,
) -> SortedDistribution:
    """The distribution over ranks of NeuralSort's matrix after Sinkhorn scaling.

    Args:
        scores: ``[B, L]``, 0 at masked positions.
        labels: not used; every relaxation is given them.
        mask: bool ``[B, L]``.
        generator: not used.
        tau: temperature.
        iterations: the most rounds of scaling; 0 means none.
        tolerance: scaling ends when all sums differ from one by at most this.
        rows_first: whether a round begins with the rows (ranks) or with the columns (documents).
    """
    return SortedDistribution(scores, mask, (tau, iterations, tolerance, rows_first))


class SortedDistribution:
    """The distribution of each document's rank, given by a column of a doubly stochastic matrix.

    Args:
        scores: ``[B, L]``.
        mask: bool ``[B, L]``.
        settings: temperature, rounds, tolerance and ``rows_first`` of :func:`neural_sort`.
    """

    def __init__(
        self, scores: Tensor, mask: Tensor, settings: tuple[float, int, float, bool]
    ) -> None:
        self.scores, self.mask, self.settings = scores, mask, settings

    def weigh(self, gains: Tensor, weight: Callable[[Tensor], Tensor], k: int | None) -> Tensor:
        """See :class:`directrank.relaxations.Ranking`."""
        return self._expectation("weigh", gains, weight(self._ranks(k)))

    def count(self, chosen: Tensor, k: int | None) -> Tensor:
        """See :class:`directrank.relaxations.Ranking`."""
        if k is None:
            raise no_cutoff()
        return self._expectation("weigh", chosen, torch.ones_like(self._ranks(k)))

    def precisions(self, chosen: Tensor, k: int | None) -> Tensor:
        """See :class:`directrank.relaxations.Ranking`."""
        return self._expectation("precisions", chosen, 1 / self._ranks(k))

    def cascade(self, stops: Tensor, k: int | None) -> Tensor:
        """See :class:`directrank.relaxations.Ranking`."""
        return self._expectation("cascade", stops, 1 / self._ranks(k))

    def _ranks(self, k: int | None) -> Tensor:
        L = self.scores.shape[1]
        last = L if k is None else min(k, L)
        return torch.arange(1, last + 1, dtype=self.scores.dtype, device=self.scores.device)

    def _expectation(self, kind: str, weights: Tensor, discounts: Tensor) -> Tensor:
        return sorted_expectation(self.scores, weights, self.mask, discounts, kind, *self.settings)


@accelerated
def sorted_expectation(
    scores: Tensor,
    weights: Tensor,
    mask: Tensor,
    discounts: Tensor,
    kind: str,
    tau: float,
    iterations: int,
    tolerance: float,
    rows_first: bool,
) -> Tensor:
    """An expectation under :func:`sinkhorn` of the :func:`sorting_matrix`.

    Args:
        scores: ``[B, L]``.
        weights: weights of documents, ``[B, L]``: gains, chosen documents, or probabilities of
            stopping.
        mask: bool ``[B, L]``.
        discounts: discounts of the ranks that count, ``[R]``.
        kind: ``weigh``, ``precisions`` or ``cascade`` of :class:`directrank.relaxations.Ranking`.
        tau, iterations, tolerance, rows_first: see :func:`neural_sort`.

    Returns:
        ``[B]``.
    """
    matrix = sinkhorn(sorting_matrix(scores, mask, tau), iterations, tolerance, rows_first)
    probabilities = matrix[:, : len(discounts)].mT
    if kind == "weigh":
        return (weights * (probabilities @ discounts)).sum(1)
    expected = expected_precisions if kind == "precisions" else expected_cascade
    return expected(probabilities, weights)


def sorting_matrix(scores: Tensor, mask: Tensor, tau: float, rows: int | None = None) -> Tensor:
    """Row-stochastic relaxation of the permutation that sorts scores descending.

    Row r is ``softmax(((n + 1 - 2r) s - A) / tau)`` with ``A_i = Σ_j |s_i - s_j|``, where n and the
    sums are over the real documents only (Pobrotyn2021 eq. 8).

    Args:
        scores: ``[B, L]``, 0 at masked positions.
        mask: bool ``[B, L]``.
        tau: temperature; rows become one-hot as it approaches 0.
        rows: return only this many rows; None returns all.

    Returns:
        ``[B, r, i]``; rows beyond the list and columns of masked documents are 0.
    """
    n = mask.sum(1, keepdim=True)
    L = scores.shape[1]
    last = L if rows is None else min(rows, L)
    ranks = torch.arange(1, last + 1, dtype=scores.dtype, device=scores.device)
    distances = (differences(scores).abs() * mask.unsqueeze(1)).sum(2)
    slopes = (n + 1 - 2 * ranks).unsqueeze(2)
    logits = (slopes * scores.unsqueeze(1) - distances.unsqueeze(1)) / tau
    logits = logits.masked_fill(~mask.unsqueeze(1), torch.finfo(scores.dtype).min)
    inside = (ranks <= n).unsqueeze(2) & mask.unsqueeze(1)
    return torch.softmax(logits, 2).masked_fill(~inside, 0.0)


def sinkhorn(matrix: Tensor, iterations: int, tolerance: float, rows_first: bool = False) -> Tensor:
    """Scale columns and rows of a non-negative matrix alternately until both sum to one.

    Each matrix stops when every sum of its non-empty rows and columns is within ``tolerance`` of
    one, or after ``iterations`` rounds of columns, then rows.

    Args:
        matrix: ``[B, r, i]``.
        iterations: at most this many rounds; 0 returns the matrix as it is.
        tolerance: see above.
        rows_first: whether a round scales rows, then columns.

    Returns:
        ``[B, r, i]``.
    """
    if rows_first:
        return sinkhorn(matrix.mT, iterations, tolerance).mT
    used_rows, used_columns = (matrix > 0).any(2), (matrix > 0).any(1)
    for _ in range(iterations):
        rows, columns = matrix.sum(2), matrix.sum(1)
        off = torch.maximum(
            ((rows - 1).abs() * used_rows).amax(1), ((columns - 1).abs() * used_columns).amax(1)
        )
        going = (off > tolerance).view(-1, 1, 1)
        if not bool(going.any()):
            break
        scaled = matrix / _or_one(columns).unsqueeze(1)
        scaled = scaled / _or_one(scaled.sum(2)).unsqueeze(2)
        matrix = torch.where(going, scaled, matrix)
    return matrix


def _or_one(sums: Tensor) -> Tensor:
    return torch.where(sums > LEAST, sums, 1.0)
