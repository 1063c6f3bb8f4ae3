"""AdaRank (Xu and Li, 2007): boosting of single features by a ranking metric."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from directrank import metrics
from directrank.learners.contract import FitJob, Fitted, Splits, history_row
from directrank.learners.inputs import check_splits
from directrank.learners.linear.linear import features_of, fitted
from directrank.learners.linear.settings import ADARANK
from directrank.lists.packed import RankedLists
from directrank.metrics.packed import metrics_per_query
from directrank.system.schema import complete


def fit(data: Splits, settings: Mapping[str, Any], job: FitJob) -> Fitted:
    """Boost features by their metric per query and keep the round that is best on validation.

    Args:
        data: the splits. Queries without a relevant document are left out of the training.
        settings: see :data:`.ADARANK`.
        job: ``selection`` chooses the number of rounds; nothing is drawn at random.

    Returns:
        The linear scorer. In its history ``train_loss`` is 1 minus the mean of E.

    Raises:
        ConfigError: a setting is unknown or not valid.
        DataError: features are not finite, or a split has no relevant document.
    """
    settings = complete(settings, ADARANK, "learner 'adarank'")
    check_splits(data)
    train = data.train.select(np.flatnonzero(data.train.relevant_counts() > 0))
    features, vali = features_of(train), features_of(data.vali)
    selection = metrics.label(job.selection)
    boosting = Reweighting(train, settings["measure"], settings["both_directions"])
    weights = np.zeros(train.n_features)
    best, best_round, kept = -math.inf, 0, weights
    history: list[dict[str, Any]] = []
    for number in range(1, settings["rounds"] + 1):
        began = time.perf_counter()
        weak, alpha = boosting.weak_ranker()
        weights = weights.copy()
        weights[weak % train.n_features] += alpha * (1 if weak < train.n_features else -1)
        boosting.reweigh(features @ weights)
        per_query = metrics_per_query(vali @ weights, data.vali, [job.selection])[selection]
        value = float(np.nanmean(per_query))
        if value > best:
            best, best_round, kept = value, number, weights
        train_loss = 1 - float(boosting.reached.mean())
        history.append(history_row(number, time.perf_counter() - began, train_loss, value))
        job.progress(number, settings["rounds"], f"{selection} {best:.4f}")
        if settings["patience"] and number - best_round >= settings["patience"]:
            break
    info = {
        "best_epoch": best_round,
        "epochs": len(history),
        "stopped_early": len(history) < settings["rounds"],
    }
    return fitted(kept, history, info)


class Reweighting:
    """The weights of the queries, and the choice of the next weak ranker.

    Weak ranker ``j < F`` sorts by feature j downwards, ``F + j`` upwards. One that was chosen and
    did not raise the mean of E is excluded until another one raises it. The paper's rule would
    choose it forever, because neither the combined ranking nor the weights of the queries would
    change.

    Args:
        train: queries that all have a relevant document.
        measure: the metric E.
        both_directions: also sort upwards.

    Attributes:
        strength: E of each weak ranker on each query, float64 ``[W, Q]``.
        weights: of the queries, ``[Q]``; they add to 1.
        reached: E of the combined ranker on each query, ``[Q]``.
    """

    def __init__(
        self, train: RankedLists, measure: Mapping[str, Any], both_directions: bool = True
    ) -> None:
        columns = features_of(train).T
        scores = np.concatenate([columns, -columns]) if both_directions else columns
        self._train, self._measure = train, dict(measure)
        self.strength = self._metric(scores)
        self.weights = np.full(train.n_queries, 1 / train.n_queries)
        self.reached = np.zeros(train.n_queries)
        self._resting: list[int] = []
        self._last = -1

    def weak_ranker(self) -> tuple[int, float]:
        """The weak ranker with the best weighted mean of E, and its coefficient.

        ``α = ½ ln [Σ P (1 + E) / Σ P (1 - E)]``.
        """
        merits = self.strength @ self.weights
        if len(self._resting) == len(merits):
            self._resting.clear()
        merits[self._resting] = -math.inf
        self._last = int(np.argmax(merits))
        merit = min(float(merits[self._last]), 1 - 1e-12)
        return self._last, 0.5 * math.log((1 + merit) / (1 - merit))

    def reweigh(self, scores: np.ndarray) -> None:
        """New weights ``P ∝ exp(-E)`` from the combined ranker's scores ``[N]``."""
        reached = self._metric(scores[None])[0]
        if reached.mean() > self.reached.mean():
            self._resting.clear()
        else:
            self._resting.append(self._last)
        self.reached = reached
        unequal = np.exp(-reached)
        self.weights = unequal / unequal.sum()

    def _metric(self, scores: np.ndarray) -> np.ndarray:
        values = metrics_per_query(scores, self._train, [self._measure])
        return values[metrics.label(self._measure)]
