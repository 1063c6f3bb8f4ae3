"""Qin2010's theorems, on random lists."""

from __future__ import annotations

import math

import pytest
import torch

from directrank import losses, metrics
from directrank.relaxations.sigmoid import SigmoidRanking


def instances(count: int, n: int, seed: int):
    """Scores without ties in [0, 1], binary and graded labels, exact ranks."""
    generator = torch.Generator().manual_seed(seed)
    scores = torch.rand(count, n, generator=generator, dtype=torch.float64)
    graded = torch.randint(0, 5, (count, n), generator=generator).double()
    graded[:, 0] = 4
    ranks = scores.argsort(1, descending=True).argsort(1) + 1
    return scores, graded, ranks


def soft_ranks(scores, alpha):
    everyone = torch.ones_like(scores, dtype=torch.bool)
    return SigmoidRanking(scores, everyone, alpha=alpha).ranks(everyone)


def rank_bound(scores, alpha):
    """Theorem 1 per document: (n - 1) / (exp(alpha delta_x) + 1)."""
    n = scores.shape[1]
    gap = (scores.unsqueeze(2) - scores.unsqueeze(1)).abs()
    gap = gap.masked_fill(torch.eye(n, dtype=torch.bool), math.inf).amin(2)
    return (n - 1) / (torch.exp(gap * alpha) + 1)


@pytest.mark.parametrize("alpha", [1.0, 10.0, 100.0, 1000.0])
@pytest.mark.parametrize("n", [2, 5, 40])
def test_theorem_1_bounds_the_error_of_every_position(alpha, n):
    scores, _, ranks = instances(50, n, seed=n)
    error = (soft_ranks(scores, alpha) - ranks).abs()
    assert (error <= rank_bound(scores, alpha) * (1 + 1e-9) + 1e-12).all()
    assert error.max() > 0


def test_theorem_2_bounds_the_error_of_average_precision():
    tested = 0
    for alpha, beta in ((100.0, 10.0), (300.0, 100.0), (1000.0, 20.0), (1000.0, 100.0)):
        scores, graded, ranks = instances(60, 12, seed=int(alpha + beta))
        labels = (graded > 1).double()
        epsilon = (soft_ranks(scores, alpha) - ranks).abs().amax(1)
        approximate = -losses.approx_ap(scores, labels, None, alpha=alpha, beta=beta)
        error = (approximate - metrics.average_precision(scores, labels)).abs()
        for eps, err, R in zip(epsilon, error, labels.sum(1).int(), strict=True):
            if eps < 0.5:
                i = torch.arange(1, int(R) + 1, dtype=torch.float64)
                bound = (1 / (i - eps)).sum() / (1 + torch.exp(beta * (1 - 2 * eps)))
                bound = bound + (2 * eps / (i * (i - eps))).sum()
                assert err <= bound + 1e-12
                tested += 1
    assert tested > 60


def test_theorem_3_bounds_the_error_of_ndcg():
    for alpha in (10.0, 100.0, 300.0, 1000.0):
        scores, graded, ranks = instances(60, 12, seed=int(alpha))
        epsilon = (soft_ranks(scores, alpha) - ranks).abs().amax(1)
        approximate = -losses.approx_ndcg(scores, graded, None, alpha=alpha)
        error = (approximate - metrics.ndcg(scores, graded)).abs()
        assert (error <= epsilon / (2 * math.log(2)) + 1e-12).all()
        assert error.max() > 0


def test_approximations_reach_the_metrics_as_alpha_grows():
    scores, graded, _ = instances(40, 20, seed=1)
    exact = metrics.ndcg(scores, graded)
    errors = [
        (-losses.approx_ndcg(scores, graded, None, alpha=alpha) - exact).abs().mean()
        for alpha in (10.0, 100.0, 1000.0, 1e5, 1e9)
    ]
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 1e-9
