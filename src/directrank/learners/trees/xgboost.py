"""Pairwise boosted trees with XGBoost (``rank:pairwise``), a baseline of Pobrotyn2021.

The package is optional (``xgboost-cpu`` is enough). The paper gives the objective only.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from directrank import metrics
from directrank.learners.contract import FitJob, Fitted, Splits, history_row
from directrank.learners.inputs import (
    check_features,
    check_splits,
    documents,
    groups,
)
from directrank.lists.packed import RankedLists
from directrank.metrics.packed import metrics_per_query
from directrank.system.errors import DirectrankError, TrainingError
from directrank.system.io import write_text
from directrank.system.schema import complete
from directrank.system.seeds import derive_seed

#: The settings of a fit. All but the objective is left open by the paper; the defaults are the
#: library's, except number of trees, early stopping and learning rate.
SETTINGS: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "n_trees": {
            "type": "integer",
            "minimum": 1,
            "default": 500,
            "description": "n_trees is the largest number of trees",
        },
        "early_stopping_rounds": {
            "type": "integer",
            "minimum": 0,
            "default": 50,
            "description": "early_stopping_rounds: training ends after as many trees without a "
            "better validation metric, and the best number of trees is kept; 0 keeps all trees",
        },
        "learning_rate": {
            "type": "number",
            "exclusiveMinimum": 0,
            "default": 0.1,
            "description": "learning_rate is the factor on every tree's output",
        },
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
        "max_bin": {
            "type": "integer",
            "minimum": 2,
            "default": 256,
            "description": "max_bin is the largest number of histogram bins of a feature",
        },
        "subsample": {
            "type": "number",
            "exclusiveMinimum": 0,
            "maximum": 1,
            "default": 1.0,
            "description": "subsample is the share of documents drawn for each tree",
        },
        "feature_fraction": {
            "type": "number",
            "exclusiveMinimum": 0,
            "maximum": 1,
            "default": 1.0,
            "description": "feature_fraction is the share of features drawn for each tree",
        },
        "pair_method": {
            "enum": ["topk", "mean"],
            "default": "topk",
            "description": "pair_method: 'topk' pairs the documents ranked first with all others, "
            "'mean' draws pairs at random, as versions before 2.0 did (the same in every trial)",
        },
        "n_pairs": {
            "type": ["integer", "null"],
            "minimum": 1,
            "default": None,
            "description": "n_pairs: how many documents 'topk' takes, or how many pairs 'mean' "
            "draws for each document; null is the library's own number",
        },
    },
}


def fit(data: Splits, settings: Mapping[str, Any], job: FitJob) -> Fitted:
    """Fit pairwise trees and keep the number of trees that is best on the validation set.

    Args:
        data: the splits. Features may hold NaN (taken as missing) but no infinities.
        settings: see :data:`SETTINGS`.
        job: ``selection`` may be any metric; it is measured by this package, on full lists.

    Returns:
        The model. In its history ``vali_metric`` is the mean over the queries that are not empty,
        and ``train_loss`` is NaN: XGBoost does not report the pairwise loss. Given the same data,
        settings, run, trial and threads the model is the same to the byte.

    Raises:
        ConfigError: an unknown setting or an impossible value.
        DataError: labels that are not grades, or splits without a relevant document.
        DirectrankError: the package is not installed.
        TrainingError: XGBoost failed, or found nothing to split on.
    """
    settings = complete(settings, SETTINGS, "learner 'xgboost'")
    xgboost = _package()
    check_splits(data)
    label = metrics.label(job.selection)
    values: list[float] = []

    def measure(scores: np.ndarray, _: Any) -> tuple[str, float]:
        # XGBoost hands the value on rounded to six decimals: the exact one is kept beside it.
        per_query = metrics_per_query(scores, data.vali, [job.selection])[label]
        values.append(float(np.nanmean(per_query)))
        return label, values[-1]

    patience = settings["early_stopping_rounds"]
    recorder = _recorder(xgboost, values, label, patience, settings["n_trees"], job)
    try:
        train = _matrix(xgboost, data.train, settings, job)
        vali = _matrix(xgboost, data.vali, settings, job, reference=train)
        recorder.before = time.perf_counter()
        booster = xgboost.train(
            _parameters(settings, job),
            train,
            num_boost_round=settings["n_trees"],
            evals=[(vali, "vali")],
            custom_metric=measure,
            callbacks=[recorder],
            verbose_eval=False,
        )
    except xgboost.core.XGBoostError as error:
        reason = str(error).partition("\n\nStack trace")[0].strip()
        raise TrainingError(
            f"XGBoost failed: {reason}", "check the settings and the features of this run"
        ) from error
    if patience:
        booster = booster[: int(np.argmax(values)) + 1]
    n_trees, n_nodes = booster.num_boosted_rounds(), _count_nodes(booster)
    if n_nodes == n_trees:
        # Scores would be equal, and every metric that of the order in the file.
        raise TrainingError(
            f"no tree found a split in {data.train.n_documents} documents of "
            f"{data.train.n_queries} queries",
            "lower min_child_weight, which is meant for larger data",
        )
    text = booster.save_raw("json").decode("utf-8")
    booster.set_param({"nthread": job.threads})
    return Fitted(
        predict=lambda lists: _predict(booster, lists),
        history=recorder.rows,
        info={
            "best_epoch": n_trees,
            "epochs": len(recorder.rows),
            "stopped_early": len(recorder.rows) < settings["n_trees"],
            "n_parameters": n_nodes,
        },
        save=lambda path: write_text(path.with_name(path.name + ".json"), text),
    )


def _package() -> ModuleType:
    try:
        import xgboost
    except ImportError:
        raise DirectrankError(
            "the learner 'xgboost' needs a package that is not installed",
            "pip install xgboost-cpu (or xgboost)",
        ) from None
    return xgboost


def _recorder(
    xgboost: ModuleType,
    values: Sequence[float],
    label: str,
    patience: int,
    n_trees: int,
    job: FitJob,
) -> Any:
    """A callback that writes the history, moves the progress bar and says when to stop."""

    callback: Any = xgboost.callback.TrainingCallback

    class Recorder(callback):
        def __init__(self) -> None:
            super().__init__()
            self.rows: list[dict[str, Any]] = []
            self.before = 0.0

        def after_iteration(self, model: Any, epoch: int, evals_log: Mapping[str, Any]) -> bool:
            now = time.perf_counter()
            self.rows.append(history_row(epoch + 1, now - self.before, vali_metric=values[-1]))
            self.before = now
            job.progress(epoch + 1, n_trees, f"{label} {values[-1]:.4f}")
            return bool(patience) and epoch - int(np.argmax(values)) >= patience

    return Recorder()


def _parameters(settings: Mapping[str, Any], job: FitJob) -> dict[str, Any]:
    pairs = {"lambdarank_num_pair_per_sample": settings["n_pairs"]} if settings["n_pairs"] else {}
    return {
        "objective": "rank:pairwise",
        "disable_default_eval_metric": True,
        "tree_method": "hist",
        **{
            name: settings[name]
            for name in ("learning_rate", "max_depth", "min_child_weight", "max_bin", "subsample")
        },
        "colsample_bytree": settings["feature_fraction"],
        "lambdarank_pair_method": settings["pair_method"],
        **pairs,
        "seed": derive_seed(job.run, job.trial, "xgboost") % 2**31,
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
        labels,
        group=groups(lists),
        max_bin=settings["max_bin"],
        ref=reference,
        nthread=job.threads,
    )


def _predict(booster: Any, lists: RankedLists) -> np.ndarray:
    check_features(lists, booster.num_features())
    return booster.inplace_predict(documents(lists)[0])


def _count_nodes(booster: Any) -> int:
    """Thresholds and outputs of all trees: the dump has a line for each."""
    return sum(tree.count("\n") for tree in booster.get_dump())
