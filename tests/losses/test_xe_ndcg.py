"""XE-NDCG: its formula, its expectation, and the gradients that LightGBM takes."""

from __future__ import annotations

import lightgbm
import numpy as np
import pytest
import torch

from directrank import losses
from directrank.losses._xe_ndcg import cross_entropy
from losses_cases import random_lists, value_and_gradient


def test_the_loss_is_the_cross_entropy_with_the_drawn_target():
    scores, labels, mask = random_lists(6, 9, seed=5)
    found, gradient = value_and_gradient(
        losses.xe_ndcg, scores, labels, mask, generator=torch.Generator().manual_seed(3)
    )
    stream = torch.Generator().manual_seed(3)
    gamma = torch.rand(6, 9, generator=stream, dtype=torch.float64)
    for b in range(6):
        s, target = scores[b][mask[b]], (2 ** labels[b] - gamma[b])[mask[b]]
        if len(s) == 0:
            assert found[b] == 0
            continue
        share = target / target.sum()
        value = -(share * s.log_softmax(0)).sum()
        assert found[b].item() == pytest.approx(value.item(), rel=1e-12)
        torch.testing.assert_close(gradient[b][mask[b]], s.softmax(0) - share)


def test_the_expectation_over_gamma_is_that_of_an_integral():
    """Of two documents, whose first has a share of the target that is integrated on a grid."""
    scores = torch.tensor([[0.4, -0.3]], dtype=torch.float64)
    labels = torch.tensor([[1.0, 0.0]], dtype=torch.float64)
    gamma = (torch.arange(2000, dtype=torch.float64) + 0.5) / 2000
    share = ((2 - gamma[:, None]) / (3 - gamma[:, None] - gamma)).mean()
    logs = scores[0].log_softmax(0)
    expected = -(share * logs[0] + (1 - share) * logs[1])
    value, gradient = value_and_gradient(
        losses.xe_ndcg, scores.expand(20_000, 2), labels.expand(20_000, 2), None
    )
    for found, exact in (
        (value, expected),
        (gradient[:, 0], scores[0].softmax(0)[0] - share),
    ):
        assert abs(found.mean() - exact) < 4 * found.std() / 20_000**0.5


def test_the_gradient_equals_finite_differences_for_a_given_target():
    scores, _, mask = random_lists(5, 9, seed=2)
    powers, gamma = 1 + torch.rand(5, 9).double(), torch.rand(5, 9).double()

    def of(scores):
        return cross_entropy(scores, powers, gamma, mask)

    assert torch.autograd.gradcheck(of, scores.requires_grad_())


def test_the_first_order_term_is_lightgbms():
    """A tree with a leaf per document has the gradients over the second derivatives in its leaves.

    LightGBM adds two approximate terms of higher order to a gradient, which are put on here; its
    draws are those of its linear congruential generator, which begins at the seed.
    """
    labels = np.array([0.0, 2, 1, 0, 3, 0, 1])
    n, state = len(labels), 5
    gamma = np.empty(n)
    for i in range(n):
        state = (214013 * state + 2531011) % 2**32
        gamma[i] = ((state >> 16) & 0x7FFF) / 32768
    settings = {
        "objective": "rank_xendcg", "objective_seed": 5, "num_leaves": n, "min_data_in_leaf": 1,
        "min_sum_hessian_in_leaf": 0, "learning_rate": 1.0, "min_data_in_bin": 1, "verbose": -1,
        "min_gain_to_split": 0.0, "feature_pre_filter": False, "num_threads": 1,
    }  # fmt: skip
    features = np.eye(n)
    data = lightgbm.Dataset(features, labels, group=[n], params=settings)
    leaves = lightgbm.train(settings, data, num_boost_round=1).predict(features)
    _, gradient = value_and_gradient(
        lambda s, y, mask: cross_entropy(s, 2**y, torch.from_numpy(gamma)[None], mask),
        torch.zeros(1, n, dtype=torch.float64),
        torch.from_numpy(labels)[None],
        torch.ones(1, n, dtype=torch.bool),
    )
    first, rho = gradient[0].numpy(), 1 / n
    total = term = first
    for _ in range(2):
        over = term / (1 - rho)
        term = rho * (over.sum() - over)
        total = total + term
    np.testing.assert_allclose(leaves, -total / (rho * (1 - rho)), rtol=1e-5, atol=1e-6)
