"""NeuralNDCG and its transpose are one function without Sinkhorn scaling and when it converged."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from directrank.losses import neural_ndcg, neural_ndcg_transposed
from directrank.relaxations.neural_sort import sinkhorn, sorting_matrix
from directrank.system.seeds import torch_stream

#: Rounds after which scaling of these short lists has come to its end in float64.
MANY = 1000


def lists() -> tuple[Tensor, Tensor, Tensor]:
    stream = torch_stream("transpose")
    mask = torch.arange(12) < torch.tensor([[12], [7], [2]])
    scores = torch.randn(3, 12, generator=stream, dtype=torch.float64) * mask
    labels = torch.randint(0, 5, (3, 12), generator=stream).double() * mask
    labels[:, 0] = 3
    return scores, labels, mask


def value_and_gradient(loss, rounds: int, k: int | None, tau: float) -> tuple[Tensor, Tensor]:
    scores, labels, mask = lists()
    leaf = scores.requires_grad_()
    value = loss(leaf, labels, mask, k=k, tau=tau, iterations=rounds, tolerance=0.0)
    (gradient,) = torch.autograd.grad(value.sum(), leaf)
    return value.detach(), gradient


@pytest.mark.parametrize("rounds", [0, MANY])
@pytest.mark.parametrize("k", [None, 3])
@pytest.mark.parametrize("tau", [0.5, 1.0, 10.0])
def test_values_and_gradients_are_equal_without_scaling_and_at_its_end(rounds, k, tau):
    plain = value_and_gradient(neural_ndcg, rounds, k, tau)
    transposed = value_and_gradient(neural_ndcg_transposed, rounds, k, tau)
    assert torch.allclose(plain[0], transposed[0], atol=1e-9, rtol=0)
    assert torch.allclose(plain[1], transposed[1], atol=1e-7, rtol=0)


def test_after_one_round_they_differ():
    plain, transposed = (
        value_and_gradient(loss, 1, None, 1.0)[0] for loss in (neural_ndcg, neural_ndcg_transposed)
    )
    assert (plain - transposed).abs().max() > 1e-4


@pytest.mark.parametrize("rounds", [1, 2, 5])
def test_the_transpose_is_the_same_bilinear_form_with_rows_scaled_first(rounds):
    scores, labels, mask = lists()
    scores, labels = scores[:1], labels[:1]
    matrix = sorting_matrix(scores, mask[:1], 1.0)
    rows_first = sinkhorn(matrix.mT, rounds, 0.0).mT
    discounts = 1 / torch.log2(torch.arange(2, 14, dtype=torch.float64))
    gains = torch.exp2(labels[0]) - 1
    best = (gains.sort(descending=True).values * discounts).sum()
    expected = -(discounts @ rows_first[0] @ gains) / best
    found = neural_ndcg_transposed(scores, labels, iterations=rounds, tolerance=0.0)
    assert found.item() == pytest.approx(expected.item(), abs=1e-12)


def test_both_orders_of_scaling_have_the_same_limit():
    scores, _, mask = lists()
    matrix = sorting_matrix(scores[:1], mask[:1], 1.0)
    columns_first, rows_first = sinkhorn(matrix, MANY, 0.0), sinkhorn(matrix.mT, MANY, 0.0).mT
    assert torch.allclose(columns_first, rows_first, atol=1e-9, rtol=0)
    assert torch.allclose(columns_first.sum(1), torch.ones(1, 12, dtype=torch.float64))
