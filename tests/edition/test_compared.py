"""What one protocol of an edition compares, by its names."""

import pytest

from directrank.edition.compared import _ensemble


@pytest.mark.parametrize(
    ("learner", "model", "library", "options"),
    [
        (
            "lightgbm",
            {"num_leaves": 31, "norm": False},
            "LightGBM",
            {"objective": "lambdarank", "lambdarank_norm": False},
        ),
        (
            "xgboost",
            {"pair_method": "mean", "norm": False},
            "XGBoost",
            {
                "objective": "rank:pairwise",
                "lambdarank_pair_method": "mean",
                "lambdarank_normalization": False,
            },
        ),
        ("catboost", {"objective": "QueryRMSE"}, "CatBoost", {"loss_function": "QueryRMSE"}),
        (
            "catboost",
            {"metric": "NDCG", "k": 10},
            "CatBoost",
            {"loss_function": "YetiRank:mode=NDCG;top=10"},
        ),
    ],
)
def test_options_of_trees_have_the_names_that_their_library_reads(learner, model, library, options):
    assert _ensemble({"learner": learner, "model": model}) == {
        "library": library,
        "options": options,
    }
