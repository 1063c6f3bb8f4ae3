"""YetiLoss: its weights against integrals and the pairs of CatBoost's weighting, and its limits."""

from __future__ import annotations

import itertools
import math

import pytest
import torch

from directrank import losses
from directrank.lists.conventions import normalised_gains
from directrank.losses._yeti_loss import costs_of_neighbours
from directrank.system.errors import DirectrankError
from losses_cases import random_lists, value_and_gradient


def weighted_pairs(labels, order, neighbours, k):
    """One list and order, as CatBoost's mode NDCG weighs pairs: (better, worse) → weight."""
    n, k = len(labels), k or len(labels)

    def at(document, place):
        return (2 ** labels[document] - 1) / math.log2(place + 2) if place < k else 0.0

    best = sum(
        at(document, place)
        for place, document in enumerate(sorted(range(n), key=lambda i: -labels[i]))
    )
    pairs = {}
    for p, q in itertools.combinations(range(n), 2):
        i, j = order[p], order[q]
        if q - p <= neighbours and labels[i] != labels[j] and best > 0:
            change = at(i, p) + at(j, q) - at(i, q) - at(j, p)
            pairs[(i, j) if labels[i] > labels[j] else (j, i)] = abs(change) / best
    return pairs


def cost(scores, pairs):
    """The weighted logistic costs of pairs."""
    return sum(
        weight * math.log1p(math.exp(-(scores[i] - scores[j]))) for (i, j), weight in pairs.items()
    )


@pytest.mark.parametrize(("neighbours", "k"), [(1, None), (1, 3), (4, None), (3, 2), (50, 5)])
def test_costs_of_given_orders_are_those_of_the_pairs(neighbours, k):
    scores, labels, mask = random_lists(7, 10, seed=3)
    gains = normalised_gains(labels * mask, mask, "exp2", "log2", k)
    noise = torch.randn(3, 7, 10, generator=torch.Generator().manual_seed(1))
    orders = (scores + noise).masked_fill(~mask, -math.inf).argsort(2, descending=True)
    value = costs_of_neighbours(scores, gains, mask, [orders], neighbours, k)
    for b in range(3, 7):
        n, (s, y) = int(mask[b].sum()), (scores[b].tolist(), labels[b].tolist())
        real = mask[b].nonzero().flatten().tolist()
        places = {document: place for place, document in enumerate(real)}
        total = 0.0
        for order in orders[:, b, :n].tolist():
            pairs = weighted_pairs([y[i] for i in real], [places[i] for i in order], neighbours, k)
            total += cost([s[i] for i in real], pairs)
        assert value[b].item() == pytest.approx(total, rel=1e-12)


def test_the_gradient_equals_finite_differences_while_the_orders_stand():
    scores, labels, mask = random_lists(6, 9, seed=2)
    gains = normalised_gains(labels * mask, mask, "exp2", "log2", 4)
    noise = torch.randn(3, 6, 9, generator=torch.Generator().manual_seed(1))
    orders = (scores + noise).masked_fill(~mask, -math.inf).argsort(2, descending=True)

    def of(scores):
        return costs_of_neighbours(scores, gains, mask, [orders], 3, 4)

    assert torch.autograd.gradcheck(of, scores.requires_grad_(), eps=1e-6, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize(("k", "noise"), [(None, 1.0), (1, 1.0), (None, 0.4)])
def test_the_mean_over_draws_is_that_of_integrals(k, noise):
    """Orders of three documents with logistic noise, by an integral over the middle one's place;
    20 000 draws, within four standard errors."""
    scores = torch.tensor([0.3, -0.2, 1.0], dtype=torch.float64)
    labels = [1.0, 2.0, 0.0]
    places = torch.linspace(-40, 40, 40_001, dtype=torch.float64)
    below = torch.sigmoid((places - scores[:, None]) / noise)
    density = below * (1 - below) / noise
    expected = 0.0
    for a, b, c in itertools.permutations(range(3)):
        chance = (density[b] * (1 - below[a]) * below[c]).sum() * (places[1] - places[0])
        expected += chance.item() * cost(scores.tolist(), weighted_pairs(labels, [a, b, c], 1, k))
    value = losses.yeti_loss(
        scores.expand(2000, 3), torch.tensor(labels).double().expand(2000, 3),
        k=k, noise=noise, generator=torch.Generator().manual_seed(2),
    )  # fmt: skip
    error = value.std().item() / math.sqrt(2000)
    assert abs(value.mean().item() - expected) < 4 * error
    assert error < 0.004, "and that is close"


def test_without_noise_neighbours_are_those_of_the_lambda_family():
    scores, labels, mask = random_lists(12, 20, seed=2)
    found = value_and_gradient(losses.yeti_loss, scores, labels, mask, noise=0.0, samples=2)
    plain = value_and_gradient(losses.lambda_family, scores, labels, mask, pairs="neighbours")
    torch.testing.assert_close(found, plain)


def test_without_noise_all_neighbours_are_lambdarank():
    scores, labels, mask = random_lists(12, 20, seed=2)
    options = {"noise": 0.0, "samples": 1, "neighbours": 20}
    found = value_and_gradient(losses.yeti_loss, scores, labels, mask, **options)
    torch.testing.assert_close(found, value_and_gradient(losses.lambdarank, scores, labels, mask))


def test_two_documents_are_neighbours_whatever_is_drawn():
    scores = torch.tensor([[0.4, 1.1]], dtype=torch.float64)
    labels = torch.tensor([[1.0, 0.0]], dtype=torch.float64)
    plain = value_and_gradient(losses.lambdarank, scores, labels, None)
    torch.testing.assert_close(value_and_gradient(losses.yeti_loss, scores, labels, None), plain)


def test_no_neighbour_is_refused():
    with pytest.raises(DirectrankError, match="1 or more"):
        losses.yeti_loss(torch.zeros(2, 3), torch.ones(2, 3), neighbours=0)
