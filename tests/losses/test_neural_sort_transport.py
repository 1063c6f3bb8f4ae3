"""NeuralSort with converged Sinkhorn scaling is entropic transport to a grid (see the docs)."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from scipy.special import logsumexp

from directrank.losses import neural_ndcg
from directrank.relaxations.neural_sort import sinkhorn, sorting_matrix
from workflow_runs import ROOT

#: Rounds after which scaling of these lists has come to its end in float64.
MANY = 1000

CASES = [(2, 1.0), (5, 0.5), (12, 0.5), (12, 1.0), (12, 20.0), (25, 5.0)]


def grid(n: int) -> np.ndarray:
    """x of the page: n - 1, n - 3, …, 1 - n."""
    return n + 1 - 2 * np.arange(1, n + 1.0)


def scores_of(n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=n)


def scaled(scores: np.ndarray, tau: float, rounds: int = MANY, **options: bool) -> np.ndarray:
    """The library's matrix after so many rounds, ``[r, i]``."""
    tensor = torch.tensor(scores)[None]
    mask = torch.ones_like(tensor, dtype=torch.bool)
    return sinkhorn(sorting_matrix(tensor, mask, tau), rounds, 0.0, **options)[0].numpy()


def transport(scores: np.ndarray, tau: float, points: np.ndarray | None = None) -> np.ndarray:
    """The plan of least ``Σ T (s - x)² / 2 + τ Σ T log T`` with sums of one, by log potentials."""
    points = grid(len(scores)) if points is None else points
    kernel = -((scores - points[:, None]) ** 2) / (2 * tau)
    left, right = np.zeros(len(scores)), np.zeros(len(scores))
    for _ in range(MANY):
        left = -logsumexp(kernel + right, axis=1)
        before, right = right, -logsumexp(kernel + left[:, None], axis=0)
        if np.abs(right - before).max() < 1e-14:
            break
    return np.exp(kernel + left[:, None] + right)


def expected_ranks(scores: torch.Tensor, tau: float, rounds: int) -> torch.Tensor:
    """``Σ_r r C_ri``, ``[i]``, with a gradient."""
    mask = torch.ones(1, len(scores), dtype=torch.bool)
    matrix = sinkhorn(sorting_matrix(scores[None], mask, tau), rounds, 0.0)[0]
    return torch.arange(1, len(scores) + 1, dtype=scores.dtype) @ matrix


@pytest.mark.parametrize(("n", "tau"), CASES)
def test_the_limit_is_the_plan_of_entropic_transport(n, tau):
    scores = scores_of(n)
    found, plan = scaled(scores, tau), transport(scores, tau)
    np.testing.assert_allclose(plan.sum(0), 1, atol=1e-12)
    np.testing.assert_allclose(plan.sum(1), 1, atol=1e-12)
    np.testing.assert_allclose(found, plan, rtol=0, atol=1e-10)
    other = transport(scores, tau, points=2 * grid(n))
    assert n == 2 or np.abs(other - plan).max() > 1e-3, "the test tells grids apart"


def test_the_plan_is_the_least_by_an_optimiser_that_knows_no_scaling():
    """Of the dual, which has no constraints."""
    scores, tau = scores_of(6), 2.0
    cost = (scores - grid(6)[:, None]) ** 2 / 2

    def dual(potentials: np.ndarray) -> tuple[float, np.ndarray]:
        left, right = potentials[:6], potentials[6:]
        plan = np.exp((left[:, None] + right - cost) / tau)
        value = tau * plan.sum() - potentials.sum()
        return value, np.concatenate([plan.sum(1) - 1, plan.sum(0) - 1])

    best = minimize(dual, np.zeros(12), jac=True, method="BFGS", options={"gtol": 1e-12})
    plan = np.exp((best.x[:6, None] + best.x[6:] - cost) / tau)
    np.testing.assert_allclose(scaled(scores, tau), plan, atol=1e-7)


def test_neural_ndcg_is_a_value_of_the_plan():
    scores, labels = scores_of(9), np.array([0.0, 2, 1, 0, 3, 0, 1, 0, 0])
    gains, discounts = 2**labels - 1, 1 / np.log2(np.arange(2, 11))
    expected = discounts @ transport(scores, 1.0) @ gains / (np.sort(gains)[::-1] @ discounts)
    found = neural_ndcg(
        torch.tensor(scores)[None], torch.tensor(labels)[None], iterations=MANY, tolerance=0.0
    )
    assert found.item() == pytest.approx(-expected, abs=1e-10)


def test_invariances_of_the_limit():
    scores, tau = scores_of(12), 3.0
    limit = scaled(scores, tau)
    np.testing.assert_allclose(scaled(scores + 7, tau), limit, atol=1e-10)
    np.testing.assert_allclose(scaled(4 * scores, 4 * tau), limit, atol=1e-10)
    np.testing.assert_allclose(scaled(-scores, tau), limit[::-1], atol=1e-10)
    # The distances A_i cancel, as any other factor of documents or ranks does.
    bare = torch.tensor(np.exp(np.outer(grid(12), scores) / tau))[None]
    np.testing.assert_allclose(sinkhorn(bare, MANY, 0.0)[0].numpy(), limit, atol=1e-10)
    # A grid a x + b at the temperature a τ.
    other = transport(scores, 2.5 * tau, points=2.5 * grid(12) - 4)
    np.testing.assert_allclose(other, limit, atol=1e-10)


def test_equally_spaced_scores_have_a_symmetric_plan_of_one_vector():
    scores = 0.3 * grid(8) + 1
    limit = scaled(scores, 2.0)
    np.testing.assert_allclose(limit, limit.T, atol=1e-10)
    kernel = np.exp(0.3 * np.outer(grid(8), grid(8)) / 2.0)
    factors = np.sqrt(np.diag(limit) / np.diag(kernel))
    np.testing.assert_allclose(factors[:, None] * kernel * factors, limit, atol=1e-10)
    assert np.abs(scaled(scores_of(8), 2.0) - scaled(scores_of(8), 2.0).T).max() > 0.01


@pytest.mark.slow
@pytest.mark.parametrize("rounds", [1, 3, MANY])
def test_where_columns_sum_to_one_expected_ranks_have_the_order_of_the_scores(rounds):
    for seed in range(20):
        scores = scores_of(12, seed)
        matrix = scaled(scores, 0.7, rounds, rows_first=True)
        order = np.argsort(-scores)
        odds = np.log(matrix[:, order[:-1]] / matrix[:, order[1:]])
        slopes = np.diff(odds, axis=0)
        expected = -2 * (scores[order[:-1]] - scores[order[1:]]) / 0.7
        np.testing.assert_allclose(slopes, np.broadcast_to(expected, slopes.shape), atol=1e-6)
        for weights in (-np.arange(1, 13.0), 1 / np.log2(np.arange(2, 14))):
            assert (np.diff((weights @ matrix)[order]) < 0).all()


def test_without_scaling_that_order_may_be_lost():
    lost = 0
    for seed in range(20):
        scores = scores_of(12, seed)
        ranks = np.arange(1, 13.0) @ scaled(scores, 0.7, 0)
        lost += (np.diff(ranks[np.argsort(-scores)]) < 0).any()
    assert lost > 10


def jacobian(n: int, tau: float, rounds: int) -> torch.Tensor:
    """The derivatives of expected ranks by scores."""
    scores = torch.tensor(scores_of(n))
    return torch.autograd.functional.jacobian(
        lambda leaf: expected_ranks(leaf, tau, rounds), scores
    )


@pytest.mark.parametrize(("n", "tau"), [(5, 0.5), (12, 1.0), (12, 5.0)])
def test_expected_ranks_are_a_gradient_in_the_limit(n, tau):
    slopes = jacobian(n, tau, MANY)
    torch.testing.assert_close(slopes, slopes.T, rtol=0, atol=1e-10)
    assert torch.linalg.eigvalsh(slopes).max() < 1e-10
    assert slopes.diagonal().max() < 0
    torch.testing.assert_close(slopes.sum(1), torch.zeros(n).double(), rtol=0, atol=1e-10)

    def potential(scores: np.ndarray) -> float:
        plan = transport(scores, tau)
        return float((plan * np.outer(grid(n), scores)).sum() - tau * (plan * np.log(plan)).sum())

    scores, step = scores_of(n), 1e-5
    ranks = expected_ranks(torch.tensor(scores), tau, MANY).numpy()
    for i in range(n):
        move = step * np.eye(n)[i]
        slope = (potential(scores + move) - potential(scores - move)) / (2 * step)
        assert slope == pytest.approx(n + 1 - 2 * ranks[i], abs=1e-6)


@pytest.mark.parametrize("rounds", [0, 1])
def test_before_the_limit_a_higher_score_may_have_a_worse_expected_rank(rounds):
    slopes = jacobian(12, 1.0, rounds)
    assert slopes.diagonal().max() > 0.3
    assert (slopes - slopes.T).abs().max() > 1


@pytest.mark.parametrize(("n", "tau"), [(5, 1.0), (12, 1.0), (12, 5.0), (12, 20.0)])
def test_errors_shrink_by_the_square_of_the_second_singular_value(n, tau):
    scores = scores_of(n)
    limit = transport(scores, tau)
    rate = np.linalg.svd(limit, compute_uv=False)[1] ** 2
    errors = np.array([np.abs(scaled(scores, tau, k) - limit).max() for k in range(1, 60)])
    last = np.flatnonzero(errors > 1e-11)[-1]
    assert errors[last] / errors[last - 1] == pytest.approx(rate, rel=0.02)
    spread = (n - 1) * (scores.max() - scores.min()) / (2 * tau)
    assert rate <= math.tanh(spread) ** 2


def test_the_gradient_in_the_limit_needs_no_rounds():
    n, tau = 9, 1.5
    scores = scores_of(n)
    weights = np.random.default_rng(1).normal(size=(n, n))
    leaf = torch.tensor(scores)[None].requires_grad_()
    mask = torch.ones(1, n, dtype=torch.bool)
    value = (sinkhorn(sorting_matrix(leaf, mask, tau), MANY, 0.0)[0] * torch.tensor(weights)).sum()
    (expected,) = torch.autograd.grad(value, leaf)
    plan = transport(scores, tau)
    system = np.block([[np.eye(n), plan], [plan.T, np.eye(n)]])
    both = weights * plan
    factors = np.linalg.lstsq(system, np.concatenate([both.sum(1), both.sum(0)]), rcond=None)[0]
    left = weights - factors[:n, None] - factors[n:]
    found = grid(n) @ (plan * left) / tau
    np.testing.assert_allclose(found, expected[0].numpy(), atol=1e-9)


def rows_of_the_page() -> list[tuple[float, ...]]:
    page = (ROOT / "docs/neural_sort_transport.md").read_text(encoding="utf-8")
    found = re.findall(r"^\| (\d+) \| (\d+) \| ([\d.]+) \| (\d+) \| ([\d.e-]+) \|$", page, re.M)
    return [tuple(map(float, row)) for row in found]


@pytest.mark.slow
def test_the_numbers_of_the_page_are_these():
    rows = rows_of_the_page()
    assert len(rows) == 6
    for documents, tau, rate, rounds, left in rows:
        n = int(documents)
        scores = -np.log1p(-(np.arange(n) + 0.5) / n)
        limit = transport(scores, tau)
        assert np.linalg.svd(limit, compute_uv=False)[1] ** 2 == pytest.approx(rate, abs=6e-4)
        assert np.abs(scaled(scores, tau, 30) - limit).max() == pytest.approx(left, rel=0.06)

        def off(matrix: np.ndarray) -> float:
            return max(np.abs(matrix.sum(axis) - 1).max() for axis in (0, 1))

        before, after = (off(scaled(scores, tau, int(rounds) - one)) for one in (1, 0))
        assert after <= 1e-6 < before
