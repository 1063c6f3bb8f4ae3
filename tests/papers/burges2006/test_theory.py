"""Burges2006 section 4: forces on documents, when they are those of a potential, and section 5."""

from __future__ import annotations

import pytest
import torch
from torch.autograd.functional import hessian

from directrank import losses
from losses_cases import random_lists, value_and_gradient


@pytest.mark.parametrize("name", ["ranknet", "lambdarank"])
@pytest.mark.parametrize("k", [None, 4])
def test_forces_of_a_query_sum_to_zero(name, k):
    scores, labels, mask = random_lists(20, 15, seed=1)
    _, gradient = value_and_gradient(losses.get(name), scores, labels, mask, k=k)
    torch.testing.assert_close(
        gradient.sum(1), torch.zeros(20, dtype=torch.float64), atol=1e-12, rtol=0
    )
    assert gradient.abs().max() > 1e-3


@pytest.mark.parametrize("name", ["ranknet", "lambdarank"])
def test_forces_of_a_pair_are_equal_and_opposite(name):
    """Alone in a list with documents of its own label, a pair's forces can be told apart."""
    scores = torch.tensor([[0.3, -0.4]], dtype=torch.float64)
    labels = torch.tensor([[2.0, 1.0]], dtype=torch.float64)
    _, gradient = value_and_gradient(losses.get(name), scores, labels, None)
    assert gradient[0, 0] < 0 < gradient[0, 1]
    assert gradient[0, 0].item() == pytest.approx(-gradient[0, 1].item())


def test_the_more_relevant_document_is_pushed_up_whatever_the_order():
    labels = torch.tensor([[1.0, 0.0]])
    for scores in (torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0]])):
        _, gradient = value_and_gradient(losses.lambdarank, scores, labels, None)
        assert gradient[0, 0] < 0 < gradient[0, 1]


def test_ranknet_cost_of_a_pair_is_equation_8():
    s = torch.tensor([[1.3, 0.2]], dtype=torch.float64)
    value, gradient = value_and_gradient(losses.ranknet, s, torch.tensor([[1.0, 0.0]]), None)
    i, j = s[0]
    assert value.item() == pytest.approx((j - i + torch.log(1 + torch.exp(i - j))).item())
    assert -gradient[0, 0].item() == pytest.approx((1 / (1 + torch.exp(i - j))).item())


@pytest.mark.parametrize("name", ["ranknet", "lambdarank"])
def test_jacobian_of_the_forces_is_symmetric_while_the_order_stands(name):
    """Equation 5 and Poincaré's lemma: then the forces are the gradient of a cost.

    LambdaRank's weights are constants of its gradient, so the Jacobian is taken numerically.
    """
    scores = random_lists(3, 7, seed=5)[0][:1]
    labels = torch.tensor([[0.0, 3, 1, 0, 2, 4, 1]], dtype=torch.float64)
    loss = losses.get(name)

    def force(s):
        return value_and_gradient(loss, s, labels, None)[1][0]

    step = 1e-5
    columns = []
    for i in range(7):
        shift = torch.zeros_like(scores)
        shift[0, i] = step
        columns.append((force(scores + shift) - force(scores - shift)) / (2 * step))
    matrix = torch.stack(columns, 1)
    torch.testing.assert_close(matrix, matrix.T, atol=1e-8, rtol=1e-6)
    assert (matrix - torch.diag(matrix.diagonal())).abs().max() > 1e-3


def test_jacobian_of_ranknets_forces_is_positive_semidefinite():
    """RankNet's cost is convex in the scores."""
    scores = random_lists(3, 6, seed=8)[0][:1]
    labels = torch.tensor([[0.0, 3, 1, 0, 2, 4]], dtype=torch.float64)

    def cost(s):
        i, j = torch.nonzero(labels[0].unsqueeze(1) > labels[0].unsqueeze(0), as_tuple=True)
        return torch.nn.functional.softplus(s[j] - s[i]).sum()

    def force(s):
        return value_and_gradient(losses.ranknet, s[None], labels, None)[1][0]

    exact = hessian(cost, scores[0])
    step = 1e-5
    numeric = torch.stack(
        [(force(scores[0] + step * e) - force(scores[0] - step * e)) / (2 * step)
         for e in torch.eye(6, dtype=torch.float64)], 1,
    )  # fmt: skip
    torch.testing.assert_close(numeric, exact, atol=1e-7, rtol=1e-5)
    assert torch.linalg.eigvalsh(exact).min() > -1e-10


def test_swapping_a_pair_in_the_order_breaks_lambdaranks_potential():
    """Across a change of order the forces jump: there is no one cost behind them."""
    labels = torch.tensor([[2.0, 1.0, 0.0]], dtype=torch.float64)

    def force(gap):
        scores = torch.tensor([[0.0, gap, -1.0]], dtype=torch.float64)
        return value_and_gradient(losses.lambdarank, scores, labels, None)[1][0]

    assert (force(1e-9) - force(-1e-9)).abs().max() > 0.05


def test_accumulated_forces_give_the_gradient_of_pairwise_backpropagation():
    """Section 5: n forward and backward passes with lambdas equal two per pair."""
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(1, 8, 5, generator=generator, dtype=torch.float64)
    labels = torch.randint(0, 4, (1, 8), generator=generator).double()
    net = torch.nn.Sequential(
        torch.nn.Linear(5, 10), torch.nn.Tanh(), torch.nn.Linear(10, 1)
    ).double()
    losses.ranknet(net(features).squeeze(2), labels).sum().backward()
    fast = [p.grad.clone() for p in net.parameters()]
    net.zero_grad()
    for i in range(8):
        for j in range(8):
            if labels[0, i] > labels[0, j]:
                s_i, s_j = net(features[0, i]), net(features[0, j])
                (s_j - s_i + torch.log(1 + torch.exp(s_i - s_j))).sum().backward()
    torch.testing.assert_close(fast, [p.grad for p in net.parameters()])
