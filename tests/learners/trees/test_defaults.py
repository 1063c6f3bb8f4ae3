"""The parameters that each library gets by default, written out, and the same trees without us."""

from __future__ import annotations

import lightgbm
import numpy as np
import pytest

from directrank.learners.contract import Splits
from directrank.learners.trees import catboost as catboost_learner
from directrank.learners.trees import lightgbm as lightgbm_learner
from directrank.learners.trees import xgboost as xgboost_learner
from directrank.learners.trees.settings import CATBOOST, complete
from directrank.learners.trees.settings import LIGHTGBM as LIGHTGBM_SETTINGS
from directrank.learners.trees.settings import XGBOOST as XGBOOST_SETTINGS
from directrank.system.seeds import derive_seed
from tree_data import job, splits

LIGHTGBM = {
    "objective": "lambdarank",
    "lambdarank_truncation_level": 30,
    "lambdarank_norm": True,
    "label_gain": [0, 1, 3, 7],
    "learning_rate": 0.1,
    "num_leaves": 200,
    "max_depth": -1,
    "max_bin": 255,
    "feature_fraction": 0.9,
    "min_data_in_leaf": 50,
    "bagging_fraction": 1.0,
    "bagging_freq": 1,
    "seed": derive_seed("a-run", 0, "lightgbm") % 2**31,
    "data_random_seed": 1,
    "deterministic": True,
    "force_row_wise": True,
    "num_threads": 1,
    "verbosity": -1,
}
XGBOOST = {
    "objective": "rank:pairwise",
    "disable_default_eval_metric": True,
    "tree_method": "hist",
    "learning_rate": 0.1,
    "max_depth": 6,
    "min_child_weight": 1.0,
    "max_bin": 256,
    "subsample": 1.0,
    "colsample_bytree": 1.0,
    "lambdarank_pair_method": "topk",
    "seed": derive_seed("a-run", 0, "xgboost") % 2**31,
    "nthread": 1,
    "verbosity": 0,
}


@pytest.fixture(scope="module")
def data() -> Splits:
    return splits()


def test_lightgbms_defaults(data, tmp_path):
    # 100, the default of min_sum_hessian_in_leaf, is for larger data.
    settings = {"n_trees": 30, "early_stopping_rounds": 0, "min_sum_hessian_in_leaf": 0.1}
    fitted = lightgbm_learner.fit(data, settings, job())
    train = lightgbm.Dataset(data.train.features, data.train.labels, group=data.train.lengths)
    parameters = LIGHTGBM | {"min_sum_hessian_in_leaf": 0.1, "metric": "ndcg", "eval_at": [10]}
    plain = lightgbm.train(parameters, train, num_boost_round=30)
    fitted.save(tmp_path / "model")
    assert (tmp_path / "model.txt").read_text() == plain.model_to_string()
    whole = complete({}, LIGHTGBM_SETTINGS, "test")
    assert whole["min_sum_hessian_in_leaf"] == 100.0
    assert (whole["n_trees"], whole["early_stopping_rounds"]) == (1000, 200)


def test_lightgbms_own_early_stopping_keeps_the_same_trees(data, tmp_path):
    settings = {"n_trees": 200, "early_stopping_rounds": 10, "min_sum_hessian_in_leaf": 0.1}
    fitted = lightgbm_learner.fit(data, settings, job())
    parameters = LIGHTGBM | {"min_sum_hessian_in_leaf": 0.1, "metric": "ndcg", "eval_at": [10]}
    train, vali = (
        lightgbm.Dataset(part.features, part.labels, group=part.lengths)
        for part in (data.train, data.vali)
    )
    plain = lightgbm.train(
        parameters,
        train,
        num_boost_round=200,
        valid_sets=[vali],
        callbacks=[lightgbm.early_stopping(10, verbose=False)],
    )
    assert fitted.info["best_epoch"] == plain.best_iteration
    fitted.save(tmp_path / "model")
    assert (tmp_path / "model.txt").read_text() == plain.model_to_string()


def test_xgboosts_defaults(data, tmp_path):
    xgboost = pytest.importorskip("xgboost", reason="NOT TESTED: needs the package xgboost-cpu")
    fitted = xgboost_learner.fit(data, {"n_trees": 30, "early_stopping_rounds": 0}, job())
    train = xgboost.QuantileDMatrix(
        data.train.features, data.train.labels, group=data.train.lengths, max_bin=256, nthread=1
    )
    plain = xgboost.train(XGBOOST, train, num_boost_round=30)
    fitted.save(tmp_path / "model")
    assert (tmp_path / "model.json").read_bytes() == bytes(plain.save_raw("json"))
    np.testing.assert_array_equal(
        fitted.predict(data.test), plain.inplace_predict(data.test.features)
    )
    whole = complete({}, XGBOOST_SETTINGS, "test")
    assert (whole["n_trees"], whole["early_stopping_rounds"]) == (500, 50)


def catboost_parameters(settings: dict) -> dict:
    return catboost_learner._parameters(complete(settings, CATBOOST, "test"))


def test_catboosts_defaults():
    assert catboost_parameters({}) == {
        "loss_function": "YetiRank",
        "iterations": 1000,
        "learning_rate": 0.1,
        "depth": 6,
        "border_count": 254,
        "rsm": 1.0,
        "boosting_type": "Plain",
        "allow_writing_files": False,
        "logging_level": "Silent",
    }


@pytest.mark.parametrize(
    ("settings", "loss"),
    [
        ({"metric": "Classic"}, "YetiRank:mode=Classic"),
        ({"metric": "NDCG", "k": 10}, "YetiRank:mode=NDCG;dcg_type=Exp;top=10"),
        ({"metric": "DCG", "gain": "linear"}, "YetiRank:mode=DCG;dcg_type=Base"),
        ({"metric": "MAP"}, "YetiRank:mode=MAP"),
        ({"objective": "YetiRankPairwise", "metric": "ERR"}, "YetiRankPairwise:mode=ERR"),
        ({"objective": "StochasticRank"}, "StochasticRank:metric=NDCG;type=Exp"),
        (
            {"objective": "StochasticRank", "metric": "DCG", "gain": "linear", "k": 5},
            "StochasticRank:metric=DCG;type=Base;top=5",
        ),
        ({"objective": "StochasticRank", "metric": "MRR"}, "StochasticRank:metric=MRR"),
        ({"objective": "LambdaMart"}, "LambdaMart:metric=NDCG;type=Exp"),
        (
            {"objective": "LambdaMart", "metric": "NDCG", "k": 10},
            "LambdaMart:metric=NDCG;type=Exp;top=10",
        ),
        ({"objective": "LambdaMart", "metric": "ERR"}, "LambdaMart:metric=ERR"),
        ({"objective": "PairLogit"}, "PairLogit"),
        ({"objective": "QueryRMSE"}, "QueryRMSE"),
    ],
)
def test_how_an_objective_is_described_to_catboost(settings, loss):
    assert catboost_parameters(settings)["loss_function"] == loss


def test_catboost_chooses_penalty_and_noise_by_the_objective():
    """LambdaMart with a penalty would learn the reverse, see ``test_forces.py``."""
    catboost = pytest.importorskip("catboost")
    labels, query = np.tile([0.0, 0.5, 1.0], 20), np.repeat(np.arange(12), 5)
    pool = catboost.Pool(np.random.default_rng(0).normal(size=(60, 3)), labels, group_id=query)
    found = {}
    for objective in ("YetiRank", "YetiRankPairwise", "LambdaMart", "PairLogit"):
        parameters = catboost_parameters({"objective": objective, "n_trees": 1})
        model = catboost.CatBoost(parameters).fit(pool)
        own = model.get_all_params()
        found[objective] = (round(own["l2_leaf_reg"], 6), own["random_strength"])
    assert found == {
        "YetiRank": (0, 1), "YetiRankPairwise": (0, 0), "LambdaMart": (0, 1), "PairLogit": (3, 1),
    }  # fmt: skip


def test_the_labels_that_catboost_gets():
    labels = np.array([0, 1, 2, 3], np.float32)
    for metric, targets in (
        ("NDCG", [0, 1, 2, 3]),
        ("MRR", [0, 1, 1, 1]),
        ("MAP", [0, 1, 1, 1]),
        ("ERR", [0, 1 / 8, 3 / 8, 7 / 8]),
    ):
        np.testing.assert_array_equal(catboost_learner._targets(labels, metric, 4), targets)
