"""Sinkhorn scaling by two vectors is the scaling of the matrix itself, and so is its gradient."""

import pytest
import torch
from torch import Tensor

from directrank.relaxations import neural_sort
from directrank.relaxations.neural_sort import LEAST, sinkhorn, sorting_matrix


def scaled(matrix: Tensor, rounds: int, tolerance: float) -> Tensor:
    """Columns, then rows divided by their sums, round after round, until both sum to one."""

    def or_one(sums: Tensor) -> Tensor:
        return torch.where(sums > LEAST, sums, 1.0)

    used_rows, used_columns = (matrix > 0).any(2), (matrix > 0).any(1)
    for _ in range(rounds):
        rows, columns = matrix.sum(2), matrix.sum(1)
        off_rows, off_columns = (rows - 1).abs() * used_rows, (columns - 1).abs() * used_columns
        going = torch.maximum(off_rows.amax(1), off_columns.amax(1)) > tolerance
        one = matrix / or_one(columns).unsqueeze(1)
        one = one / or_one(one.sum(2)).unsqueeze(2)
        matrix = torch.where(going.view(-1, 1, 1), one, matrix)
    return matrix


def matrices(scale: float, dtype: torch.dtype = torch.float64) -> Tensor:
    """NeuralSort's matrices of six lists, one of them empty and one with ties."""
    generator = torch.Generator().manual_seed(4)
    scores = torch.randn(6, 23, generator=generator, dtype=torch.float64)
    mask = torch.rand(6, 23, generator=generator) > 0.2
    mask[1] = False
    scores[3] = scores[3].round()
    return sorting_matrix((scale * scores).to(dtype).masked_fill(~mask, 0.0), mask, 1.0)


@pytest.mark.parametrize("rounds", [1, 3, 30])
@pytest.mark.parametrize("tolerance", [0.0, 1e-6, 1e-2])
@pytest.mark.parametrize("scale", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("exact", [True, False])
def test_two_vectors_scale_like_divisions(monkeypatch, exact, scale, tolerance, rounds):
    """With products of matrices, and without them, as where a GPU computes these in TF32."""
    monkeypatch.setattr(neural_sort, "_products_are_exact", lambda matrix: exact)
    weights = torch.linspace(0, 1, 23 * 23, dtype=torch.float64).sin().view(23, 23)
    results = []
    for way in (scaled, sinkhorn):
        matrix = matrices(scale).requires_grad_()
        result = way(matrix, rounds, tolerance)
        (gradient,) = torch.autograd.grad((result * weights).sum(), matrix)
        results.append((result.detach(), gradient))
    (wanted, wanted_gradient), (found, gradient) = results
    assert torch.allclose(found, wanted, atol=1e-12)
    assert torch.allclose(
        gradient, wanted_gradient, atol=1e-10 * max(1, wanted_gradient.abs().max())
    )


def test_rows_first_is_the_scaling_of_the_transposed_matrix():
    matrix = matrices(1.0)
    found = sinkhorn(matrix, 5, 0.0, rows_first=True)
    assert torch.allclose(found, scaled(matrix.mT, 5, 0.0).mT, atol=1e-12)


def test_the_gradient_is_that_of_finite_differences():
    matrix = torch.rand(2, 4, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    assert torch.autograd.gradcheck(lambda x: sinkhorn(x, 9, 0.0), matrix.requires_grad_())


@pytest.mark.parametrize("documents", [50, 1000])
def test_factors_of_a_matrix_that_no_scaling_balances_do_not_overflow(documents):
    """All ranks want the first document, so its factor shrinks with every round."""
    matrix = torch.zeros(1, documents, documents)
    matrix[0, :, 0] = 1.0
    result = sinkhorn(matrix, 50, 1e-6)
    assert torch.allclose(result[0, :, 0], torch.ones(documents))
    assert not result[0, :, 1:].any()
