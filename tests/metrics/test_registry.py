"""Metrics by name and option, as a configuration writes them and a column calls them."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from directrank import metrics
from directrank.system.errors import ArgumentError, ConfigError


@pytest.mark.parametrize(
    ("mapping", "label"),
    [
        ({"name": "ndcg"}, "ndcg"),
        ({"name": "ndcg", "k": 5}, "ndcg@5"),
        ({"name": "ndcg", "k": None}, "ndcg"),
        ({"name": "ndcg", "k": 5, "discount": "letor"}, "ndcg@5/letor"),
        ({"name": "ndcg", "k": 5, "gain": "linear", "discount": "letor"}, "ndcg@5/letor/linear"),
        ({"name": "ndcg", "k": 5, "discount": "log2", "gain": "exp2"}, "ndcg@5"),
        ({"name": "ndcg", "k": 5, "empty": "one"}, "ndcg@5"),
        ({"name": "ndcg", "k": 5, "ties": "expected"}, "ndcg@5/expected"),
        ({"name": "average_precision"}, "ap"),
        ({"name": "average_precision", "k": 5, "denominator": "graded_ideal"}, "ap@5/graded_ideal"),
        ({"name": "precision", "k": 10}, "precision@10"),
        ({"name": "precision", "k": 10, "min_label": 2}, "precision@10/min_label=2"),
        ({"name": "reciprocal_rank", "k": 10}, "rr@10"),
        ({"name": "nerr", "k": 10}, "nerr@10"),
        ({"name": "err", "k": 10, "max_label": 4}, "err@10/max_label=4"),
        ({"name": "dcg", "k": 10}, "dcg@10"),
        ({"name": "ndcg", "k": 5, "gain": [0, 1, 2.5]}, "ndcg@5/gain=0,1,2.5"),
        ({"name": "recall", "k": 3, "min_label": 2}, "recall@3/min_label=2"),
        ({"name": "spearman"}, "spearman"),
    ],
)
def test_labels_leave_out_defaults_and_the_empty_convention(mapping, label):
    assert metrics.label(mapping) == label


def test_evaluate_gives_what_each_metric_gives_alone():
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(9, 12, generator=generator).round()
    labels = torch.randint(0, 5, (9, 12), generator=generator).float()
    labels[0] = 0
    mask = torch.rand(9, 12, generator=generator) > 0.2
    mappings = [
        {"name": "ndcg", "k": 5},
        {"name": "ndcg", "k": 5, "discount": "letor"},
        {"name": "ndcg", "ties": "expected"},
        {"name": "average_precision", "k": 3, "denominator": "graded_ideal"},
        {"name": "precision", "k": 4, "min_label": 2},
        {"name": "reciprocal_rank"},
        {"name": "err", "max_label": 4},
        {"name": "nerr", "k": 10, "empty": "zero"},
        {"name": "hit_rate", "k": 2, "ties": "expected"},
        {"name": "dcg", "gain": [0, 1, 2, 3, 9]},
        {"name": "kendall", "empty": "one"},
        {"name": "spearman"},
    ]
    found = metrics.evaluate(mappings, scores, labels, mask)
    assert list(found) == [metrics.label(mapping) for mapping in mappings]
    for mapping in mappings:
        options = dict(mapping)
        alone = metrics.get(options.pop("name"))(scores, labels, mask, **options)
        torch.testing.assert_close(found[metrics.label(mapping)], alone, equal_nan=True)


def test_evaluate_takes_names_and_numbers_of_numpy_and_pytorch():
    scores, labels = torch.tensor([[0.3, 0.2, 0.1]]), torch.tensor([[0.0, 2.0, 1.0]])
    found = metrics.evaluate(
        ["kendall", {"name": "ndcg", "k": torch.tensor(2), "gain": np.array([0, 1, 5])},
         {"name": "precision", "k": np.int64(1), "min_label": torch.tensor(2)}],
        scores, labels,
    )  # fmt: skip
    assert list(found) == ["kendall", "ndcg@2/gain=0,1,5", "precision@1/min_label=2"]
    assert torch.equal(
        found["ndcg@2/gain=0,1,5"], metrics.ndcg(scores, labels, k=2, gain=[0, 1, 5])
    )


def test_two_metrics_with_one_label_are_an_error():
    """Labels leave out the convention for empty queries."""
    scores, labels = torch.rand(2, 3), torch.zeros(2, 3)
    with pytest.raises(ArgumentError, match="have the same label, 'ndcg'"):
        metrics.evaluate([{"name": "ndcg"}, {"name": "ndcg", "empty": "zero"}], scores, labels)
    same = [{"name": "ndcg"}, {"name": "ndcg", "k": None, "empty": "exclude"}, "ndcg"]
    assert list(metrics.evaluate(same, scores, labels)) == ["ndcg"]


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        ({"k": 3}, "does not name a metric"),
        (3, "does not name a metric"),
        ("ndgc", "did you mean 'ndcg'"),
        ({"name": "ndcg", "gains": "linear"}, "metric 'ndcg' has no option 'gains'"),
        ({"name": "kendall", "k": 3}, "metric 'kendall' has no option 'k'"),
        ({"name": "ndcg", "mask": None}, "metric 'ndcg' has no option 'mask'"),
    ],
)
def test_what_evaluate_cannot_compute_is_said(mapping, message):
    with pytest.raises(ConfigError, match=message):
        metrics.evaluate([mapping], torch.rand(2, 3), torch.zeros(2, 3))


@pytest.mark.parametrize("single", ["ndcg", {"name": "ndcg"}])
def test_a_single_metric_is_given_in_a_list(single):
    with pytest.raises(ConfigError, match="is no list of metrics") as caught:
        metrics.evaluate(single, torch.rand(2, 3), torch.zeros(2, 3))
    assert f"[{single!r}]" in str(caught.value)


def test_evaluate_sorts_the_scores_once(monkeypatch):
    from directrank.relaxations import exact

    calls = []
    sort = exact.descending_order
    monkeypatch.setattr(exact, "descending_order", lambda *args: calls.append(1) or sort(*args))
    ranking = [name for name in metrics.REGISTRY if name not in metrics.CORRELATIONS]
    mappings = [{"name": name, "k": k} for name in ranking for k in (1, 5, 10)]
    metrics.evaluate(mappings, torch.randn(3, 8), torch.ones(3, 8), None)
    assert len(calls) == 2, "one sort by score, one by label"


def test_an_unknown_metric_names_the_nearest():
    with pytest.raises(ConfigError, match="did you mean 'ndcg'"):
        metrics.get("ndgc")
    with pytest.raises(ConfigError, match="choose one of"):
        metrics.label({"name": "map"})
    with pytest.raises(AttributeError):
        metrics.map  # noqa: B018
