"""LambdaMART with LightGBM, the strongest baseline of Bruch2019 and Yu2020.

LightGBM's ``lambdarank`` is not textbook LambdaRank: with ``norm`` on it divides |ΔNDCG| by
0.01 + |Δs| and rescales the lambdas of each query, and it only weighs pairs of which at least one
document is among the first ``truncation_level`` of the current ranking. Both are settings.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import lightgbm
import numpy as np
import torch

from directrank import metrics
from directrank.learners.contract import FitJob, Fitted, Splits, history_row
from directrank.learners.inputs import (
    check_features,
    check_splits,
    documents,
    empty_queries,
    groups,
)
from directrank.lists.packed import RankedLists
from directrank.metrics.packed import Evaluator, metrics_per_query
from directrank.stats.means import convert_mean
from directrank.system.errors import DataError, TrainingError
from directrank.system.io import write_text
from directrank.system.schema import complete
from directrank.system.seeds import derive_seed

#: LightGBM's own limit (kMaxPosition); it ends the process' training with an error beyond it.
MAX_DOCUMENTS = 10_000

#: The settings of a fit. The defaults are Bruch2019's; what the paper does not say is LightGBM's
#: default, except the sampling of features: ten trials without any randomness would have no spread.
SETTINGS: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "n_trees": {
            "type": "integer",
            "minimum": 1,
            "default": 1000,
            "description": "n_trees is the largest number of trees",
        },
        "early_stopping_rounds": {
            "type": "integer",
            "minimum": 0,
            "default": 200,
            "description": "early_stopping_rounds: training ends after as many trees without a "
            "better validation metric, and the best number of trees is kept; 0 keeps all trees",
        },
        "learning_rate": {
            "type": "number",
            "exclusiveMinimum": 0,
            "default": 0.1,
            "description": "learning_rate is the factor on every tree's output",
        },
        "num_leaves": {
            "type": "integer",
            "minimum": 2,
            "default": 200,
            "description": "num_leaves is the largest number of leaves of a tree",
        },
        "max_depth": {
            "type": "integer",
            "minimum": -1,
            "default": -1,
            "description": "max_depth is the largest depth of a tree; -1 sets no limit",
        },
        "min_data_in_leaf": {
            "type": "integer",
            "minimum": 0,
            "default": 50,
            "description": "min_data_in_leaf is the least number of documents in a leaf",
        },
        "min_sum_hessian_in_leaf": {
            "type": "number",
            "minimum": 0,
            "default": 100.0,
            "description": "min_sum_hessian_in_leaf is the least sum of second derivatives in a "
            "leaf",
        },
        "max_bin": {
            "type": "integer",
            "minimum": 2,
            "default": 255,
            "description": "max_bin is the largest number of histogram bins of a feature",
        },
        "truncation_level": {
            "type": "integer",
            "minimum": 1,
            "default": 30,
            "description": "truncation_level: only pairs with a document ranked this high count",
        },
        "norm": {
            "type": "boolean",
            "default": True,
            "description": "norm turns LightGBM's normalisation of the lambdas on or off",
        },
        "feature_fraction": {
            "type": "number",
            "exclusiveMinimum": 0,
            "maximum": 1,
            "default": 0.9,
            "description": "feature_fraction is the share of features drawn for each tree; 1 makes "
            "all trials alike",
        },
        "bagging_fraction": {
            "type": "number",
            "exclusiveMinimum": 0,
            "maximum": 1,
            "default": 1.0,
            "description": "bagging_fraction is the share of documents drawn for the trees",
        },
        "bagging_freq": {
            "type": "integer",
            "minimum": 1,
            "default": 1,
            "description": "bagging_freq: documents are drawn anew every so many trees",
        },
        "watch": {
            "anyOf": [
                {"type": "null"},
                {
                    "type": "object",
                    "additionalProperties": False,
                    "required": ["every", "splits"],
                    "properties": {
                        "every": {"type": "integer", "minimum": 1},
                        "splits": {
                            "type": "array",
                            "minItems": 1,
                            "items": {"enum": ["train", "test"]},
                        },
                    },
                },
            ],
            "default": None,
            "description": "watch: {every, splits} also records the selection metric of these "
            "splits every so many trees; nothing is chosen by it",
        },
    },
}


def fit(data: Splits, settings: Mapping[str, Any], job: FitJob) -> Fitted:
    """Fit LambdaMART and keep the number of trees that is best on the validation set.

    Args:
        data: the splits. Features may hold NaN (taken as missing) and infinities.
        settings: see :data:`SETTINGS`.
        job: ``selection`` may be any metric; ``ndcg`` with its default options is measured by
            LightGBM itself, which is much faster than handing it the scores.

    Returns:
        The model. In its history ``vali_metric`` is the mean over the queries that are not empty
        (LightGBM counts an empty query as 1; see :mod:`directrank.stats.means`), and
        ``train_loss`` is NaN, as LightGBM minimises no loss it could report. Given the same data,
        settings, run, trial and threads the model is the same to the byte.

    Raises:
        ConfigError: an unknown setting or an impossible value.
        DataError: labels that are not grades, splits without a relevant document, or a query with
            more than 10 000 documents.
        TrainingError: LightGBM failed, or found nothing to split on.
    """
    settings = complete(settings, SETTINGS, "learner 'lightgbm'")
    check_splits(data)
    selection = _Selection(data.vali, job.selection)
    _check_lengths(data.train, "training")
    if selection.native:
        _check_lengths(data.vali, "validation")
    parameters = _parameters(settings, data.label_levels, job) | selection.parameters
    recorder = _Recorder(selection, job, settings["n_trees"], _watched(data, settings, job))
    callbacks: list[Callable[..., None]] = [recorder]
    if settings["early_stopping_rounds"]:
        callbacks.append(lightgbm.early_stopping(settings["early_stopping_rounds"], verbose=False))
    try:
        train = _dataset(data.train, parameters).construct()
        vali = _dataset(data.vali, parameters, reference=train).construct()
        recorder.start()
        booster = lightgbm.train(
            parameters,
            train,
            num_boost_round=settings["n_trees"],
            valid_sets=[vali],
            valid_names=["vali"],
            feval=selection.evaluate,
            callbacks=callbacks,
        )
    except lightgbm.basic.LightGBMError as error:
        raise TrainingError(f"LightGBM failed: {error}", _remedy(error, settings)) from error
    kept = booster.best_iteration if settings["early_stopping_rounds"] else booster.num_trees()
    text = booster.model_to_string(num_iteration=kept)
    leaves = _count_leaves(text)
    if leaves == kept:
        # Scores would be equal, and every metric that of the order in the file.
        raise TrainingError(
            f"no tree found a split in {data.train.n_documents} documents of "
            f"{data.train.n_queries} queries",
            "lower min_sum_hessian_in_leaf or min_data_in_leaf, which are meant for larger data",
        )
    return Fitted(
        predict=lambda lists: _predict(booster, lists, kept, job.threads),
        history=recorder.rows,
        info={
            "best_epoch": kept,
            "epochs": len(recorder.rows),
            "stopped_early": len(recorder.rows) < settings["n_trees"],
            # A tree of l leaves has l outputs and l - 1 thresholds.
            "n_parameters": 2 * leaves - kept,
        },
        save=lambda path: write_text(path.with_name(path.name + ".txt"), text),
    )


@dataclass(frozen=True)
class _Selection:
    """How the validation metric is measured after every tree."""

    vali: RankedLists
    metric: Mapping[str, Any]

    @property
    def label(self) -> str:
        return metrics.label(self.metric)

    @property
    def k(self) -> int:
        k = self.metric.get("k")
        return int(self.vali.lengths.max()) if k is None else int(k)

    @property
    def native(self) -> bool:
        """Whether LightGBM computes this very metric: NDCG with every option at its default."""
        return self.label == metrics.label({"name": "ndcg", "k": self.metric.get("k")})

    @property
    def parameters(self) -> dict[str, Any]:
        return {"metric": "ndcg", "eval_at": [self.k]} if self.native else {"metric": "None"}

    @property
    def evaluate(self) -> Callable[..., tuple[str, float, bool]] | None:
        return None if self.native else self._measure

    def excluding_empty(self, value: float) -> float:
        """LightGBM's mean, in which an empty query counts 1, without the empty queries."""
        if not self.native:
            return value
        n_queries, n_empty = self._counts
        return float(convert_mean(value, n_queries, n_empty, source="one", target="exclude"))

    @cached_property
    def _counts(self) -> tuple[int, int]:
        return len(groups(self.vali)), empty_queries(self.vali)

    def _measure(self, scores: np.ndarray, _: lightgbm.Dataset) -> tuple[str, float, bool]:
        values = metrics_per_query(scores, self.vali, [self.metric])[self.label]
        return self.label, float(np.nanmean(values)), True


class _Recorder:
    """A callback that writes the history and moves the progress bar.

    Args:
        selection: what chooses the number of trees.
        job: the fit's.
        n_trees: the largest number of trees.
        watched: other splits whose metric is recorded.
    """

    # Before early stopping (30), which ends the round by raising.
    order = 25
    before_iteration = False

    def __init__(
        self, selection: _Selection, job: FitJob, n_trees: int, watched: Sequence[_Watched]
    ) -> None:
        self.rows: list[dict[str, Any]] = []
        self._watched = watched
        self._selection = selection
        self._job = job
        self._n_trees = n_trees
        self._before = 0.0

    def start(self) -> None:
        self._before = time.perf_counter()

    def __call__(self, env: Any) -> None:  # lightgbm.callback.CallbackEnv
        now = time.perf_counter()
        value = self._selection.excluding_empty(float(env.evaluation_result_list[0][2]))
        self.rows.append(history_row(env.iteration + 1, now - self._before, vali_metric=value))
        for watched in self._watched:
            self.rows[-1] |= watched.measure(env.model, env.iteration + 1)
        self._before = time.perf_counter()
        self._job.progress(env.iteration + 1, self._n_trees, f"{self._selection.label} {value:.4f}")


class _Watched:
    """The metric of a split that training does not use, as trees are added.

    Args:
        split: its name.
        lists: its queries.
        metric: what is measured.
        every: after how many trees.
        threads: that scoring may use.
    """

    def __init__(
        self, split: str, lists: RankedLists, metric: Mapping[str, Any], every: int, threads: int
    ) -> None:
        self._column = f"{split}_{metrics.label(metric)}"
        self._lists = lists
        self._evaluator = Evaluator(lists, [metric])
        self._every = every
        self._threads = threads
        self._trees = 0
        self._scores = np.zeros(lists.n_documents)

    def measure(self, booster: lightgbm.Booster, trees: int) -> dict[str, float]:
        """Column → value, where it is due after so many ``trees``; scores only the new ones."""
        if trees % self._every:
            return {}
        self._scores += booster.predict(
            documents(self._lists)[0],
            start_iteration=self._trees,
            num_iteration=trees - self._trees,
            num_threads=self._threads,
        )
        self._trees = trees
        (values,) = self._evaluator(torch.from_numpy(self._scores)[None]).values()
        return {self._column: float(np.nanmean(values))}


def _watched(data: Splits, settings: Mapping[str, Any], job: FitJob) -> list[_Watched]:
    watch = settings["watch"] or {"splits": []}
    return [
        _Watched(split, getattr(data, split), job.selection, watch["every"], job.threads)
        for split in watch["splits"]
    ]


#: Settings that LightGBM knows by the same name.
LIGHTGBM_NAMES = (
    *("learning_rate", "num_leaves", "max_depth", "max_bin", "feature_fraction"),
    *("min_data_in_leaf", "min_sum_hessian_in_leaf", "bagging_fraction", "bagging_freq"),
)


def _parameters(settings: Mapping[str, Any], label_levels: int, job: FitJob) -> dict[str, Any]:
    return {
        "objective": "lambdarank",
        "label_gain": [2**level - 1 for level in range(label_levels)],
        "lambdarank_truncation_level": settings["truncation_level"],
        "lambdarank_norm": settings["norm"],
        **{name: settings[name] for name in LIGHTGBM_NAMES},
        # LightGBM's seeds are 32-bit. That of the bins' sample stays fixed, so that without
        # feature or document sampling all trials are the same.
        "seed": derive_seed(job.run, job.trial, "lightgbm") % 2**31,
        "data_random_seed": 1,
        "deterministic": True,
        "force_row_wise": True,
        "num_threads": job.threads,
        "verbosity": -1,
    }


def _dataset(
    lists: RankedLists, parameters: dict[str, Any], reference: lightgbm.Dataset | None = None
) -> lightgbm.Dataset:
    # LightGBM reads float32 rows in place and keeps its bins only.
    features, labels = documents(lists)
    return lightgbm.Dataset(
        features, label=labels, group=groups(lists), params=parameters, reference=reference
    )


def _remedy(error: Exception, settings: Mapping[str, Any]) -> str:
    """What to do about an error of LightGBM's."""
    if "best_split_info" in str(error) and settings["min_sum_hessian_in_leaf"] == 0:
        # A query whose order is right already has lambdas and weights of 0.
        return (
            "set model.min_sum_hessian_in_leaf above 0, e.g. to 0.001: with 0 a split may leave a "
            "leaf without any weight, as these data have"
        )
    return "check the settings and the features of this run"


def _predict(
    booster: lightgbm.Booster, lists: RankedLists, n_trees: int, threads: int
) -> np.ndarray:
    check_features(lists, booster.num_feature())
    features = documents(lists)[0]
    scores = np.asarray(booster.predict(features, num_iteration=n_trees, num_threads=threads))
    if not np.isfinite(scores).all():
        raise TrainingError(
            "the trees' outputs are not finite",
            "raise min_sum_hessian_in_leaf or lower learning_rate",
        )
    return scores


def _check_lengths(lists: RankedLists, name: str) -> None:
    lengths = np.asarray(lists.lengths)
    longest = int(lengths.argmax())
    if lengths[longest] > MAX_DOCUMENTS:
        raise DataError(
            f"query {lists.query_ids[longest]} of the {name} set has {lengths[longest]} "
            f"documents; LightGBM ranks at most {MAX_DOCUMENTS}",
            "leave the query out, or cut its list, when the data set is prepared",
        )


def _count_leaves(text: str) -> int:
    lines = (line for line in text.splitlines() if line.startswith("num_leaves="))
    return sum(int(line.removeprefix("num_leaves=")) for line in lines)
