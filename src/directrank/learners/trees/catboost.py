"""Boosted trees with CatBoost: YetiRank and its modes, LambdaMart, StochasticRank, and others.

Trees are symmetric: every node of a level asks the same question. ``YetiRank`` (Gulin et al. 2011)
draws orders by adding Gumbel noise to the scores, and weighs the logistic loss of documents that
are neighbours in them; since CatBoost 1.2.1 the weight may be the change of a metric (YetiLoss of
Lyzhin et al. 2023). ``YetiRankPairwise`` chooses leaf values by the pairs jointly, which is slower.
``StochasticRank`` (Ustimenko and Prokhorenkova 2020) estimates the gradient of a metric smoothed by
noise. ``LambdaMart`` has the forces of Burges (2010), ``PairLogit`` those of RankNet.
``QueryRMSE`` is the squared error up to a constant per query, ``QuerySoftMax`` the
cross-entropy of a softmax with the labels.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
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
from directrank.learners.trees.settings import CATBOOST, complete, passed_on
from directrank.lists.packed import RankedLists
from directrank.system.errors import TrainingError
from directrank.system.io import atomic_path

#: Documents that are scored at once, because CatBoost copies them.
BLOCK = 1 << 17


def check(settings: Mapping[str, Any], where: str) -> None:
    """Raise :class:`ConfigError` if CatBoost does not take ``settings``, whatever the data."""
    whole = complete(settings, CATBOOST, where)
    catboost = _library()

    def train(toy: RankedLists) -> None:
        parameters = {**_parameters(whole), "iterations": 1, "thread_count": 1}
        catboost.CatBoost(parameters).fit(_pool(catboost, toy, whole, label_levels=2))

    boosting.check(settings, CATBOOST, where, train)


def fit(data: Splits, settings: Mapping[str, Any], job: FitJob) -> Fitted:
    """Fit boosted trees and keep the number of trees that is best on the validation set.

    Args:
        data: the splits. Features may hold NaN (taken as the smallest value) and infinities.
        settings: see :data:`.CATBOOST`.
        job: ``selection`` may be any metric; it is measured by this package, on full lists.

    Returns:
        The model. In its history ``vali_metric`` is the mean over the queries that are not empty,
        and ``train_loss`` is NaN. Given the same data, settings, run, trial and threads the model
        is the same to the byte: CatBoost's random identifier and time stamp are removed.

    Raises:
        ConfigError: a setting is unknown or not valid.
        DataError: labels are not grades or are all equal within queries, or a split has no relevant
            document.
        DirectrankError: the package is not installed.
        TrainingError: CatBoost failed, or found nothing to split on.
    """
    settings = complete(settings, CATBOOST, "learner 'catboost'")
    catboost = _library()
    check_splits(data)
    trees = Boosting(settings, job)
    metric = _Metric(MeanMetric(data.vali, job.selection), data.vali.n_documents)
    recorder = _Recorder(trees, metric)
    model = catboost.CatBoost(
        {
            **_parameters(settings),
            "eval_metric": metric,
            "random_seed": boosting.seed(job, "catboost"),
            "thread_count": job.threads,
        }
    )
    try:
        train, vali = (
            _pool(catboost, lists, settings, data.label_levels) for lists in (data.train, data.vali)
        )
        with warnings.catch_warnings():
            # CatBoost compiles a metric where it can; this one is a few calls of compiled loops.
            warnings.filterwarnings("ignore", message="Can't optimze method")
            trees.start()
            model.fit(train, eval_set=vali, use_best_model=False, callbacks=[recorder])
    except catboost.CatBoostError as error:
        raise TrainingError(
            f"CatBoost failed: {boosting.reason_of(error)}",
            "check the settings and the features of this run",
        ) from error
    if recorder.error is not None:
        raise recorder.error
    model.shrink(trees.kept)
    leaves = model.get_tree_leaf_counts()
    if leaves.max() == 1:
        raise boosting.no_split(data, "lower l2_leaf_reg, or use more queries")
    for name in ("model_guid", "train_finish_time"):
        model.get_metadata()[name] = ""
    return trees.fitted(
        trees.kept,
        # A symmetric tree has one threshold per level.
        n_parameters=int(leaves.sum() + np.log2(leaves).sum()),
        predict=lambda lists: _predict(model, lists, data.train.n_features, job.threads),
        save=lambda path: _save(model, path.with_name(path.name + ".cbm")),
    )


class _Metric:
    """The selection metric as CatBoost calls it, on the training set and then the validation set.

    Args:
        measure: the metric on the validation set.
        n_documents: of the validation set.
    """

    #: Of a set as a whole.
    WEIGHT = 1.0

    def __init__(self, measure: MeanMetric, n_documents: int) -> None:
        self.value = float("nan")
        self._measure = measure
        self._n_documents = n_documents

    def __deepcopy__(self, memo: Any) -> _Metric:
        return self  # CatBoost copies its parameters: the lists are not to be copied with them

    def is_max_optimal(self) -> bool:
        return True

    def get_final_error(self, error: float, weight: float) -> float:
        # CatBoost compiles a method that does not use its object, in the time of a small fit.
        return error / self.WEIGHT

    def evaluate(self, approxes: Any, target: Any, weight: Any) -> tuple[float, float]:
        (scores,) = approxes
        if len(scores) != self._n_documents:
            return 0.0, self.WEIGHT
        self.value = self._measure(np.array(scores))
        return self.value, self.WEIGHT


class _Recorder:
    """A callback that records each tree, and returns whether to continue.

    Exceptions raised here would become CatBoost's errors, so they are kept in ``error``.
    """

    def __init__(self, trees: Boosting, metric: _Metric) -> None:
        self.error: BaseException | None = None
        self._trees = trees
        self._metric = metric

    def after_iteration(self, info: Any) -> bool:
        try:
            return not self._trees.add(self._metric.value)
        except BaseException as error:
            self.error = error
            return False


def _library() -> ModuleType:
    return boosting.library("catboost", "catboost")


def _parameters(settings: Mapping[str, Any]) -> dict[str, Any]:
    kept = ("early_stopping_rounds", "objective", "metric", "k", "gain")
    return {
        "loss_function": _loss(settings),
        "allow_writing_files": False,
        "logging_level": "Silent",
        **passed_on(settings, CATBOOST, *kept),
    }


def _loss(settings: Mapping[str, Any]) -> str:
    """CatBoost's description of the objective, such as ``YetiRank:mode=NDCG;dcg_type=Exp``."""
    objective, metric = settings["objective"], settings["metric"]
    of_metric = objective in ("StochasticRank", "LambdaMart")
    if of_metric and metric is None:
        metric = "NDCG"
    if metric is None:
        return objective
    options = {"metric" if of_metric else "mode": metric}
    if metric in ("NDCG", "DCG"):
        kind = "Exp" if settings["gain"] == "exponential" else "Base"
        options["type" if of_metric else "dcg_type"] = kind
    if settings["k"] is not None:
        options["top"] = settings["k"]
    return f"{objective}:" + ";".join(f"{name}={value}" for name, value in options.items())


def _targets(labels: np.ndarray, metric: str | None, label_levels: int) -> np.ndarray:
    """The labels for CatBoost: relevance for MRR and MAP, the probability of stopping for ERR."""
    if metric in ("MRR", "MAP"):
        return (labels > 0).astype(np.float32)
    if metric == "ERR":
        return (np.exp2(labels) - 1) / 2 ** (label_levels - 1)
    return labels


def _pool(
    catboost: ModuleType, lists: RankedLists, settings: Mapping[str, Any], label_levels: int
) -> Any:
    features, labels = documents(lists)
    lengths = groups(lists)
    return catboost.Pool(
        features,
        _targets(labels, settings["metric"], label_levels),
        group_id=np.repeat(np.arange(len(lengths)), lengths),
    )


def _predict(model: Any, lists: RankedLists, n_features: int, threads: int) -> np.ndarray:
    check_features(lists, n_features)
    features = documents(lists)[0]
    blocks = [
        model.predict(features[first : first + BLOCK], thread_count=threads)
        for first in range(0, len(features), BLOCK)
    ]
    return boosting.finite(np.concatenate(blocks), "lower learning_rate or raise l2_leaf_reg")


def _save(model: Any, path: Path) -> None:
    with atomic_path(path) as temporary:
        model.save_model(str(temporary))
