"""Pairwise trees with XGBoost: what they learn, how they are chosen, and that they repeat."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from directrank.learners.contract import FitJob, Splits, no_progress
from directrank.learners.trees import xgboost as learner
from directrank.lists.packed import RankedLists
from directrank.metrics.packed import metrics_per_query
from directrank.system.errors import ConfigError, DataError, DirectrankError, TrainingError

NDCG5 = {"name": "ndcg", "k": 5}
SMALL = {"n_trees": 15, "early_stopping_rounds": 0, "max_depth": 3}


@pytest.fixture(scope="module")
def xgboost():
    return pytest.importorskip(
        "xgboost", reason="NOT TESTED: the XGBoost learner needs the package xgboost-cpu"
    )


def lists(n_queries: int, seed: int, n_features: int = 6) -> RankedLists:
    generator = np.random.default_rng(seed)
    lengths = generator.integers(1, 25, n_queries)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    features = generator.normal(size=(offsets[-1], n_features)).astype(np.float32)
    signal = features[:, 0] + features[:, 1] * features[:, 2] + generator.normal(size=offsets[-1])
    labels = np.digitize(signal, [0.5, 1.5, 2.5]).astype(np.float32)
    labels[np.repeat(np.arange(n_queries) % 4 == 0, lengths)] = 0
    return RankedLists(features, labels, offsets, np.arange(n_queries))


@pytest.fixture(scope="module")
def data() -> Splits:
    return Splits(lists(150, 0), lists(100, 1), lists(100, 2), label_levels=4)


def job(trial: int = 0, selection: dict = NDCG5, **changes) -> FitJob:
    return replace(FitJob("a-run", trial, selection, 1, "cpu", no_progress), **changes)


def mean(scores: np.ndarray, part: RankedLists) -> float:
    return float(np.nanmean(metrics_per_query(scores, part, [NDCG5])["ndcg@5"]))


def saved(fitted, folder: Path) -> str:
    fitted.save(folder / "model")
    return (folder / "model.json").read_text()


def test_the_history_is_our_metric_of_every_number_of_trees(xgboost, data, tmp_path):
    fitted = learner.fit(data, SMALL, job())
    saved(fitted, tmp_path)
    booster = xgboost.Booster(model_file=tmp_path / "model.json")
    for row in fitted.history:
        scores = booster.inplace_predict(data.vali.features, iteration_range=(0, row["epoch"]))
        assert row["vali_metric"] == pytest.approx(mean(scores, data.vali), abs=1e-12)
    assert len(fitted.history) == fitted.info["best_epoch"] == 15


def test_training_stops_when_the_metric_has_not_risen_for_so_many_trees(xgboost, data):
    fitted = learner.fit(data, SMALL | {"n_trees": 500, "early_stopping_rounds": 8}, job())
    best = 1 + int(np.argmax([row["vali_metric"] for row in fitted.history]))
    assert fitted.info["best_epoch"] == best
    assert fitted.info["epochs"] == best + 8 < 500
    assert fitted.info["stopped_early"]
    kept = fitted.history[best - 1]["vali_metric"]
    assert mean(fitted.predict(data.vali), data.vali) == pytest.approx(kept, abs=1e-12)


def test_it_learns_an_interaction_that_no_single_feature_shows(xgboost, data):
    fitted = learner.fit(data, SMALL | {"n_trees": 60}, job())
    best_feature = max(mean(column, data.test) for column in data.test.features.T)
    assert mean(fitted.predict(data.test), data.test) > best_feature + 0.03


@pytest.mark.parametrize("sampling", [{"subsample": 0.5}, {"feature_fraction": 0.5}])
def test_the_same_run_and_trial_give_the_same_bytes_and_others_do_not(
    xgboost, data, tmp_path, sampling
):
    settings = SMALL | sampling
    first, again, other = (learner.fit(data, settings, job(trial)) for trial in (0, 0, 1))
    assert saved(first, tmp_path) == saved(again, tmp_path)
    assert first.predict(data.test).tobytes() == again.predict(data.test).tobytes()
    assert first.predict(data.test).tobytes() != other.predict(data.test).tobytes()


def test_the_pairs_that_count_are_a_setting(xgboost, data, tmp_path):
    choices = [{}, {"n_pairs": 1}, {"pair_method": "mean"}, {"pair_method": "mean", "n_pairs": 5}]
    scores = {
        learner.fit(data, SMALL | each, job()).predict(data.test).tobytes() for each in choices
    }
    assert len(scores) == 4


def test_a_saved_model_scores_exactly_as_the_fit(xgboost, data, tmp_path):
    fitted = learner.fit(data, SMALL, job())
    saved(fitted, tmp_path)
    booster = xgboost.Booster(model_file=tmp_path / "model.json")
    assert booster.inplace_predict(data.test.features).tobytes() == (
        fitted.predict(data.test).tobytes()
    )
    assert fitted.info["n_parameters"] == len(booster.trees_to_dataframe())


def test_missing_features_are_taken_and_infinite_ones_refused(xgboost, data):
    features = data.train.features.copy()
    features[::3, 0] = np.nan
    with_gaps = replace(data, train=replace(data.train, features=features))
    assert np.isfinite(learner.fit(with_gaps, SMALL, job()).predict(with_gaps.train)).all()
    features[0, 0] = np.inf
    with pytest.raises(TrainingError, match="XGBoost failed"):
        learner.fit(with_gaps, SMALL, job())


def test_progress_counts_trees(xgboost, data):
    seen = []
    learner.fit(data, SMALL, job(progress=lambda *arguments: seen.append(arguments)))
    assert [(done, total) for done, total, _ in seen] == [(n, 15) for n in range(1, 16)]
    assert seen[0][2].startswith("ndcg@5 0.")


def test_trees_without_a_split_are_an_error_not_a_constant_model(xgboost, data):
    with pytest.raises(TrainingError, match=r"no tree found a split in \d+ documents(.|\n)*lower"):
        learner.fit(data, SMALL | {"min_child_weight": 1e9}, job())


def test_scoring_lists_with_other_features_is_refused(xgboost, data):
    with pytest.raises(DataError, match="fitted to 6 features, but these lists have 4"):
        learner.fit(data, SMALL, job()).predict(lists(3, 0, n_features=4))


def test_a_gpu_is_asked_for_when_training_and_not_when_a_plan_is_made(xgboost, data):
    settings = {**SMALL, "device": "cuda"}
    learner.check(settings, "model")
    if xgboost.build_info()["USE_CUDA"] and torch.cuda.is_available():
        scores = learner.fit(data, settings, job()).predict(data.test)
        on_cores = learner.fit(data, SMALL, job()).predict(data.test)
        np.testing.assert_allclose(mean(scores, data.test), mean(on_cores, data.test), atol=0.05)
        return
    with pytest.raises(ConfigError, match="XGBoost finds no GPU") as caught:
        learner.fit(data, settings, job())
    assert "device: cpu" in caught.value.remedy


def test_without_the_package_a_fit_says_what_to_install(data, monkeypatch):
    monkeypatch.setitem(sys.modules, "xgboost", None)
    with pytest.raises(DirectrankError, match="pip install xgboost-cpu"):
        learner.fit(data, SMALL, job())
