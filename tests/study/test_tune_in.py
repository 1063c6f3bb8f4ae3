"""Runs of which only the first trial tunes, and the others train what it has chosen."""

import contextlib

import numpy as np
import pytest

from directrank.cost.facts import Facts
from directrank.cost.features import features_of
from directrank.learners.neural import stacking
from directrank.learners.neural.checkpoints import StoppedError
from directrank.study.results import load_run
from directrank.study.run import execute, execute_together
from directrank.study.specification import with_settings
from stopped_runs import SPEC, result, stopping_at
from together_runs import assert_same, folders, run
from training_data import prepare

LOSSES = "approx_ndcg", "listnet"
RATE, LEAVES = "training.optimizer.lr", "model.num_leaves"
NETWORK = {**SPEC, "trials": 3, "tune": {RATE: [0.001, 0.03]}}
ENSEMBLE = {
    **{key: value for key, value in SPEC.items() if key not in ("loss", "training")},
    "learner": "lightgbm",
    "model": {
        "n_trees": 5,
        "min_data_in_leaf": 1,
        "min_sum_hessian_in_leaf": 0.0,
        "bagging_fraction": 0.5,
        "bagging_freq": 1,
    },
    "tune": {LEAVES: [2, 7]},
}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return prepare(tmp_path_factory.mktemp("data") / "web30k_standin")


@pytest.mark.parametrize(("spec", "setting"), [(NETWORK, RATE), (ENSEMBLE, LEAVES)])
def test_the_first_trial_is_as_always_and_the_others_have_its_choice(spec, setting, data, tmp_path):
    execute(spec, data, tmp_path / "each", device="cpu")
    execute({**spec, "tune_in": "first_trial"}, data, tmp_path / "first", device="cpu")
    each, first = load_run(tmp_path / "each"), load_run(tmp_path / "first")
    assert list(first.fits.groupby("trial").size()) == [2, 1, 1]
    assert first.fits.groupby("trial")["selected"].sum().tolist() == [1, 1, 1]
    (chosen,) = first.fits.loc[first.fits["selected"], "candidate"].unique()
    value = spec["tune"][setting][chosen]
    assert (first.fits.loc[first.fits["selected"], setting] == value).all()

    # Each trial is that of a run with this setting alone.
    alone = with_settings({**spec, "tune": {}}, {setting: value})
    execute(alone, data, tmp_path / "alone", device="cpu")
    expected = load_run(tmp_path / "alone").per_query
    assert first.per_query.equals(expected)
    of_first = each.per_query["trial"] == 0
    assert first.per_query[of_first].equals(each.per_query[of_first])


def test_a_grid_grows_by_the_first_trial_and_its_choice_may_be_a_new_candidate(data, tmp_path):
    spec = {**NETWORK, "tune": {RATE: [0.0001, 0.0003]}, "tune_in": "first_trial",
            "grow": {RATE: {"lowest": 0.0001, "highest": 0.3}}}  # fmt: skip
    execute(spec, data, tmp_path / "run", device="cpu")
    run = load_run(tmp_path / "run")
    (grid,) = run.record["grids"].values()
    assert len(grid["values"]) > 2
    fits = run.fits
    assert list(fits.groupby("trial").size()) == [len(grid["values"]), 1, 1]
    chosen = fits[fits["selected"]]
    assert (chosen[RATE] == grid["best"]).all()
    assert (chosen["candidate"] >= 2).all()
    assert (chosen["inside"] == grid["inside"]).all()


@pytest.mark.parametrize("spec", [NETWORK, ENSEMBLE])
def test_a_run_that_is_stopped_in_its_trials_ends_with_the_same_bytes(spec, data, tmp_path):
    spec = {**spec, "tune_in": "first_trial"}
    execute(spec, data, tmp_path / "whole", device="cpu")
    stops = 0
    while not (tmp_path / "parts/run.json").exists():
        with contextlib.suppress(StoppedError):
            execute(spec, data, tmp_path / "parts", device="cpu", checkpoint_minutes=60,
                    stop=stopping_at(12))  # fmt: skip
            break
        stops += 1
    assert stops > 1
    assert result(tmp_path / "parts") == result(tmp_path / "whole")


def test_such_runs_are_trained_together_as_alone(data, monkeypatch, tmp_path):
    monkeypatch.setattr(stacking, "across_runs", lambda device: True)
    tuned = [run({"name": loss}, trials=3, tune={RATE: [0.001, 0.03]}) for loss in LOSSES]
    specs = [{**tuned[0], "tune_in": "first_trial"}, {**tuned[1], "tune_in": "first_trial"},
             tuned[1]]  # fmt: skip
    assert execute_together(folders(tmp_path / "together", specs), data) == [None] * 3
    for number, spec in enumerate(specs):
        execute(spec, data, tmp_path / f"{number}")
        assert_same(tmp_path / f"together/{number}", tmp_path / f"{number}")


def test_the_predicted_work_is_that_of_fewer_fits():
    lengths = {split: np.full(100, 20) for split in ("train", "vali", "test")}
    size = Facts(lengths, 5, "counted")
    for spec in (NETWORK, ENSEMBLE):
        each = features_of(spec, size)
        first = features_of({**spec, "tune_in": "first_trial"}, size)
        assert (each.fits, first.fits) == (6, 4)
        assert first.epochs == each.epochs * 4 / 6
