"""Boosted trees with LightGBM: LambdaMART, the strongest baseline of Bruch2019 and Yu2020; XE-NDCG.

LightGBM's ``lambdarank`` is not textbook LambdaRank: with ``norm`` it divides |ΔNDCG| by 0.01 +
|Δs| and rescales the lambdas of each query, and it only weighs pairs of which at least one document
is among the first ``truncation_level`` of the current ranking. Both are settings. ``rank_xendcg``
is the cross-entropy of Bruch (2021) between a softmax of the scores and gains from which uniform
noise is subtracted at each tree.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import lightgbm
import numpy as np

from directrank import metrics
from directrank.learners.contract import FitJob, Fitted, Splits
from directrank.learners.inputs import (
    check_features,
    check_splits,
    documents,
    empty_queries,
    groups,
)
from directrank.learners.trees import boosting
from directrank.learners.trees.boosting import Boosting, MeanMetric
from directrank.learners.trees.settings import LIGHTGBM, complete, passed_on
from directrank.lists.packed import RankedLists
from directrank.stats.means import convert_mean
from directrank.system.errors import DataError, TrainingError
from directrank.system.io import write_text

#: LightGBM's own limit (kMaxPosition); training ends with an error beyond it.
MAX_DOCUMENTS = 10_000

#: Every name of an option → its main name. LightGBM itself is silent about names it does not know.
NAMES: dict[str, str] = {
    alias: name
    for name, aliases in lightgbm.basic._ConfigAliases._get_all_param_aliases().items()
    for alias in aliases
}


def check(settings: Mapping[str, Any], where: str) -> None:
    """Raise :class:`ConfigError` if LightGBM does not take ``settings``, whatever the data."""
    whole = complete(settings, LIGHTGBM, where, NAMES)
    # LightGBM reads all parameters when it bins the features.
    parameters = {**_parameters(whole, label_levels=2), "num_threads": 1}
    boosting.check(settings, LIGHTGBM, where, lambda toy: _dataset(toy, parameters).construct())


def fit(data: Splits, settings: Mapping[str, Any], job: FitJob) -> Fitted:
    """Fit boosted trees and keep the number of trees that is best on the validation set.

    Args:
        data: the splits. Features may hold NaN (taken as missing) and infinities.
        settings: see :data:`.LIGHTGBM`.
        job: ``selection`` may be any metric; ``ndcg`` with its default options is measured by
            LightGBM itself, which is much faster than handing it the scores.

    Returns:
        The model. In its history ``vali_metric`` is the mean over the queries that are not empty
        (LightGBM counts an empty query as 1; see :mod:`directrank.stats.means`), and
        ``train_loss`` is NaN, as LightGBM minimises no loss it could report. Given the same data,
        settings, run, trial and threads the model is the same to the byte.

    Raises:
        ConfigError: a setting is unknown or not valid.
        DataError: labels are not grades or are all equal within queries, a split has no relevant
            document, or a query has more than 10 000 documents.
        TrainingError: LightGBM failed, or found nothing to split on.
    """
    settings = complete(settings, LIGHTGBM, "learner 'lightgbm'", NAMES)
    check_splits(data)
    selection = _Selection(data.vali, job.selection)
    _check_lengths(data.train, "training")
    if selection.native:
        _check_lengths(data.vali, "validation")
    parameters = {
        **_parameters(settings, data.label_levels),
        **selection.parameters,
        "seed": boosting.seed(job, "lightgbm"),
        "num_threads": job.threads,
    }
    trees = Boosting(settings, job)
    try:
        train = _dataset(data.train, parameters).construct()
        vali = _dataset(data.vali, parameters, reference=train).construct()
        trees.start()
        booster = lightgbm.train(
            parameters,
            train,
            num_boost_round=settings["n_trees"],
            valid_sets=[vali],
            valid_names=["vali"],
            feval=selection.evaluate,
            callbacks=[_Recorder(trees, selection, _watched(data, settings, job))],
        )
    except lightgbm.basic.LightGBMError as error:
        raise TrainingError(f"LightGBM failed: {error}", _remedy(error, settings)) from error
    # If nothing is left to split on, LightGBM continues without growing trees.
    kept = min(trees.kept, booster.num_trees())
    text = booster.model_to_string(num_iteration=kept)
    leaves = _count_leaves(text)
    if leaves == kept:
        raise boosting.no_split(
            data,
            "lower min_sum_hessian_in_leaf or min_data_in_leaf, which are meant for larger data",
        )
    return trees.fitted(
        kept,
        # A tree of l leaves has l outputs and l - 1 thresholds.
        n_parameters=2 * leaves - kept,
        predict=lambda lists: _predict(booster, lists, kept, job.threads),
        save=lambda path: write_text(path.with_name(path.name + ".txt"), text),
    )


@dataclass(frozen=True)
class _Selection:
    """The measurement of the validation metric after every tree."""

    vali: RankedLists
    metric: Mapping[str, Any]

    @property
    def k(self) -> int:
        k = self.metric.get("k")
        return int(self.vali.lengths.max()) if k is None else int(k)

    @property
    def native(self) -> bool:
        """Whether LightGBM computes this very metric: NDCG with every option at its default."""
        return metrics.label(self.metric) == metrics.label(
            {"name": "ndcg", "k": self.metric.get("k")}
        )

    @property
    def parameters(self) -> dict[str, Any]:
        return {"metric": "ndcg", "eval_at": [self.k]} if self.native else {"metric": "None"}

    @property
    def evaluate(self) -> Callable[..., tuple[str, float, bool]] | None:
        if self.native:
            return None
        measure = MeanMetric(self.vali, self.metric)
        return lambda scores, _: (measure.label, measure(scores), True)

    def excluding_empty(self, value: float) -> float:
        """Remove the empty queries from LightGBM's mean, in which they count 1."""
        if not self.native:
            return value
        n_queries, n_empty = self._counts
        return float(convert_mean(value, n_queries, n_empty, source="one", target="exclude"))

    @cached_property
    def _counts(self) -> tuple[int, int]:
        return len(groups(self.vali)), empty_queries(self.vali)


class _Recorder:
    """A callback that records each tree, and ends training.

    Args:
        trees: the record of trees.
        selection: the metric that chooses the number of trees.
        watched: other splits whose metric is recorded.
    """

    def __init__(self, trees: Boosting, selection: _Selection, watched: Sequence[_Watched]) -> None:
        self._trees = trees
        self._selection = selection
        self._watched = watched

    def __call__(self, env: Any) -> None:  # lightgbm.callback.CallbackEnv
        value = float(env.evaluation_result_list[0][2])
        end = self._trees.add(self._selection.excluding_empty(value))
        for watched in self._watched:
            self._trees.rows[-1] |= watched.measure(env.model, env.iteration + 1)
        self._trees.start()
        if end:
            raise lightgbm.callback.EarlyStopException(self._trees.kept - 1, [])


class _Watched:
    """The metric of a split that training does not use, as trees are added.

    Args:
        split: its name.
        lists: its queries.
        metric: the metric.
        every: the number of trees between measurements.
        threads: the number of threads for scoring.
    """

    def __init__(
        self, split: str, lists: RankedLists, metric: Mapping[str, Any], every: int, threads: int
    ) -> None:
        self._measure = MeanMetric(lists, metric)
        self._column = f"{split}_{self._measure.label}"
        self._lists = lists
        self._every = every
        self._threads = threads
        self._trees = 0
        self._scores = np.zeros(lists.n_documents)

    def measure(self, booster: lightgbm.Booster, trees: int) -> dict[str, float]:
        """Column → value if it is due after ``trees`` trees; only the new trees are applied."""
        if trees % self._every:
            return {}
        self._scores += booster.predict(
            documents(self._lists)[0],
            start_iteration=self._trees,
            num_iteration=trees - self._trees,
            num_threads=self._threads,
        )
        self._trees = trees
        return {self._column: self._measure(self._scores)}


def _watched(data: Splits, settings: Mapping[str, Any], job: FitJob) -> list[_Watched]:
    watch = settings["watch"] or {"splits": []}
    return [
        _Watched(split, getattr(data, split), job.selection, watch["every"], job.threads)
        for split in watch["splits"]
    ]


def _parameters(settings: Mapping[str, Any], label_levels: int) -> dict[str, Any]:
    return {
        "label_gain": [2**level - 1 for level in range(label_levels)],
        # The seed of the bins' sample stays fixed, so that without feature or document sampling all
        # trials of lambdarank are the same.
        "data_random_seed": 1,
        "deterministic": True,
        "force_row_wise": True,
        "verbosity": -1,
        **passed_on(settings, LIGHTGBM, "n_trees", "early_stopping_rounds", "watch"),
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
    """The remedy for an error of LightGBM."""
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
    return boosting.finite(scores, "raise min_sum_hessian_in_leaf or lower learning_rate")


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
