"""LambdaLoss' three schemes: their formulas, allRank's values, and what relates them."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path

import pytest
import torch

from directrank import losses
from directrank.system.errors import DirectrankError
from losses_cases import random_lists, value_and_gradient

RECORD = json.loads(
    (Path(__file__).parents[1] / "helpers/authors_values.json").read_text(encoding="utf-8")
)
SCHEMES = {"ndcg_loss1": "ndcgLoss1", "ndcg_loss2": "ndcgLoss2", "ndcg_loss2pp": "ndcgLoss2PP"}


def by_pairs(scores, labels, scheme, mu=10.0, sigma=1.0, k=None):
    """One list, pair by pair, in Python's numbers."""
    n = len(scores)
    k = k or n
    order = sorted(range(n), key=lambda i: -scores[i])
    rank = {document: place for place, document in enumerate(order, start=1)}
    ideal = sorted((2**y - 1 for y in labels), reverse=True)[:k]
    best = sum(gain / math.log2(1 + r) for r, gain in enumerate(ideal, start=1))
    total = 0.0
    for i in order[:k]:
        for j in order[:k]:
            if i == j or (scheme != "ndcg_loss1" and labels[i] <= labels[j]):
                continue
            apart = abs(rank[i] - rank[j])
            delta = 1 / math.log2(1 + apart) - 1 / math.log2(2 + apart)
            rho = abs(1 / math.log2(1 + rank[i]) - 1 / math.log2(1 + rank[j]))
            change = abs(2 ** labels[i] - 2 ** labels[j]) / best
            weight = {
                "ndcg_loss1": (2 ** labels[i] - 1) / best / math.log2(1 + rank[i]),
                "ndcg_loss2": delta * change,
                "ndcg_loss2pp": (rho + mu * delta) * change,
            }[scheme]
            total += weight * math.log2(1 + math.exp(-sigma * (scores[i] - scores[j])))
    return total


@pytest.mark.parametrize("options", [{}, {"k": 4}, {"mu": 2.0, "sigma": 0.5}], ids=str)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_loss_is_its_sum_over_pairs(scheme, options):
    scores, labels, mask = random_lists(8, 9, seed=12)
    value = losses.lambda_loss(scores, labels, mask, scheme=scheme, **options)
    for b in range(2, 8):
        s, y = scores[b][mask[b]].tolist(), labels[b][mask[b]].tolist()
        assert value[b].item() == pytest.approx(by_pairs(s, y, scheme, **options), rel=1e-12)


@pytest.mark.parametrize("k", [None, 4])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_values_and_gradients_are_allranks(scheme, k):
    scores = torch.tensor(RECORD["scores"], dtype=torch.float64)
    labels = torch.tensor(RECORD["labels"], dtype=torch.float64)
    theirs = RECORD["lambda_loss"][f"{SCHEMES[scheme]}@{k}"]
    value, gradient = value_and_gradient(
        losses.lambda_loss, scores, labels, None, scheme=scheme, mu=3.0, sigma=1.5, k=k
    )
    expected = torch.tensor(theirs["value"], dtype=torch.float64)
    if scheme == "ndcg_loss1":  # it counts a document as a pair with itself, which adds its DCG
        from directrank import metrics

        expected = expected - metrics.ndcg(scores, labels, None, k)
    # Its ranks are float32.
    torch.testing.assert_close(value, expected, rtol=1e-6, atol=1e-7)
    expected = torch.tensor(theirs["gradient"], dtype=torch.float64)
    torch.testing.assert_close(gradient, expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("options", [{}, {"k": 4, "sigma": 0.7, "gain": "linear"}], ids=str)
@pytest.mark.parametrize("scheme", [*SCHEMES, "ndcg_loss2_at_k"])
def test_the_gradient_equals_finite_differences_while_the_order_stands(scheme, options):
    scores, labels, mask = random_lists(6, 9, seed=21)

    def of(scores):
        return losses.lambda_loss(scores, labels, mask, scheme=scheme, **options)

    assert torch.autograd.gradcheck(of, scores.requires_grad_(), eps=1e-6, atol=1e-6, rtol=1e-5)


def test_without_delta_the_third_scheme_is_lambdarank_in_binary_logarithms():
    scores, labels, mask = random_lists(12, 20, seed=2)
    for k in (None, 5):
        value, gradient = value_and_gradient(losses.lambda_loss, scores, labels, mask, mu=0.0, k=k)
        plain, plain_gradient = value_and_gradient(losses.lambdarank, scores, labels, mask, k=k)
        torch.testing.assert_close(value * math.log(2), plain)
        torch.testing.assert_close(gradient * math.log(2), plain_gradient)


def test_the_third_scheme_is_lambdarank_plus_the_second():
    scores, labels, mask = random_lists(12, 20, seed=3)
    both = value_and_gradient(losses.lambda_loss, scores, labels, mask, mu=7.0)
    plain = value_and_gradient(losses.lambda_loss, scores, labels, mask, mu=0.0)
    second = value_and_gradient(losses.lambda_loss, scores, labels, mask, scheme="ndcg_loss2")
    for found, one, other in zip(both, plain, second, strict=True):
        torch.testing.assert_close(found, one + 7 * other)


def test_the_second_scheme_bounds_what_ndcg_lacks():
    """As the logarithm bounds the step function of each pair: the framework's theorem."""
    from directrank import metrics

    scores, labels, mask = random_lists(40, 15, seed=8)
    value = losses.lambda_loss(scores, labels, mask, scheme="ndcg_loss2")
    lacking = 1 - metrics.ndcg(scores, labels, mask, empty="one")
    assert (value >= lacking - 1e-12).all()
    assert value[3:].max() > 0


def test_the_scheme_for_a_cutoff_takes_every_pair_and_weighs_those_beyond_it():
    scores, labels, mask = random_lists(8, 9, seed=12)
    value = losses.lambda_loss(scores, labels, mask, scheme="ndcg_loss2_at_k", k=4)
    for b in range(2, 8):
        s, y = scores[b][mask[b]].tolist(), labels[b][mask[b]].tolist()
        rank = {i: r for r, i in enumerate(sorted(range(len(s)), key=lambda i: -s[i]), start=1)}
        ideal = sorted((2**label - 1 for label in y), reverse=True)[:4]
        best = sum(gain / math.log2(1 + r) for r, gain in enumerate(ideal, start=1))
        total = 0.0
        for i, j in itertools.permutations(range(len(s)), 2):
            if y[i] > y[j]:
                apart, last = abs(rank[i] - rank[j]), max(rank[i], rank[j])
                delta = 1 / math.log2(1 + apart) - 1 / math.log2(2 + apart)
                if last > 4:
                    delta /= 1 - 1 / math.log2(1 + last)
                cost = math.log2(1 + math.exp(s[j] - s[i]))
                total += delta * (2 ** y[i] - 2 ** y[j]) / best * cost
        assert value[b].item() == pytest.approx(total, rel=1e-12)


@pytest.mark.parametrize("k", [None, 20])
def test_without_documents_beyond_the_cutoff_its_scheme_is_the_second(k):
    scores, labels, mask = random_lists(12, 20, seed=5)
    found = value_and_gradient(
        losses.lambda_loss, scores, labels, mask, scheme="ndcg_loss2_at_k", k=k
    )
    second = value_and_gradient(losses.lambda_loss, scores, labels, mask, scheme="ndcg_loss2")
    torch.testing.assert_close(found, second)


@pytest.mark.parametrize("k", [1, 3, 5])
def test_the_scheme_for_a_cutoff_bounds_what_ndcg_lacks_at_the_cutoff(k):
    """The paper's theorem, which the scheme of all pairs within the cut-off does not satisfy."""
    from directrank import metrics

    scores, labels, mask = random_lists(200, 15, seed=8)
    lacking = 1 - metrics.ndcg(scores, labels, mask, k, empty="one")
    sound = losses.lambda_loss(scores, labels, mask, scheme="ndcg_loss2_at_k", k=k)
    assert (sound >= lacking - 1e-12).all()
    heuristic = losses.lambda_loss(scores, labels, mask, scheme="ndcg_loss2", k=k)
    assert (heuristic < lacking - 0.01).any()


def test_forces_of_a_query_sum_to_zero():
    scores, labels, mask = random_lists(20, 15, seed=1)
    for scheme in (*SCHEMES, "ndcg_loss2_at_k"):
        options = {"scheme": scheme, "k": 5 if scheme == "ndcg_loss2_at_k" else None}
        _, gradient = value_and_gradient(losses.lambda_loss, scores, labels, mask, **options)
        assert gradient.sum(1).abs().max() < 1e-12
        assert gradient.abs().max() > 1e-3


@pytest.mark.parametrize("scheme", [*SCHEMES, "ndcg_loss2_at_k"])
def test_memory_does_not_grow_with_pairs(scheme):
    B, L = 8, 1200
    scores, labels, mask = random_lists(B, L, dtype=torch.float32)
    scores.requires_grad_()
    with torch.profiler.profile(profile_memory=True) as profile:
        losses.lambda_loss(scores, labels, mask, scheme=scheme, k=10).sum().backward()
    assert max(event.cpu_memory_usage for event in profile.events()) < 50 * 4 * B * L


def test_an_unknown_scheme_is_refused():
    with pytest.raises(DirectrankError, match="choose one of"):
        losses.lambda_loss(torch.zeros(2, 3), torch.ones(2, 3), scheme="ndcg_loss3")
