"""Algorithm 1 of Qin2010 in compiled passes gives what the general engine gives, and stops."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from directrank import learners
from directrank.data.cubic import generate
from directrank.learners.contract import FitJob, Fitted, Splits, no_progress
from directrank.learners.neural.checkpoints import Checkpoints, StoppedError
from directrank.system.errors import ConfigError, TrainingError

LOSSES = {
    "ApproxNDCG": {"name": "approx_ndcg", "alpha": 5.0},
    "ApproxAP": {"name": "approx_ap", "alpha": 5.0, "beta": 10.0},
    "steep ApproxNDCG": {"name": "approx_ndcg", "alpha": 300.0},
    "steep ApproxAP": {"name": "approx_ap", "alpha": 300.0, "beta": 100.0},
}


@pytest.fixture(scope="module")
def data() -> Splits:
    """A little of the artificial data."""
    settings = {"queries": {"train": 12, "vali": 8, "test": 4}, "documents_per_query": 20}
    parts = generate({**settings, "n_features": 6})
    return Splits(parts["train"], parts["vali"], parts["test"], 5)


def settings_of(loss: dict, **training) -> dict:
    """Settings of a fit by Algorithm 1."""
    return {
        "model": {"name": "linear", "init_bound": 1.0},
        "loss": loss,
        "training": {
            "optimizer": {"name": "sgd", "lr": 0.01},
            "batch_queries": 1,
            "reduction": "sum",
            "keep": "last",
            "dtype": "float64",
            "max_epochs": 3,
            **training,
        },
    }


def fitted(data: Splits, settings: dict, learner: str = "linear_ascent", **options) -> Fitted:
    """One fit of trial 0."""
    job = FitJob("run", 0, {"name": "ndcg", "k": 5}, 1, "cpu", no_progress)
    (result,) = learners.get(learner).load()(data, [settings], [job], **options)
    return result


@pytest.mark.parametrize("loss", LOSSES)
def test_three_epochs_are_those_of_the_general_engine(data, loss):
    settings = settings_of(LOSSES[loss], restarts=3)
    ours, general = fitted(data, settings), fitted(data, settings, "neural")
    np.testing.assert_allclose(ours.predict(data.test), general.predict(data.test), atol=1e-8)
    for name in ("restart", "epochs", "stopped_early"):
        assert ours.info[name] == general.info[name]
    assert ours.info["train_objective"] == pytest.approx(general.info["train_objective"], abs=1e-9)
    last = [row for row in ours.history if row["restart"] == ours.info["restart"]][-1]
    assert last["train_loss"] == pytest.approx(general.history[-1]["train_loss"], abs=1e-9)
    assert last["vali_metric"] == pytest.approx(general.history[-1]["vali_metric"])


@pytest.mark.parametrize("loss", ["ApproxNDCG", "ApproxAP"])
def test_queries_of_any_kind_are_those_of_the_general_engine(data, loss):
    """One without a relevant document, one of nothing else, and features that tie."""
    labels, features = np.array(data.train.labels), np.array(data.train.features)
    labels[:20], labels[20:40] = 0, 2
    features[40:60] = features[40]
    train = replace(data.train, labels=labels, features=features)
    odd = replace(data, train=train)
    settings = settings_of(LOSSES[loss])
    ours, general = fitted(odd, settings), fitted(odd, settings, "neural")
    np.testing.assert_allclose(ours.predict(data.test), general.predict(data.test), atol=1e-8)


def test_it_stops_at_the_epoch_at_which_the_general_engine_stops(data):
    settings = settings_of(LOSSES["ApproxNDCG"], restarts=2, max_epochs=400, tolerance=0.01)
    ours, general = fitted(data, settings), fitted(data, settings, "neural")
    assert ours.info["stopped_early"]
    assert 3 < ours.info["epochs"] == general.info["epochs"] < 400
    np.testing.assert_allclose(ours.predict(data.test), general.predict(data.test), atol=1e-8)


def test_the_history_shows_every_start_after_the_epochs_asked_for(data):
    monitor = {"at": [2, 5, 90], "quantities": [{"quantity": "metric", "metric": {"name": "ndcg"}}]}
    settings = settings_of(LOSSES["ApproxNDCG"], restarts=2, max_epochs=7, monitor=monitor)
    rows = fitted(data, settings).history
    assert [(row["restart"], row["epoch"]) for row in rows] == [
        (restart, epoch) for restart in (0, 1) for epoch in (2, 5, 7)
    ]
    assert all(0 < row["train_ndcg"] <= 1 for row in rows)


def test_a_row_is_what_training_with_that_cap_ends_with(data):
    monitor = {"every": 3, "quantities": [{"quantity": "objective"}]}
    loss = LOSSES["steep ApproxNDCG"]
    rows = fitted(data, settings_of(loss, max_epochs=11, monitor=monitor)).history
    assert [row["epoch"] for row in rows] == [3, 6, 9, 11]
    alone = fitted(data, settings_of(loss, max_epochs=6))
    assert rows[1]["train_objective"] == pytest.approx(alone.info["train_objective"], abs=1e-14)
    assert rows[1]["vali_metric"] == pytest.approx(alone.history[-1]["vali_metric"], abs=1e-14)


def test_a_start_has_no_rows_after_it_has_stopped(data):
    monitor = {"every": 1, "quantities": [{"quantity": "objective"}]}
    settings = settings_of(
        LOSSES["ApproxNDCG"], restarts=3, max_epochs=400, tolerance=0.01, monitor=monitor
    )
    fit = fitted(data, settings)
    met = {row["restart"]: row["epoch"] for row in fit.history if row["met"]}
    assert fit.info["starts_met"] == len(met) == 3
    for restart, epoch in met.items():
        assert epoch == max(row["epoch"] for row in fit.history if row["restart"] == restart)


def test_the_start_with_the_best_objective_is_kept(data):
    fit = fitted(data, settings_of(LOSSES["ApproxNDCG"], restarts=5))
    objectives = [row["train_objective"] for row in fit.history]
    assert fit.info["restart"] == int(np.argmin(objectives))
    assert len(set(objectives)) == 5


@pytest.mark.parametrize(
    "change",
    [
        {"model": {"name": "two_layer", "hidden": 3}},
        {"loss": {"name": "approx_ndcg", "alpha": 5.0, "k": 3}},
        {"loss": {"name": "ranknet"}},
        {"training": {"optimizer": {"name": "adam", "lr": 0.01}}},
        {"training": {"optimizer": {"name": "sgd", "lr": 0.01}, "dtype": "float32"}},
    ],
)
def test_what_algorithm_1_does_not_have_is_refused(data, change):
    with pytest.raises(ConfigError, match="linear_ascent"):
        fitted(data, {**settings_of(LOSSES["ApproxNDCG"]), **change})


def test_weights_that_are_not_finite_stop_it(data):
    features = np.array(data.train.features)
    features[::20] = np.nan
    broken = replace(data, train=replace(data.train, features=features))
    with pytest.raises(TrainingError, match="not finite"):
        fitted(broken, settings_of(LOSSES["ApproxNDCG"]))


def test_a_run_that_was_stopped_goes_on_to_the_same_result(data, tmp_path):
    settings = [settings_of(LOSSES["ApproxNDCG"], restarts=2) for _ in range(3)]
    jobs = [
        FitJob("run", trial, {"name": "ndcg"}, 1, "cpu", no_progress)
        for trial in range(len(settings))
    ]
    fit = learners.get("linear_ascent").load()
    whole = fit(data, settings, jobs)
    asked = iter([None, None, None, "SIGTERM", "SIGTERM", "SIGTERM"])
    first = Checkpoints(tmp_path / "run.checkpoint", "key", 60, lambda: next(asked))
    with pytest.raises(StoppedError, match="fit 2 of 3"):
        fit(data, settings, jobs, first)
    again = Checkpoints(tmp_path / "run.checkpoint", "key", 60)
    assert again.load("fit-0000") is not None
    assert again.load("fit-0001") is None
    for expected, result in zip(whole, fit(data, settings, jobs, again), strict=True):
        np.testing.assert_array_equal(result.predict(data.test), expected.predict(data.test))
        kept = [{k: v for k, v in row.items() if k != "seconds"} for row in result.history]
        assert kept == [
            {k: v for k, v in row.items() if k != "seconds"} for row in expected.history
        ]
