"""Losses that Rax, TF-Ranking and allRank have: closed forms, limits and what relates them."""

from __future__ import annotations

import math

import pytest
import torch

from directrank import losses
from directrank.system.errors import ArgumentError
from losses_cases import random_lists, value_and_gradient


def test_with_one_relevant_document_softmax_cross_entropy_is_a_classifiers():
    scores, _, _ = random_lists(6, 9, seed=3)
    target = torch.tensor([0, 3, 8, 1, 1, 5])
    labels = torch.nn.functional.one_hot(target, 9).double()
    expected = torch.nn.functional.cross_entropy(scores, target, reduction="none")
    for loss in (losses.softmax_cross_entropy, losses.unique_softmax):
        torch.testing.assert_close(loss(scores, labels), expected)


def test_raw_labels_weight_a_query_by_their_sum():
    scores, labels, mask = random_lists(8, 9, seed=4)
    raw = value_and_gradient(losses.softmax_cross_entropy, scores, labels, mask)
    normal = value_and_gradient(losses.softmax_cross_entropy, scores, labels, mask, normalize=True)
    total = (labels * mask).sum(1)
    torch.testing.assert_close(raw[0], total * normal[0])
    torch.testing.assert_close(raw[1], total[:, None] * normal[1])
    assert (normal[0][total > 0] > 0).all()


def test_the_gradient_of_softmax_cross_entropy_is_probability_minus_target():
    scores, labels, mask = random_lists(8, 9, seed=5)
    _, gradient = value_and_gradient(
        losses.softmax_cross_entropy, scores, labels, mask, normalize=True
    )
    for b in range(3, 8):
        s, y = scores[b][mask[b]], labels[b][mask[b]]
        torch.testing.assert_close(gradient[b][mask[b]], s.softmax(0) - y / y.sum())


def test_poly1_adds_to_one_coefficient_of_the_series_of_cross_entropy():
    """With one relevant document -log p = Σ (1 - p)^j / j."""
    scores, _, _ = random_lists(6, 5, seed=6)
    labels = torch.zeros_like(scores)
    labels[:, 2] = 1
    missed = 1 - scores.softmax(1)[:, 2]
    series = sum(missed**j / j for j in range(1, 2000))
    for epsilon in (-1.0, 0.0, 2.5):
        found = losses.poly1(scores, labels, epsilon=epsilon)
        torch.testing.assert_close(found, series + epsilon * missed, rtol=1e-6, atol=1e-6)


def test_without_epsilon_poly1_is_softmax_cross_entropy():
    scores, labels, mask = random_lists(8, 9, seed=7)
    found = value_and_gradient(losses.poly1, scores, labels, mask, epsilon=0.0)
    expected = value_and_gradient(losses.softmax_cross_entropy, scores, labels, mask)
    torch.testing.assert_close(found, expected)


def test_of_two_levels_unique_softmax_lets_relevant_documents_not_compete():
    scores, labels, mask = random_lists(8, 12, seed=8, levels=2)
    value = losses.unique_softmax(scores, labels, mask)
    for b in range(3, 8):
        s, relevant = scores[b][mask[b]], labels[b][mask[b]] > 0
        others = torch.logsumexp(s[~relevant], 0)
        expected = torch.log1p(torch.exp(others - s[relevant])).sum()
        assert value[b].item() == pytest.approx(expected.item(), rel=1e-12)


def test_a_single_document_of_a_smaller_label_is_a_rival():
    value = losses.unique_softmax(torch.tensor([[0.3, 1.0]]), torch.tensor([[1.0, 0.0]]))
    assert value.item() == pytest.approx(math.log(1 + math.exp(0.7)))


def test_the_force_of_the_hinge_counts_pairs_within_the_margin():
    scores, labels, mask = random_lists(8, 9, seed=9)
    _, gradient = value_and_gradient(losses.pairwise_hinge, scores, labels, mask, margin=0.4)
    for b in range(3, 8):
        s, y = scores[b][mask[b]].tolist(), labels[b][mask[b]].tolist()
        force = [
            sum(y[j] > y[i] and s[j] - s[i] < 0.4 for j in range(len(s)))
            - sum(y[i] > y[j] and s[i] - s[j] < 0.4 for j in range(len(s)))
            for i in range(len(s))
        ]
        assert gradient[b][mask[b]].tolist() == force


def test_the_hinge_is_zero_where_all_pairs_are_a_margin_apart():
    labels = torch.tensor([[2.0, 1.0, 0.0]])
    assert losses.pairwise_hinge(torch.tensor([[4.0, 2.0, 0.0]]), labels).item() == 0
    assert losses.pairwise_hinge(torch.tensor([[4.0, 3.5, 0.0]]), labels).item() == 0.5
    # A shift and a tie of labels do not matter.
    tied = losses.pairwise_hinge(torch.tensor([[9.0, 1.0]]), torch.tensor([[1.0, 1.0]]))
    assert tied.item() == 0


def test_the_gradient_of_sigmoid_cross_entropy_is_probability_minus_target():
    scores, labels, mask = random_lists(8, 9, seed=10)
    _, gradient = value_and_gradient(losses.sigmoid_cross_entropy, scores, labels, mask)
    expected = torch.sigmoid(scores) - labels.clamp(max=1)
    expected = expected * mask / mask.sum(1, keepdim=True).clamp_min(1)
    torch.testing.assert_close(gradient, expected)


def test_the_best_constant_score_is_the_log_odds_of_relevance():
    labels = torch.tensor([[1.0, 0.0, 0.0, 3.0, 0.0]], dtype=torch.float64)
    best = torch.full((1, 5), math.log(2 / 3), dtype=torch.float64)
    _, gradient = value_and_gradient(losses.sigmoid_cross_entropy, best, labels, None)
    assert gradient.sum().abs() < 1e-15


def test_ordinal_regression_of_two_levels_is_sigmoid_cross_entropy():
    scores, labels, mask = random_lists(8, 9, seed=11, levels=2)
    labels[2] = 1
    found = value_and_gradient(losses.ordinal, scores, labels, mask, levels=2)
    expected = value_and_gradient(losses.sigmoid_cross_entropy, scores, labels, mask)
    torch.testing.assert_close(found, expected)


def test_the_gradient_of_ordinal_regression_is_expected_minus_given_label():
    """The expected label is the sum of the probabilities of the thresholds."""
    scores, labels, mask = random_lists(8, 9, seed=12)
    _, gradient = value_and_gradient(losses.ordinal, scores, labels, mask, levels=5, gap=0.7)
    expected = sum(torch.sigmoid(scores - 0.7 * t) for t in range(4)) - labels
    expected = expected * mask / mask.sum(1, keepdim=True).clamp_min(1)
    torch.testing.assert_close(gradient, expected)


def test_without_levels_ordinal_regression_says_what_it_needs():
    scores = torch.zeros(1, 2)
    with pytest.raises(ArgumentError, match="number of levels"):
        losses.ordinal(scores, scores, levels=None)


@pytest.mark.parametrize("name", ["pairwise_hinge", "unique_softmax", "psl", "soft_sort_ndcg"])
def test_memory_does_not_grow_with_pairs(name):
    B, L = 8, 1200
    scores, labels, mask = random_lists(B, L, dtype=torch.float32)
    scores.requires_grad_()
    with torch.profiler.profile(profile_memory=True) as profile:
        losses.get(name)(scores, labels, mask).sum().backward()
    assert max(event.cpu_memory_usage for event in profile.events()) < 50 * 4 * B * L
