"""Quantities of the training set in a run's history."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch

from directrank import losses, metrics
from directrank.learners.contract import FitJob, Splits, no_progress
from directrank.learners.neural import monitors
from directrank.learners.neural.fit import fit_many
from directrank.lists.packed import RankedLists
from directrank.system.errors import ConfigError
from directrank.system.schema import check, package_schema

NDCG = {"name": "ndcg"}
QUANTITIES = [
    {"quantity": "approximation_error", "metric": NDCG},
    {"quantity": "metric", "metric": {"name": "ndcg", "k": 3, "empty": "zero"}},
    {"quantity": "objective"},
]
LOSSES = [{"name": "approx_ndcg", "alpha": alpha} for alpha in (1.0, 20.0)]


def lists(seed: int = 0) -> RankedLists:
    """Queries of 2 to 9 documents; the first has no relevant one."""
    generator = np.random.default_rng(seed)
    lengths = generator.integers(2, 10, 12)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    labels = generator.integers(0, 3, offsets[-1]).astype(np.float32)
    labels[: offsets[1]] = 0
    labels[offsets[1:-1]] = 2
    features = generator.normal(size=(offsets[-1], 4)).astype(np.float32)
    return RankedLists(features, labels, offsets, np.arange(12))


def one_by_one(scores: torch.Tensor, part: RankedLists) -> dict[str, list[list[float]]]:
    """Loss, NDCG and NDCG@3 of every query alone, per model."""
    values: dict[str, list[list[float]]] = {"loss": [], "ndcg": [], "ndcg@3": []}
    for model, options in zip(scores, LOSSES, strict=True):
        rows = {key: [] for key in values}
        for begin, end in pairwise(part.offsets):
            own = model[None, begin:end]
            labels = torch.from_numpy(part.labels[None, begin:end])
            rows["loss"].append(float(losses.approx_ndcg(own, labels, alpha=options["alpha"])))
            rows["ndcg"].append(float(metrics.ndcg(own, labels)))
            rows["ndcg@3"].append(float(metrics.ndcg(own, labels, k=3)))
        for key, row in rows.items():
            values[key].append(row)
    return values


def test_values_are_those_of_the_queries_one_by_one() -> None:
    part = lists()
    scores = torch.randn(2, part.n_documents, generator=torch.Generator().manual_seed(3))
    result = monitors.monitor(QUANTITIES, scores, part, LOSSES)
    expected = {key: np.array(value) for key, value in one_by_one(scores, part).items()}
    error = np.abs(-expected["loss"] - expected["ndcg"])[:, 1:].mean(1)
    assert result["approximation_error_ndcg"] == pytest.approx(error, rel=1e-5)
    assert result["train_objective"] == pytest.approx(expected["loss"][:, 1:].mean(1), rel=1e-5)
    # The query without a relevant document counts 0 here.
    at_three = np.nan_to_num(expected["ndcg@3"]).mean(1)
    assert result["train_ndcg@3"] == pytest.approx(at_three, rel=1e-5)
    assert error[1] < error[0]  # the steeper sigmoid is nearer


def history(every: int, epochs: int = 5, **changes: object) -> list[dict[str, float]]:
    data = Splits(lists(0), lists(1), lists(2), label_levels=3)
    training = {
        "optimizer": {"name": "sgd", "lr": 0.1},
        "batch_queries": 1,
        "max_epochs": epochs,
        "monitor": {"every": every, "quantities": QUANTITIES},
        **changes,
    }
    settings = {"model": {"name": "linear"}, "loss": LOSSES[1], "training": training}
    job = FitJob("a-run", 0, NDCG, 1, "cpu", no_progress)
    return fit_many(data, [settings], [job])[0].history


def test_history_has_them_every_so_many_epochs_and_at_the_end() -> None:
    seen = [row["epoch"] for row in history(2) if "train_objective" in row]
    assert seen == [2, 4, 5]
    stopped = history(50, epochs=60, patience=3)
    assert [row["epoch"] for row in stopped if "train_objective" in row][-1] == len(stopped) < 60


def test_watching_changes_nothing_else() -> None:
    watched, alone = history(1), history(1, monitor=None)
    for a, b in zip(watched, alone, strict=True):
        assert (a["train_loss"], a["vali_metric"]) == (b["train_loss"], b["vali_metric"])


def test_unknown_quantities_and_metrics_are_refused() -> None:
    schema = package_schema("run")["properties"]["training"]["properties"]["monitor"]
    check({"quantities": QUANTITIES}, schema, "monitor")
    for wrong in ({"quantity": "metric"}, {"quantity": "eror", "metric": NDCG}):
        with pytest.raises(ConfigError):
            check({"quantities": [wrong]}, schema, "monitor")
    with pytest.raises(ConfigError, match="ndgc"):
        monitors.columns([{"quantity": "metric", "metric": {"name": "ndgc"}}])
