"""NeuralSort (Grover et al., 2019) with Sinkhorn scaling, as Pobrotyn2021 uses it."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from directrank.kernels.dispatch import accelerated
from directrank.lists.gradient import once_differentiable
from directrank.lists.pairs import differences
from directrank.relaxations.distribution import expected_cascade, expected_precisions
from directrank.relaxations.protocol import checks_options, no_cutoff

#: The temperature, the most rounds of scaling, and the tolerance at which it ends.
TAU, ITERATIONS, TOLERANCE = 1.0, 30, 1e-6

#: Smaller sums count as empty, because their squared inverse would overflow float32.
LEAST = 1e-18

#: Rounds of scaling between two looks at whether they can end, and the factor beyond which a matrix
#: is replaced by the scaled one: in so many rounds, factors grow by the power of the documents.
EVERY, LARGE = 4, 1e6


@checks_options
def neural_sort(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor,
    generator: torch.Generator | None = None,
    *,
    tau: float = TAU,
    iterations: int = ITERATIONS,
    tolerance: float = TOLERANCE,
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
    sums are over the real documents only (Pobrotyn2021 eq. 3).

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
    while iterations:
        matrix, done = _Rounds.apply(matrix, iterations, tolerance)
        if not done:
            break
        iterations -= done
    return matrix


class _Rounds(torch.autograd.Function):
    """Rounds of scaling as two vectors, of which ``u M v`` is the scaled matrix.

    A round reads the matrix twice and keeps two vectors, rather than three matrices. The gradient
    by the matrix is that of the result scaled alike, and a sum of outer products ``a ⊗ b`` of the
    gradients by the sums of rows and columns.

    It ends early where factors have become so large that they might overflow. It returns the scaled
    matrix and the number of rounds, which is 0 if all matrices are within the tolerance.
    """

    @staticmethod
    def forward(ctx, matrix: Tensor, iterations: int, tolerance: float) -> tuple[Tensor, int]:
        #: What the sums of rows and columns should be.
        wanted = torch.cat([(matrix > 0).any(2), (matrix > 0).any(1)], 1).to(matrix.dtype)
        u, v = matrix.new_ones(matrix.shape[:2]), matrix.new_ones(matrix.shape[::2])
        rows, by_column = matrix.sum(2), matrix.sum(1)
        #: Of each round: u and v after it, where rows and columns were scaled.
        ctx.rounds = []
        for done in range(iterations):
            columns = v * by_column
            off = torch.linalg.vector_norm(torch.cat([rows, columns], 1) - wanted, torch.inf, 1)
            going = (off > tolerance).unsqueeze(1)
            # A GPU is waited for in every few rounds only.
            if done % EVERY == 0 and not _go_on(going, u, v):
                break
            least = torch.where(going, LEAST, torch.inf)
            scaled_columns = columns > least
            v = torch.where(scaled_columns, by_column.reciprocal(), v)
            by_row = _times(matrix, v)
            scaled_rows = u * by_row > least
            u = torch.where(scaled_rows, by_row.reciprocal(), u)
            rows, by_column = u * by_row, _times(matrix.mT, u)
            ctx.rounds.append((u, v, scaled_rows, scaled_columns))
        ctx.save_for_backward(matrix)
        return matrix * u.unsqueeze(2) * v.unsqueeze(1), len(ctx.rounds)

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient: Tensor, _: None) -> tuple[Tensor, None, None]:
        (matrix,) = ctx.saved_tensors
        if not ctx.rounds:
            return gradient, None, None
        u, v = ctx.rounds[-1][:2]
        both = gradient * matrix
        to_u, to_v = _times(both, v), _times(both.mT, u)
        left, right = [], []
        for number in reversed(range(len(ctx.rounds))):
            u, v, scaled_rows, scaled_columns = ctx.rounds[number]
            to_sums = torch.where(scaled_rows, to_u * u * u, 0.0)  # minus the gradient
            left.append(to_sums)
            right.append(v)
            to_v = _less(to_v, matrix.mT, to_sums)
            to_u = torch.where(scaled_rows, 0.0, to_u)
            to_sums = torch.where(scaled_columns, to_v * v * v, 0.0)
            left.append(ctx.rounds[number - 1][0] if number else torch.ones_like(u))
            right.append(to_sums)
            to_u = _less(to_u, matrix, to_sums)
            to_v = torch.where(scaled_columns, 0.0, to_v)
        u, v = ctx.rounds[-1][:2]
        direct = gradient * u.unsqueeze(2) * v.unsqueeze(1)
        return _less_outer(direct, left, right), None, None


def _go_on(going: Tensor, u: Tensor, v: Tensor) -> bool:
    """Whether any matrix is not within the tolerance, and no factor is near overflow."""
    tame = torch.maximum(u.amax(), v.amax()) < LARGE
    return bool(going.any() & tame)


def _products_are_exact(matrix: Tensor) -> bool:
    """Whether products have the precision of their type, as those in TF32 on a GPU do not."""
    if not matrix.is_cuda or matrix.dtype != torch.float32:
        return True
    try:
        return not torch.backends.cuda.matmul.allow_tf32
    except RuntimeError:  # PyTorch does not say, if it was told in the newer way
        return False


def _times(matrix: Tensor, vector: Tensor) -> Tensor:
    """The product of each matrix with its vector, ``[B, r]`` of ``[B, r, i]`` and ``[B, i]``."""
    if not _products_are_exact(matrix):
        return (matrix * vector.unsqueeze(1)).sum(2)
    return torch.bmm(matrix, vector.unsqueeze(2)).squeeze(2)


def _less(values: Tensor, matrix: Tensor, vector: Tensor) -> Tensor:
    """``values`` minus :func:`_times`."""
    if not _products_are_exact(matrix):
        return values - _times(matrix, vector)
    return torch.baddbmm(values.unsqueeze(2), matrix, vector.unsqueeze(2), alpha=-1).squeeze(2)


def _less_outer(matrix: Tensor, left: list[Tensor], right: list[Tensor]) -> Tensor:
    """``matrix`` minus the outer products ``[B, r, i]`` of vectors ``[B, r]`` and ``[B, i]``."""
    if _products_are_exact(matrix):
        return torch.baddbmm(matrix, torch.stack(left, 2), torch.stack(right, 1), alpha=-1)
    for a, b in zip(left, right, strict=True):
        matrix = matrix.addcmul(a.unsqueeze(2), b.unsqueeze(1), value=-1)
    return matrix
