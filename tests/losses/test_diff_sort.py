"""Differentiable sorting networks: they sort, they are the authors', and they mix without loss."""

from __future__ import annotations

import pytest
import torch

from directrank import losses
from directrank.lists.sorting_networks import sorting_network
from directrank.relaxations.diff_sort import compare, diff_sort, mixed
from directrank.system.errors import ArgumentError
from losses_cases import random_lists

FALLING = torch.tensor([[1.4, 0.9, 0.5, 0.2, -0.6]], dtype=torch.float64)
#: Of each network and distribution, the first row of the authors' matrix (diffsort 0.2.0) at a
#: steepness of 3: how the best document of five is distributed over the ranks.
RECORDED = {
    ("bitonic", "cauchy"): [
        0.4153050087629,
        0.3549632235437,
        0.1160830682859,
        0.1074545748475,
        0.0061941245600,
    ],
    ("bitonic", "logistic"): [
        0.4594902679091,
        0.3826555853007,
        0.0795028908290,
        0.0767655309572,
        0.0015857250040,
    ],
    ("odd_even", "cauchy"): [
        0.7002883095483,
        0.2139823802046,
        0.0789930719267,
        0.0056296603084,
        0.0011065780119,
    ],
    ("odd_even", "logistic"): [
        0.7240421919672,
        0.1911581091302,
        0.0775817083313,
        0.0064534357909,
        0.0007645547804,
    ],
}


def matrix(scores, mask=None, **options):
    """The probabilities of documents at ranks, ``[B, i, r]``."""
    mask = torch.ones_like(scores, dtype=torch.bool) if mask is None else mask
    return diff_sort(scores, scores, mask, **options).first(None)


@pytest.mark.parametrize("n", [*range(18), 31, 33])
@pytest.mark.parametrize("network", ["bitonic", "odd_even"])
def test_with_hard_comparisons_a_network_sorts(network, n):
    values = torch.randn(100, n, generator=torch.Generator().manual_seed(n))
    for (first, second), stays in compare(
        values, sorting_network(network, n), lambda lead: (lead >= 0).float()
    ):
        values = mixed(values, first, second, stays)
    assert (values.diff(dim=1) <= 0).all()


def test_the_layers_are_as_many_as_the_networks_are_known_to_have():
    assert [len(sorting_network("bitonic", n)) for n in (1, 2, 4, 5, 8, 16)] == [0, 1, 3, 6, 6, 10]
    assert [len(sorting_network("odd_even", n)) for n in (1, 2, 5, 8)] == [0, 2, 5, 8]


@pytest.mark.parametrize(("network", "distribution"), RECORDED)
def test_matrices_are_the_authors(network, distribution):
    found = matrix(FALLING, alpha=3.0, network=network, distribution=distribution)
    expected = torch.tensor(RECORDED[network, distribution], dtype=torch.float64)
    torch.testing.assert_close(found[0, 0], expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("network", ["bitonic", "odd_even"])
def test_documents_and_ranks_have_probabilities_that_sum_to_one(network):
    scores, _, mask = random_lists(6, 9, seed=3)
    shown = scores.masked_fill(~mask, 0.0)
    found = matrix(shown, mask, network=network)
    assert (found >= 0).all()
    torch.testing.assert_close(found.sum(2), mask.double())
    torch.testing.assert_close(found.sum(1), (torch.arange(9) < mask.sum(1, keepdim=True)).double())


def test_of_two_documents_the_better_one_is_first_with_the_probability_of_a_comparison():
    found = matrix(torch.tensor([[0.2, 0.5]]).double(), alpha=2.0, distribution="logistic")
    stays = torch.sigmoid(torch.tensor(0.6).double()).item()
    expected = torch.tensor([[[1 - stays, stays], [stays, 1 - stays]]], dtype=torch.float64)
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("metric", ["ndcg", "precision"])
def test_weights_that_go_back_give_what_probabilities_give(metric):
    """The one way is for sums over ranks, the other for metrics that need more."""
    scores, labels, mask = random_lists(6, 9, seed=4)
    shown = scores.masked_fill(~mask, 0.0)
    value = -losses.compose({"name": metric, "k": 3}, "diff_sort")(scores, labels, mask)
    probabilities = matrix(shown, mask)[:, :, :3]
    if metric == "precision":
        expected = ((labels > 0)[:, :, None] * probabilities).sum((1, 2)) / 3
    else:
        gains = (2**labels - 1) * mask
        discounts = 1 / torch.log2(torch.arange(2, 5).double())
        best = gains.sort(1, descending=True).values[:, :3] @ discounts
        expected = (gains * (probabilities @ discounts)).sum(1) / best.clamp_min(1e-9)
    torch.testing.assert_close(value, expected)


def test_with_the_odd_even_network_the_loss_is_diff_ndcg_of_preference_optimisation():
    """The values of ``SimpleDiffNDCGLoss`` of Zhou et al. (2024), whose loss is 1 - NDCG; they add
    1e-10 to the best DCG."""
    scores = torch.tensor([[1.4, 0.9, 0.5, 0.2, -0.1, -0.6]], dtype=torch.float64)
    labels = torch.tensor([[1.0, 2.0, 0.0, 3.0, 1.0, 0.0]], dtype=torch.float64)
    value = losses.diff_sort_ndcg(scores.requires_grad_(), labels, network="odd_even")
    (gradient,) = torch.autograd.grad(value.sum(), scores)
    assert 1 + value.item() == pytest.approx(0.345051874424283, abs=1e-10)
    recorded = [
        0.0228622491966,
        -0.0315966578057,
        0.0477267453439,
        -0.0522841923760,
        0.0113779082863,
        0.0019139473549,
    ]
    assert gradient[0].tolist() == pytest.approx(recorded, abs=1e-9)


def test_an_unknown_network_or_distribution_is_refused():
    scores = torch.zeros(1, 3)
    for options in ({"network": "bubble"}, {"distribution": "normal"}):
        with pytest.raises(ArgumentError, match="choose one of"):
            losses.diff_sort_ndcg(scores, scores, **options)
