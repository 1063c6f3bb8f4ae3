"""What may be set: the study's settings and the library's options, and how others are refused."""

from __future__ import annotations

import json
import re

import pytest

from directrank import learners
from directrank.learners.contract import Splits
from directrank.learners.trees.settings import most_leaves
from directrank.system.errors import ConfigError
from tree_data import job, splits

#: Options that this study has no name and no default for.
PASSED_ON = [
    (
        "lightgbm",
        {"lambda_l2": 7.5, "extra_trees": True, "monotone_constraints": [1, 0, 0, 0, 0, 0]},
    ),
    ("lightgbm", {"bagging_by_query": True, "bagging_fraction": 0.5, "path_smooth": None}),
    ("xgboost", {"reg_lambda": 7.5, "monotone_constraints": "(1,0,-1)"}),
    ("xgboost", {"grow_policy": "lossguide", "max_leaves": 5, "max_depth": 0}),
    ("catboost", {"leaf_estimation_iterations": 7, "bootstrap_type": "No"}),
]

REFUSED = [
    # An option that nobody has.
    ("lightgbm", {"n_treess": 3}, "has no option 'n_treess'(.|\n)*did you mean 'n_trees'"),
    ("xgboost", {"n_treess": 3}, "has no option 'n_treess'(.|\n)*did you mean 'n_trees'"),
    ("catboost", {"n_treess": 3}, "has no option 'n_treess'(.|\n)*did you mean 'n_trees'"),
    ("lightgbm", {"lambda_l3": 3}, "has no option 'lambda_l3'(.|\n)*did you mean 'lambda_l2'"),
    ("xgboost", {"reg_lambda": 2, "gama": 3}, "has no option 'gama'(.|\n)*documentation of XGB"),
    ("ranklib", {"leaves": 10}, "'leaves'(.|\n)*did you mean 'n_leaves'"),
    # A second name of an option.
    ("lightgbm", {"eta": 0.3}, "'eta' is called 'learning_rate'"),
    ("xgboost", {"eta": 0.3}, "'eta' is called 'learning_rate'"),
    ("catboost", {"eta": 0.3}, "'eta' is called 'learning_rate'"),
    ("lightgbm", {"lambdarank_norm": False}, "is called 'norm'"),
    ("lightgbm", {"num_boost_round": 3}, "is called 'n_trees'"),
    ("lightgbm", {"reg_lambda": 3}, "is called 'lambda_l2'"),
    ("xgboost", {"colsample_bytree": 0.5}, "is called 'feature_fraction'"),
    ("catboost", {"loss_function": "RMSE"}, "is called 'objective'"),
    ("catboost", {"n_estimators": 3}, "only one of the parameters iterations, n_estimators"),
    # What a run sets by other means.
    ("lightgbm", {"random_state": 3}, "cannot be set: random numbers"),
    ("lightgbm", {"bagging_seed": 3}, "cannot be set: random numbers"),
    ("xgboost", {"seed": 3}, "cannot be set: random numbers"),
    ("catboost", {"random_seed": 3}, "cannot be set: random numbers"),
    ("lightgbm", {"n_jobs": 3}, "cannot be set: threads and device"),
    ("xgboost", {"device": "gpu"}, "'gpu' is not one of \\['cpu', 'cuda'\\] .at device"),
    ("xgboost", {"gpu_id": 1}, "cannot be set: threads and device"),
    ("catboost", {"task_type": "GPU"}, "cannot be set: threads and device"),
    ("lightgbm", {"forced_splits": "splits.json"}, "cannot be set: data are prepared"),
    ("catboost", {"train_dir": "here"}, "cannot be set: data are prepared"),
    ("lightgbm", {"metric": "map"}, "cannot be set: the run's 'selection'"),
    ("xgboost", {"eval_metric": "map"}, "cannot be set: the run's 'selection'"),
    ("catboost", {"od_wait": 3}, "cannot be set: the run's 'selection'"),
    ("lightgbm", {"boosting_type": "dart"}, "cannot be set: a round adds one tree"),
    ("xgboost", {"booster": "dart"}, "cannot be set: a round adds one tree"),
    ("catboost", {"model_shrink_rate": 0.1}, "cannot be set: a round adds one tree"),
    ("lightgbm", {"label_gain": [0, 1]}, "cannot be set: the gain"),
    # Values.
    ("lightgbm", {"objective": "regression"}, "not one of"),
    ("xgboost", {"objective": "reg:squarederror"}, "not one of"),
    ("catboost", {"objective": "PairLogitPairwise"}, "not one of"),
    ("catboost", {"objective": "LambdaMart", "l2_leaf_reg": 3.0}, "l2_leaf_reg is a setting of"),
    (
        "catboost",
        {"objective": "LambdaMart", "leaf_estimation_method": "Gradient"},
        "leaf_estimation_method is a setting of",
    ),
    ("lightgbm", {"learning_rate": 0}, "learning_rate"),
    ("catboost", {"learning_rate": -1}, "learning_rate"),
    ("lightgbm", {"num_leaves": 1}, r"does not take {'num_leaves': 1}: .*num_leaves\) > \(1\)"),
    ("lightgbm", {"lambda_l2": -1}, r"does not take .*\(lambda_l2\) >= \(0.0\)"),
    ("xgboost", {"pair_method": "all"}, "valid values are: {'mean', 'topk'}"),
    ("xgboost", {"max_bin": 1}, "does not take {'max_bin': 1}"),
    ("xgboost", {"tree_method": "exact"}, "Only `hist`"),
    ("catboost", {"max_depth": 17}, "Maximum tree depth is 16"),
    ("catboost", {"bootstrap_type": "Deep"}, "Key 'Deep' not found"),
    ("catboost", {"grow_policy": "Depthwise"}, "only if they are symmetric"),
    ("ranklib", {"n_leaves": 1}, "n_leaves"),
    ("ranklib", {"memory": "lots"}, "memory"),
    # Settings that the objective, or the metric, does not read.
    ("lightgbm", {"objective": "rank_xendcg", "norm": False}, "norm is a setting of lambdarank"),
    ("lightgbm", {"objective": "rank_xendcg", "truncation_level": 5}, "setting of lambdarank"),
    ("catboost", {"objective": "QueryRMSE", "metric": "NDCG"}, "a setting of YetiRank"),
    ("catboost", {"objective": "StochasticRank", "metric": "MAP"}, "does not support .* MAP"),
    ("catboost", {"k": 5}, "k is a setting of NDCG"),
    ("catboost", {"metric": "Classic", "k": 5}, "k is a setting of NDCG"),
    ("catboost", {"metric": "MAP", "gain": "linear"}, "gain is a setting of NDCG, DCG"),
]


@pytest.fixture(scope="module")
def data() -> Splits:
    return splits()


@pytest.mark.parametrize(("learner", "settings"), PASSED_ON)
def test_other_options_reach_the_library_and_change_the_model(data, learner, settings):
    pytest.importorskip(learner, reason=f"NOT TESTED: the learner {learner} needs its package")
    small = {"n_trees": 3, **({"min_sum_hessian_in_leaf": 0.1} if learner == "lightgbm" else {})}
    named = learners.get(learner).settings["properties"]
    small |= {name: value for name, value in settings.items() if name in named}
    learners.get(learner).check(small | settings, "model", by_library=True)
    fit = learners.get(learner).load()
    with_options, without = (
        fit(data, each, job()).predict(data.test).tobytes() for each in (small | settings, small)
    )
    assert with_options != without


@pytest.mark.parametrize(("learner", "settings", "message"), REFUSED)
def test_what_cannot_be_set_is_one_clear_error(capfd, learner, settings, message):
    if learner != "ranklib":
        pytest.importorskip(learner, reason=f"NOT TESTED: {learner} checks options itself")
    with pytest.raises(ConfigError, match=message) as caught:
        learners.get(learner).check(settings, "run: model", by_library=True)
    assert str(caught.value).startswith("run: model: ")
    assert not re.search(r"\.(cc|cpp|h)\b|Stack trace", str(caught.value))
    assert caught.value.remedy
    assert capfd.readouterr().out == ""


def test_the_largest_number_of_leaves_follows_from_the_settings():
    assert most_leaves({"num_leaves": 7, "max_depth": -1}) == 7
    assert most_leaves({"max_depth": 6}) == 64
    assert most_leaves({"max_depth": 0, "max_leaves": 31}) == 31
    assert most_leaves({"max_depth": 0}) > 10**9


@pytest.mark.parametrize("learner", ["lightgbm", "xgboost", "catboost", "ranklib"])
def test_the_page_on_trees_has_every_default_and_every_other_name(root, learner):
    page = (root / "docs/trees.md").read_text(encoding="utf-8")
    (row,) = re.findall(rf"^\| `{learner}` \| (`objective|`n_trees)(.*) \|$", page, re.MULTILINE)
    entries = learners.get(learner).settings["properties"].items()
    expected = [
        f"`{name}: {json.dumps(entry['default'])}`".replace('"', "")
        + (f" (`{entry['x-name']}`)" if "x-name" in entry else "")
        for name, entry in entries
        if "default" in entry
    ]
    assert "".join(row).split(", ") == expected
