"""PL-Rank-3: unbiased by enumeration of all orders, the author's values, and its draws."""

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
from directrank.losses._pl_rank import drawn_dcg
from losses_cases import random_lists, value_and_gradient

RECORD = json.loads(
    (Path(__file__).parents[1] / "helpers/authors_values.json").read_text(encoding="utf-8")
)
SCORES = torch.tensor([0.3, -0.7, 1.1, 0.2, -0.1], dtype=torch.float64)
#: Every order of five documents.
ORDERS = torch.tensor(list(itertools.permutations(range(5))))


def chances(scores: Tensor) -> Tensor:
    """The probability that Plackett-Luce gives each order."""
    ordered = scores[ORDERS]
    return torch.exp((ordered - ordered.flip(1).logcumsumexp(1).flip(1)).sum(1))


def expected(scores: Tensor, gains: Tensor, k: int | None) -> Tensor:
    """DCG@k over all orders."""
    ordered = gains[ORDERS][:, :k]
    dcg = (ordered / torch.log2(torch.arange(2, ordered.shape[1] + 2).double())).sum(1)
    return chances(scores) @ dcg


def of_every_order(scores: Tensor, gains: Tensor, k: int | None):
    """The estimate of value and gradient by each order of one list."""
    lists = scores.expand(ORDERS.shape), gains.expand(ORDERS.shape)
    mask = torch.ones(ORDERS.shape, dtype=torch.bool)
    return value_and_gradient(drawn_dcg, *lists, mask, orders=[ORDERS[None]], k=k)


@pytest.mark.parametrize("k", [None, 1, 2, 4, 9])
@pytest.mark.parametrize(
    "labels", [[2, 0, 0, 1, 3], [0, 0, 1, 0, 0], [1, 1, 1, 1, 1], [3, 0, 2, -1, 0]]
)
def test_the_estimate_of_all_orders_by_their_chances_is_the_gradient_of_the_expectation(labels, k):
    gains = 2.0 ** torch.tensor(labels, dtype=torch.float64) - 1
    for scores in (SCORES, 8 * SCORES, 400 * SCORES):  # the last are too far apart for exponentials
        leaf = scores.clone().requires_grad_()
        value = expected(leaf, gains, k)
        (gradient,) = torch.autograd.grad(value, leaf)
        of_value, of_gradient = of_every_order(scores, gains, k)
        assert (chances(scores) @ of_value).item() == pytest.approx(value.item(), rel=1e-12)
        by_scores = chances(scores) @ of_gradient
        torch.testing.assert_close(by_scores, gradient, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("k", [None, 3])
def test_estimates_are_the_authors(k):
    scores = torch.tensor(RECORD["scores"], dtype=torch.float64)
    labels = torch.tensor(RECORD["labels"], dtype=torch.float64)
    mask = torch.ones_like(scores, dtype=torch.bool)
    orders = (scores + torch.tensor(RECORD["drawn"]["gumbel"]).double()).argsort(2, descending=True)
    gains = normalised_gains(labels, mask, "exp2", "log2", k)
    _, gradient = value_and_gradient(drawn_dcg, scores, gains, mask, orders=[orders], k=k)
    theirs = torch.tensor(RECORD["drawn"][f"@{k}"]["pl_rank"], dtype=torch.float64)
    torch.testing.assert_close(gradient / len(orders), theirs, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("k", [None, 2])
def test_draws_of_the_loss_are_plackett_luces(k):
    """Mean of 400 calls with 50 draws each, within four of its standard errors."""
    labels = torch.tensor([[2.0, 0, 0, 1, 3]], dtype=torch.float64)
    gains = normalised_gains(labels, torch.ones(1, 5, dtype=torch.bool), "exp2", "log2", k)[0]
    leaf = SCORES.clone().requires_grad_()
    value = -expected(leaf, gains, k)
    (gradient,) = torch.autograd.grad(value, leaf)
    many = SCORES.expand(400, 5), labels.expand(400, 5), None
    stream = torch.Generator().manual_seed(3)
    found, by_scores = value_and_gradient(losses.pl_rank, *many, k=k, samples=50, generator=stream)
    assert abs(found.mean() - value) < 4 * found.std() / 20
    assert ((by_scores.mean(0) - gradient).abs() < 4 * by_scores.std(0) / 20).all()
    assert by_scores.std(0).max() / 20 < 0.003, "and that is close"


def test_far_apart_scores_give_ndcg_itself():
    scores, labels, mask = random_lists(12, 9, seed=17)
    for k in (None, 3):
        value = losses.pl_rank(1e5 * scores, labels, mask, k=k)
        torch.testing.assert_close(-value, metrics.ndcg(scores, labels, mask, k, empty="zero"))


def test_more_draws_scatter_less():
    scores, labels, _ = random_lists(3, 8, seed=3)
    many = scores[2:].expand(600, 8), labels[:1].expand(600, 8) + torch.arange(8) % 3, None
    few, more = (losses.pl_rank(*many, samples=samples).std() for samples in (2, 32))
    assert (few / more).item() == pytest.approx(math.sqrt(16), rel=0.25)


def test_a_value_is_between_no_gain_and_the_best_order():
    scores, labels, mask = random_lists(40, 12, seed=6)
    value = losses.pl_rank(scores, labels, mask, k=5)
    assert ((value >= -1 - 1e-12) & (value <= 0)).all()
