"""Boosted trees with XGBoost's lambdas; ``rank:pairwise`` is a baseline of Pobrotyn2021.

The three objectives differ in what a pair's force is multiplied by: nothing (``rank:pairwise``),
the change in NDCG (``rank:ndcg``) or in AP (``rank:map``) if the two documents changed places. With
``score_norm`` on, XGBoost's default, even ``rank:pairwise`` is not RankNet's loss: forces are
divided by 0.01 + |Δs|. The package is optional (``xgboost-cpu`` is enough). The paper gives the
objective only.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any

import numpy as np

from directrank.learners.contract import FitJob, Fitted, Splits
from directrank.learners.inputs import (
    check_features,
    check_splits,
    documents,
    groups,
)
from directrank.learners.trees import boosting
from directrank.learners.trees.boosting import Boosting, MeanMetric
from directrank.learners.trees.settings import (
    EARLY_STOPPING_ROUNDS,
    LEARNING_RATE,
    MAX_BIN,
    N_TREES,
    SHARE,
)
from directrank.lists.packed import RankedLists
from directrank.system.errors import DataError, TrainingError
from directrank.system.io import write_text
from directrank.system.schema import complete

#: The greatest label whose gain 2^label - 1 ``rank:ndcg`` takes.
MAX_LABEL = 31

#: The settings of a fit. All but the objective is left open by the paper; the defaults are the
#: library's, except number of trees, early stopping and learning rate.
SETTINGS: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "objective": {
            "enum": ["rank:pairwise", "rank:ndcg", "rank:map"],
            "default": "rank:pairwise",
            "description": "objective is XGBoost's: rank:pairwise, rank:ndcg or rank:map (which "
            "takes documents with a label above 0 as relevant)",
        },
        "n_trees": {**N_TREES, "default": 500},
        "early_stopping_rounds": {**EARLY_STOPPING_ROUNDS, "default": 50},
        "learning_rate": {**LEARNING_RATE, "default": 0.1},
        "max_depth": {
            "type": "integer",
            "minimum": 1,
            "default": 6,
            "description": "max_depth is the largest depth of a tree; tune it over 6, 8 and 10",
        },
        "min_child_weight": {
            "type": "number",
            "minimum": 0,
            "default": 1.0,
            "description": "min_child_weight is the least sum of second derivatives in a leaf",
        },
        "max_bin": {**MAX_BIN, "default": 256},
        "subsample": {
            **SHARE,
            "default": 1.0,
            "description": "subsample is the share of documents drawn for each tree",
        },
        "feature_fraction": {
            **SHARE,
            "default": 1.0,
            "description": "feature_fraction is the share of features drawn for each tree",
        },
        "pair_method": {
            "enum": ["topk", "mean"],
            "default": "topk",
            "description": "pair_method (lambdarank_pair_method): 'topk' pairs the documents "
            "ranked first with all others, 'mean' draws pairs at random, as versions before 2.0 "
            "did (the same in every trial)",
        },
        "n_pairs": {
            "type": ["integer", "null"],
            "minimum": 1,
            "default": None,
            "description": "n_pairs (lambdarank_num_pair_per_sample): how many documents 'topk' "
            "takes, or how many pairs 'mean' draws for each document; null is the library's own "
            "number",
        },
        "norm": {
            "type": "boolean",
            "default": True,
            "description": "norm (lambdarank_normalization) rescales the forces of each query: for "
            "'topk' by log2(1 + S) / S of their sum S, for 'mean' by 1 / n_pairs",
        },
        "score_norm": {
            "type": "boolean",
            "default": True,
            "description": "score_norm (lambdarank_score_normalization) divides the force of a "
            "pair by 0.01 + |Δs|",
        },
    },
}


def fit(data: Splits, settings: Mapping[str, Any], job: FitJob) -> Fitted:
    """Fit boosted trees and keep the number of trees that is best on the validation set.

    Args:
        data: the splits. Features may hold NaN (taken as missing) but no infinities.
        settings: see :data:`SETTINGS`.
        job: ``selection`` may be any metric; it is measured by this package, on full lists.

    Returns:
        The model. In its history ``vali_metric`` is the mean over the queries that are not empty,
        and ``train_loss`` is NaN: XGBoost reports no loss of its lambdas. Given the same data,
        settings, run, trial and threads the model is the same to the byte.

    Raises:
        ConfigError: an unknown setting or an impossible value.
        DataError: labels that are not grades, have nothing to rank by or are too large for
            ``rank:ndcg``, or splits without a relevant document.
        DirectrankError: the package is not installed.
        TrainingError: XGBoost failed, or found nothing to split on.
    """
    settings = complete(settings, SETTINGS, "learner 'xgboost'")
    xgboost = boosting.library("xgboost", "xgboost-cpu (or xgboost)")
    check_splits(data)
    _check_labels(data, settings["objective"])
    measure = MeanMetric(data.vali, job.selection)
    trees = Boosting(settings, job)
    recorder = _recorder(xgboost, trees)

    def evaluate(scores: np.ndarray, _: Any) -> tuple[str, float]:
        # XGBoost hands the value on rounded to six decimals: the exact one is kept beside it.
        recorder.value = measure(scores)
        return measure.label, recorder.value

    try:
        train = _matrix(xgboost, data.train, settings, job)
        vali = _matrix(xgboost, data.vali, settings, job, reference=train)
        trees.start()
        booster = xgboost.train(
            _parameters(settings, job),
            train,
            num_boost_round=settings["n_trees"],
            evals=[(vali, "vali")],
            custom_metric=evaluate,
            callbacks=[recorder],
            verbose_eval=False,
        )
    except xgboost.core.XGBoostError as error:
        reason = str(error).partition("\n\nStack trace")[0].strip()
        raise TrainingError(
            f"XGBoost failed: {reason}", "check the settings and the features of this run"
        ) from error
    booster = booster[: trees.kept]
    n_nodes = _count_nodes(booster)
    if n_nodes == trees.kept:
        raise boosting.no_split(data, "lower min_child_weight, which is meant for larger data")
    text = booster.save_raw("json").decode("utf-8")
    booster.set_param({"nthread": job.threads})
    return trees.fitted(
        trees.kept,
        n_parameters=n_nodes,
        predict=lambda lists: _predict(booster, lists),
        save=lambda path: write_text(path.with_name(path.name + ".json"), text),
    )


def _check_labels(data: Splits, objective: str) -> None:
    greatest = max(int(documents(lists)[1].max()) for lists in (data.train, data.vali))
    if objective == "rank:ndcg" and greatest > MAX_LABEL:
        raise DataError(
            f"rank:ndcg takes labels up to {MAX_LABEL}; these go up to {greatest}",
            "take rank:pairwise, or prepare the data set with fewer label levels",
        )


def _recorder(xgboost: ModuleType, trees: Boosting) -> Any:
    """A callback that writes down each tree with its ``value``, and says when to stop."""

    callback: Any = xgboost.callback.TrainingCallback

    class Recorder(callback):
        value = float("nan")

        def after_iteration(self, model: Any, epoch: int, evals_log: Mapping[str, Any]) -> bool:
            return trees.add(self.value)

    return Recorder()


def _parameters(settings: Mapping[str, Any], job: FitJob) -> dict[str, Any]:
    pairs = {"lambdarank_num_pair_per_sample": settings["n_pairs"]} if settings["n_pairs"] else {}
    return {
        "objective": settings["objective"],
        "disable_default_eval_metric": True,
        "tree_method": "hist",
        **{
            name: settings[name]
            for name in ("learning_rate", "max_depth", "min_child_weight", "max_bin", "subsample")
        },
        "colsample_bytree": settings["feature_fraction"],
        "lambdarank_pair_method": settings["pair_method"],
        "lambdarank_normalization": settings["norm"],
        "lambdarank_score_normalization": settings["score_norm"],
        **pairs,
        "seed": boosting.seed(job, "xgboost"),
        "nthread": job.threads,
        "verbosity": 0,
    }


def _matrix(
    xgboost: ModuleType,
    lists: RankedLists,
    settings: Mapping[str, Any],
    job: FitJob,
    reference: Any = None,
) -> Any:
    # The quantile matrix keeps bins only, as LightGBM does.
    features, labels = documents(lists)
    return xgboost.QuantileDMatrix(
        features,
        labels > 0 if settings["objective"] == "rank:map" else labels,
        group=groups(lists),
        max_bin=settings["max_bin"],
        ref=reference,
        nthread=job.threads,
    )


def _predict(booster: Any, lists: RankedLists) -> np.ndarray:
    check_features(lists, booster.num_features())
    scores = booster.inplace_predict(documents(lists)[0])
    return boosting.finite(scores, "raise min_child_weight or lower learning_rate")


def _count_nodes(booster: Any) -> int:
    """Thresholds and outputs of all trees: the dump has a line for each."""
    return sum(tree.count("\n") for tree in booster.get_dump())
