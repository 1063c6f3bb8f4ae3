"""Runs of trees that are stopped and started again, their models among the results."""

from __future__ import annotations

import pytest

from directrank.learners.neural.checkpoints import StoppedError
from directrank.study.run import execute
from directrank.system.errors import ConfigError
from stopped_runs import SPEC, result, stopping_at
from training_data import prepare

RUN = {
    "tune": {"model.learning_rate": [0.1, 0.2]},
    "trials": 2,
    **{key: SPEC[key] for key in ("data", "fold", "normalisation", "filter")},
    **{key: SPEC[key] for key in ("selection", "evaluation")},
}
MODELS = {
    "lightgbm": {"objective": "rank_xendcg", "min_data_in_leaf": 2, "min_sum_hessian_in_leaf": 0.0},
    "xgboost": {"objective": "rank:ndcg", "min_child_weight": 0.001},
    "catboost": {"metric": "NDCG", "max_depth": 3},
}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return prepare(tmp_path_factory.mktemp("data") / "web30k_standin")


@pytest.mark.parametrize(
    ("library", "suffix"), [("lightgbm", "txt"), ("xgboost", "json"), ("catboost", "cbm")]
)
def test_a_stopped_run_ends_as_one_that_was_not(data, tmp_path, library, suffix):
    pytest.importorskip(library, reason=f"NOT TESTED: the learner {library} needs its package")
    spec = RUN | {"learner": library, "model": {"n_trees": 4, **MODELS[library]}}
    execute(spec, data, tmp_path / "whole")
    with pytest.raises(StoppedError, match=r"in fit 3 of 4"):
        execute(spec, data, tmp_path / "cut", stop=stopping_at(11))
    execute(spec, data, tmp_path / "cut")
    assert result(tmp_path / "cut") == result(tmp_path / "whole")
    assert (tmp_path / f"cut/models/1.{suffix}").is_file()


def test_a_setting_of_another_objective_is_refused_before_anything_is_trained(data, tmp_path):
    spec = RUN | {"learner": "catboost", "model": {"objective": "QueryRMSE", "metric": "NDCG"}}
    with pytest.raises(ConfigError, match="run: model: 'QueryRMSE' is not one of"):
        execute(spec, data, tmp_path / "run")


def test_a_value_that_only_the_library_refuses_ends_the_run_before_its_first_fit(data, tmp_path):
    spec = RUN | {"learner": "lightgbm", "model": {}, "tune": {"model.num_leaves": [7, 1]}}
    with pytest.raises(ConfigError, match=r"run: model: LightGBM does not take {'num_leaves': 1}"):
        execute(spec, data, tmp_path / "run")
    assert not (tmp_path / "run").exists()
