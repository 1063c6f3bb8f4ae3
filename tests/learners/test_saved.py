"""A model that was saved scores as the fit that saved it."""

from __future__ import annotations

import numpy as np
import pytest

from directrank import learners
from directrank.learners.saved import score_saved
from directrank.system.errors import ConfigError, DataError
from training_data import TRAINING, job, splits

FEW_TREES = {"n_trees": 3, "early_stopping_rounds": 2}
SINGLE = {
    "ranking_svm": {"c": 0.1},
    "adarank": {"rounds": 3},
    "random_order": {},
    "lightgbm": {**FEW_TREES, "min_data_in_leaf": 2, "min_sum_hessian_in_leaf": 0.001},
    "xgboost": FEW_TREES,
    "catboost": FEW_TREES,
}
CONTEXT = {"name": "context", "width": 8, "blocks": 1, "heads": 1, "inner": 8, "dropout": 0.1}


@pytest.fixture(scope="module")
def data():
    return splits()


@pytest.mark.parametrize("name", SINGLE)
def test_saved_trees_and_weights_score_as_the_fit(name, data, tmp_path):
    fitted = learners.get(name).load()(data, SINGLE[name], job())
    fitted.save(tmp_path / "0")
    found = score_saved(tmp_path / "0", name, SINGLE[name], data.test)
    np.testing.assert_array_equal(found, fitted.predict(data.test))


@pytest.mark.parametrize(
    "model", [{"name": "tower", "hidden": [6], "decay": 0.9}, CONTEXT], ids=lambda m: m["name"]
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_saved_network_scores_as_the_fit(model, dtype, data, tmp_path):
    settings = {
        "model": model,
        "loss": {"name": "listnet"},
        "training": {**TRAINING, "max_epochs": 2, "dtype": dtype},
    }
    (fitted,) = learners.get("neural").load()(data, [settings], [job()])
    fitted.save(tmp_path / "0")
    found = score_saved(tmp_path / "0", "neural", model, data.test)
    np.testing.assert_array_equal(found, fitted.predict(data.test))
    with pytest.raises(DataError, match="not a model 'linear'"):
        score_saved(tmp_path / "0", "neural", {"name": "linear"}, data.test)


def test_what_cannot_be_scored_is_one_error(data, tmp_path):
    with pytest.raises(DataError, match="model is missing"):
        score_saved(tmp_path / "0", "lightgbm", {}, data.test)
    with pytest.raises(ConfigError, match="its own program"):
        score_saved(tmp_path / "0", "ranklib", {}, data.test)


def test_every_learners_models_can_be_scored_or_are_refused(data, tmp_path):
    for name in learners.REGISTRY:
        expected = ConfigError if name == "ranklib" else DataError
        with pytest.raises(expected):
            score_saved(tmp_path / "0", name, {"name": "linear"}, data.test)
