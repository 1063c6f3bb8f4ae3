"""Flat lists and weights: every metric says of them what it says of padded lists."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from directrank import metrics
from directrank.lists import calls
from directrank.lists.padding import pad, padded_positions
from directrank.system.errors import DirectrankError

#: Uneven, with a list of one document and one without any.
LENGTHS = torch.tensor([5, 1, 0, 900, 12, 3, 18, 11])


def lists():
    """Scores with ties and labels ``[N]``, padded too, with their mask; one list is empty."""
    generator = torch.Generator().manual_seed(1)
    n = int(LENGTHS.sum())
    scores = torch.randn(n, generator=generator).round(decimals=1)
    labels = torch.randint(0, 5, (n,), generator=generator).float()
    labels[-11:] = 0
    mask, index = padded_positions(LENGTHS)
    return scores, labels, pad(scores, mask, index), pad(labels, mask, index), mask


@pytest.mark.parametrize("name", [n for n in metrics.REGISTRY if n not in metrics.CORRELATIONS])
@pytest.mark.parametrize("ties", ["stable", "expected", "pessimistic"])
@pytest.mark.parametrize("k", [None, 5])
def test_flat_lists_have_the_values_of_padded_ones(name, ties, k, monkeypatch):
    halves = lambda lengths, small: [lengths.argsort()[half::2] for half in (0, 1)]  # noqa: E731
    monkeypatch.setattr(calls, "buckets", halves)
    metric = metrics.get(name)
    scores, labels, *padded = lists()
    expected = metric(*padded, k, ties=ties)
    assert expected.isnan().any()
    assert not expected.isnan().all()
    found = metric(scores, labels, None, k, ties=ties, lengths=LENGTHS)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12, equal_nan=True)
    ids = torch.repeat_interleave(torch.arange(8), LENGTHS)
    found = metric(scores, labels, query_ids=ids, k=k, ties=ties)
    there = LENGTHS > 0
    torch.testing.assert_close(found, expected[there], rtol=1e-12, atol=1e-12, equal_nan=True)


@pytest.mark.parametrize("name", metrics.CORRELATIONS)
def test_correlations_of_flat_lists_are_those_of_padded_ones(name):
    scores, labels, *padded = lists()
    expected = metrics.get(name)(*padded)
    assert expected.isnan().sum() == 3, "without documents, with one, and with one label"
    found = metrics.get(name)(scores, labels, lengths=LENGTHS)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12, equal_nan=True)


def test_groups_of_flat_lists_are_few_and_padded_little():
    shapes = []

    def metric(scores, labels, mask, k=None):
        value = metrics.get("ndcg")(scores, labels, mask)
        shapes.append((int(mask.sum()), mask.numel()))
        return value

    generator = torch.Generator().manual_seed(0)
    lengths = torch.exp(4.6 + 0.6 * torch.randn(2000, generator=generator)).long().clamp(1, 1251)
    scores = torch.randn(int(lengths.sum()), generator=generator)
    calls.ranking_metric(metric)(scores, (scores > 0).float(), lengths=lengths)
    real, padded = map(sum, zip(*shapes, strict=True))
    assert real == lengths.sum()
    assert len(shapes) < 20
    assert padded < 1.34 * real


def test_several_metrics_of_flat_lists_are_those_of_padded_ones():
    mappings = [{"name": "ndcg", "k": 3}, {"name": "err", "empty": "zero"}]
    scores, labels, *padded = lists()
    expected = metrics.evaluate(mappings, *padded)
    found = metrics.evaluate(mappings, scores, labels, lengths=LENGTHS)
    assert list(found) == list(expected) == ["ndcg@3", "err"]
    for name, value in found.items():
        torch.testing.assert_close(value, expected[name], equal_nan=True)
    assert metrics.evaluate([], *padded) == {}


@pytest.mark.parametrize("name", metrics.REGISTRY)
@pytest.mark.parametrize("empty", ["exclude", "zero", "one"])
def test_whole_weights_equal_repeated_queries(name, empty):
    scores, labels, *_ = lists()
    times = torch.tensor([2, 1, 3, 0, 1, 4, 1, 2])  # the last is empty, the third has no documents
    values = metrics.get(name)(scores, labels, lengths=LENGTHS)
    rows = torch.repeat_interleave(torch.arange(8), times)
    repeated = metrics.get(name)(
        torch.cat([scores.split(LENGTHS.tolist())[row] for row in rows]),
        torch.cat([labels.split(LENGTHS.tolist())[row] for row in rows]),
        lengths=LENGTHS[rows],
        empty=empty,
    )
    torch.testing.assert_close(metrics.mean(values, times, empty=empty), repeated.nanmean())
    torch.testing.assert_close(metrics.mean(values, times, empty=empty), metrics.mean(repeated))


@pytest.mark.parametrize("made", [np.array, list, torch.tensor])
def test_values_of_a_mean_may_be_an_array_or_a_list(made):
    values = made([1.0, 0.0, float("nan")])
    assert metrics.mean(values) == 0.5
    assert metrics.mean(values, [3, 1, 0], empty="zero") == 0.75
    assert metrics.mean(made([1, 0])) == 0.5


def test_a_query_without_weight_counts_nothing_though_its_value_is_not_known():
    values = torch.tensor([0.25, torch.nan])
    assert metrics.mean(values, [1, 0], empty="one") == 0.25
    assert metrics.mean(values, [0, 1]).isnan()
    with pytest.raises(DirectrankError, match="unknown convention"):
        metrics.mean(values, empty="two")
    with pytest.raises(DirectrankError, match=r"weights \(3,\) must be \[2\]"):
        metrics.mean(values, [1, 2, 3])


@pytest.mark.parametrize("name", metrics.REGISTRY)
@pytest.mark.parametrize("weights", ["weights", "document_weights"])
def test_a_metric_says_where_weights_belong(name, weights):
    scores, labels, *_ = lists()
    with pytest.raises(DirectrankError, match=f"metrics.mean.metrics.{name}"):
        metrics.get(name)(scores, labels, lengths=LENGTHS, **{weights: scores})
