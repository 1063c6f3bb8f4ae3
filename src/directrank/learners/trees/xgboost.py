"""Boosted trees with XGBoost's lambdas; ``rank:pairwise`` is a baseline of Pobrotyn2021.

The three objectives differ in what a pair's force is multiplied by: nothing (``rank:pairwise``),
the change in NDCG (``rank:ndcg``) or in AP (``rank:map``) if the two documents changed places. With
``score_norm`` on, XGBoost's default, even ``rank:pairwise`` is not RankNet's loss: forces are
divided by 0.01 + |Δs|. The package is optional (``xgboost-cpu`` is enough). The paper gives the
objective only.
"""

from __future__ import annotations

import json
import warnings
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
from directrank.learners.trees.settings import XGBOOST, complete, passed_on
from directrank.lists.packed import RankedLists
from directrank.system.errors import ConfigError, DataError, TrainingError
from directrank.system.io import write_text

#: The greatest label whose gain 2^label - 1 ``rank:ndcg`` takes.
MAX_LABEL = 31


def check(settings: Mapping[str, Any], where: str) -> None:
    """Raise :class:`ConfigError` if XGBoost does not take ``settings``, whatever the data."""
    whole = complete(settings, XGBOOST, where)
    xgboost = _library()

    def train(toy: RankedLists) -> None:
        # A plan may be made on a machine without the GPU.
        parameters = {**_parameters(whole), "device": "cpu", "nthread": 1, "verbosity": 1}
        xgboost.train(parameters, _matrix(xgboost, toy, whole, 1), num_boost_round=1)

    boosting.check(settings, XGBOOST, where, train)


def fit(data: Splits, settings: Mapping[str, Any], job: FitJob) -> Fitted:
    """Fit boosted trees and keep the number of trees that is best on the validation set.

    Args:
        data: the splits. Features may hold NaN (taken as missing) but no infinities.
        settings: see :data:`.XGBOOST`.
        job: ``selection`` may be any metric; it is measured by this package, on full lists.

    Returns:
        The model. In its history ``vali_metric`` is the mean over the queries that are not empty,
        and ``train_loss`` is NaN: XGBoost reports no loss of its lambdas. Given the same data,
        settings, run, trial and threads the model is the same to the byte; with ``device: cuda``
        this has not been tested.

    Raises:
        ConfigError: an unknown setting or an impossible value, or ``device: cuda`` without a GPU.
        DataError: labels that are not grades, have nothing to rank by or are too large for
            ``rank:ndcg``, or splits without a relevant document.
        DirectrankError: the package is not installed.
        TrainingError: XGBoost failed, or found nothing to split on.
    """
    settings = complete(settings, XGBOOST, "learner 'xgboost'")
    xgboost = _library()
    check_splits(data)
    _check_labels(data, settings["objective"])
    if settings["device"] == "cuda":
        _check_gpu(xgboost)
    measure = MeanMetric(data.vali, job.selection)
    trees = Boosting(settings, job)
    recorder = _recorder(xgboost, trees)

    def evaluate(scores: np.ndarray, _: Any) -> tuple[str, float]:
        # XGBoost hands the value on rounded to six decimals: the exact one is kept beside it.
        recorder.value = measure(scores)
        return measure.label, recorder.value

    try:
        train = _matrix(xgboost, data.train, settings, job.threads)
        vali = _matrix(xgboost, data.vali, settings, job.threads, reference=train)
        trees.start()
        booster = xgboost.train(
            {
                **_parameters(settings),
                "seed": boosting.seed(job, "xgboost"),
                "nthread": job.threads,
                "verbosity": 0,
            },
            train,
            num_boost_round=settings["n_trees"],
            evals=[(vali, "vali")],
            custom_metric=evaluate,
            callbacks=[recorder],
            verbose_eval=False,
        )
    except xgboost.core.XGBoostError as error:
        raise TrainingError(
            f"XGBoost failed: {boosting.reason_of(error)}",
            "check the settings and the features of this run",
        ) from error
    booster = booster[: trees.kept]
    n_nodes = _count_nodes(booster)
    if n_nodes == trees.kept:
        raise boosting.no_split(data, "lower min_child_weight, which is meant for larger data")
    text = booster.save_raw("json").decode("utf-8")
    booster.set_param({"nthread": job.threads, "device": "cpu"})
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


def _check_gpu(xgboost: ModuleType) -> None:
    # XGBoost would warn, and train on cores.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        toy = xgboost.DMatrix(np.zeros((1, 1)), np.zeros(1))
        configuration = xgboost.Booster({"device": "cuda"}, [toy]).save_config()
    if json.loads(configuration)["learner"]["generic_param"]["device"] == "cpu":
        raise ConfigError(
            "learner 'xgboost': 'device: cuda' was requested, but XGBoost finds no GPU",
            "set 'device: cpu', or run on a machine with a GPU, with xgboost installed in place of "
            "xgboost-cpu",
        )


def _recorder(xgboost: ModuleType, trees: Boosting) -> Any:
    """A callback that writes down each tree with its ``value``, and says when to stop."""

    callback: Any = xgboost.callback.TrainingCallback

    class Recorder(callback):
        value = float("nan")

        def after_iteration(self, model: Any, epoch: int, evals_log: Mapping[str, Any]) -> bool:
            return trees.add(self.value)

    return Recorder()


def _library() -> ModuleType:
    return boosting.library("xgboost", "xgboost-cpu (or xgboost)")


def _parameters(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "disable_default_eval_metric": True,
        "tree_method": "hist",
        **passed_on(settings, XGBOOST, "n_trees", "early_stopping_rounds"),
    }


def _matrix(
    xgboost: ModuleType,
    lists: RankedLists,
    settings: Mapping[str, Any],
    threads: int,
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
        nthread=threads,
    )


def _predict(booster: Any, lists: RankedLists) -> np.ndarray:
    check_features(lists, booster.num_features())
    scores = booster.inplace_predict(documents(lists)[0])
    return boosting.finite(scores, "raise min_child_weight or lower learning_rate")


def _count_nodes(booster: Any) -> int:
    """Thresholds and outputs of all trees: the dump has a line for each."""
    return sum(tree.count("\n") for tree in booster.get_dump())
