"""StochasticRank: its estimate against integrals, an author's values, scale and ties."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path

import pytest
import torch
from torch import Tensor

from directrank import losses, metrics
from directrank.lists.conventions import normalised_gains
from directrank.losses._stochastic_rank import noisy_dcg
from losses_cases import random_lists, value_and_gradient

RECORD = json.loads(
    (Path(__file__).parents[1] / "helpers/authors_values.json").read_text(encoding="utf-8")
)


def dcg(gains: Tensor, order: tuple[int, ...], k: int | None) -> Tensor:
    """DCG@k of an order."""
    ordered = gains[list(order)][:k]
    return (ordered / torch.log2(torch.arange(2, len(ordered) + 2).double())).sum()


def expected(means: Tensor, gains: Tensor, sigma: float, k: int | None) -> Tensor:
    """DCG@k of three documents with Gaussian noise, by an integral over the middle one's place."""
    places = torch.linspace(-12, 12, 6001, dtype=torch.float64)
    below = torch.special.ndtr((places - means[:, None]) / sigma)
    density = torch.exp(-(((places - means[:, None]) / sigma) ** 2) / 2)
    density = density / (math.sqrt(2 * math.pi) * sigma)
    total = torch.zeros(()).double()
    for a, b, c in itertools.permutations(range(3)):
        chance = (density[b] * (1 - below[a]) * below[c]).sum() * (places[1] - places[0])
        total = total + chance * dcg(gains, (a, b, c), k)
    return total


@pytest.mark.parametrize("k", [None, 1, 3, 20])
def test_the_estimate_is_the_derivative_of_the_integral_over_a_documents_own_noise(k):
    sigma = 0.6
    means, labels, mask = random_lists(6, 9, seed=14)
    gains = normalised_gains(labels * mask, mask, "exp2", "log2", k)
    noise = sigma * torch.randn(1, 6, 9, generator=torch.Generator().manual_seed(1)).double()
    _, gradient = value_and_gradient(noisy_dcg, means, gains, mask, noise=noise, sigma=sigma, k=k)
    for b in range(3, 6):
        places, m, g = (values[b][mask[b]] for values in (noise[0] + means, means, gains))
        for i in range(len(m)):
            others = [j for j in places.argsort(descending=True).tolist() if j != i]
            mean = m[i].clone().requires_grad_()
            above = torch.special.ndtr((mean - places[others]) / sigma)
            # Rank p: below the p - 1 first of the others, above the rest.
            chances = torch.cat([above, above.new_ones(1)]) - torch.cat([above.new_zeros(1), above])
            orders = [(*others[:p], i, *others[p:]) for p in range(len(m))]
            value = sum(chances[p] * dcg(g, order, k) for p, order in enumerate(orders))
            (exact,) = torch.autograd.grad(value, mean)
            assert gradient[b][mask[b]][i].item() == pytest.approx(exact.item(), abs=1e-12)


@pytest.mark.parametrize("k", [None, 3])
def test_estimates_are_those_of_public_code(k):
    """With its error mended, see ``authors_values.py``."""
    scores = torch.tensor(RECORD["scores"], dtype=torch.float64)
    labels = torch.tensor(RECORD["labels"], dtype=torch.float64)
    mask = torch.ones_like(scores, dtype=torch.bool)
    noise = torch.tensor(RECORD["drawn"]["normal"], dtype=torch.float64)
    gains = normalised_gains(labels, mask, "exp2", "log2", k)
    _, gradient = value_and_gradient(noisy_dcg, scores, gains, mask, noise=noise, sigma=1.0, k=k)
    theirs = torch.tensor(RECORD["drawn"][f"@{k}"]["stochastic_rank"], dtype=torch.float64)
    torch.testing.assert_close(gradient / len(noise), theirs, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("k", "mu"), [(None, 0.0), (1, 0.0), (None, 0.3)])
def test_the_mean_over_draws_is_the_gradient_of_the_smoothed_metric(k, mu):
    """20 000 draws, within four standard errors."""
    sigma = 0.5
    scores = torch.tensor([0.3, -0.2, 1.0], dtype=torch.float64)
    labels = torch.tensor([1.0, 2.0, 0.0], dtype=torch.float64)
    mask = torch.ones(1, 3, dtype=torch.bool)
    gains = normalised_gains(labels[None], mask, "exp2", "log2", k)[0]
    leaf = scores.clone().requires_grad_()
    centred = leaf - leaf.mean()
    means = centred / (centred.square().mean().sqrt() + 0.01) - sigma * mu * labels
    value = -expected(means, gains, sigma, k)
    (gradient,) = torch.autograd.grad(value, leaf)
    many = scores.expand(2000, 3), labels.expand(2000, 3), None
    options = {"k": k, "sigma": sigma, "mu": mu, "samples": 10}
    found, by_scores = value_and_gradient(losses.stochastic_rank, *many, **options)
    root = math.sqrt(2000)
    assert abs(found.mean() - value) < 4 * found.std() / root
    assert ((by_scores.mean(0) - gradient).abs() < 4 * by_scores.std(0) / root).all()
    assert by_scores.std(0).max() / root < 0.003, "and that is close"


def test_place_and_scale_of_the_scores_do_not_matter():
    scores, labels, mask = random_lists(12, 9, seed=17)
    value, gradient = value_and_gradient(losses.stochastic_rank, 1e5 * scores, labels, mask)
    other, other_gradient = value_and_gradient(
        losses.stochastic_rank, 1e7 * scores - 40, labels, mask
    )
    torch.testing.assert_close(other, value)
    torch.testing.assert_close(100 * other_gradient, gradient, rtol=1e-3, atol=1e-10)
    along = (gradient * scores).sum(1).abs()
    assert (along <= 1e-6 * gradient.norm(dim=1) * scores.norm(dim=1)).all()


def test_without_noise_it_is_ndcg_itself():
    scores, labels, mask = random_lists(12, 9, seed=17)
    for k in (None, 3):
        value = losses.stochastic_rank(scores, labels, mask, k=k, sigma=1e-6)
        torch.testing.assert_close(-value, metrics.ndcg(scores, labels, mask, k, empty="zero"))


@pytest.mark.slow
def test_ties_are_their_worst_order_where_the_relevant_are_moved_behind():
    """Consistent smoothing; without it ties are what they are on average."""
    labels = torch.tensor([[2.0, 0, 1, 0, 0], [0, 0, 3, 1, 1]], dtype=torch.float64)
    scores = torch.tensor([[1.0, 1, 1, 0, 1], [0, 0, 0, 0, 0]], dtype=torch.float64)
    behind = losses.stochastic_rank(scores, labels, sigma=1e-4, mu=30.0)
    torch.testing.assert_close(-behind, metrics.ndcg(scores, labels, ties="pessimistic"))
    mean = losses.stochastic_rank(scores, labels, sigma=1e-4, samples=20_000)
    expected = metrics.ndcg(scores, labels, ties="expected")
    torch.testing.assert_close(-mean, expected, atol=0.005, rtol=0)


def test_equal_scores_have_a_gradient():
    labels = torch.tensor([[2.0, 0, 0, 0]], dtype=torch.float64)
    _, gradient = value_and_gradient(
        losses.stochastic_rank, torch.full_like(labels, 7.0), labels, None, samples=50
    )
    assert gradient[0, 0] < 0
    assert (gradient[0, 1:] > 0).all()
