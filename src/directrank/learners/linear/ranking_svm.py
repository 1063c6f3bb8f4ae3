"""Ranking SVM (Herbrich et al., 1999; Joachims, 2002): the hinge loss of pairs within a query."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from directrank.learners.contract import FitJob, Fitted, Splits
from directrank.learners.inputs import check_splits
from directrank.learners.linear.cutting_plane import Risk, fit_risk
from directrank.learners.linear.linear import features_of
from directrank.learners.linear.settings import RANKING_SVM
from directrank.lists.packed import RankedLists
from directrank.system.schema import complete


def fit(data: Splits, settings: Mapping[str, Any], job: FitJob) -> Fitted:
    """Minimise ``½‖w‖² + c · mean max(0, 1 - w·(x_i - x_j))`` over pairs with ``y_i > y_j``.

    Args:
        data: the splits; the validation set is not read (tune ``c`` by it).
        settings: see :data:`.RANKING_SVM`.
        job: its progress is reported; nothing is drawn at random.

    Raises:
        ConfigError: an unknown setting or an impossible value.
        DataError: features that are not finite, or no query with two grades.
        TrainingError: the solver did not reach its tolerance.
    """
    settings = complete(settings, RANKING_SVM, "learner 'ranking_svm'")
    check_splits(data)
    risk = pairwise_hinge(data.train, settings["mean_over"])
    return fit_risk(risk, data.train.n_features, settings, job)


def pairwise_hinge(lists: RankedLists, mean_over: str = "pairs") -> Risk:
    """The mean hinge loss over the pairs of different grades within a query, and a subgradient."""
    features = features_of(lists)
    better, worse, weight = _pairs(lists, mean_over)
    n = len(features)

    def risk(weights: np.ndarray) -> tuple[float, np.ndarray]:
        scores = features @ weights
        margins = 1 - scores[better] + scores[worse]
        active = margins > 0
        pushed = weight[active]
        forces = np.bincount(worse[active], pushed, n) - np.bincount(better[active], pushed, n)
        return float(margins[active] @ pushed), forces @ features

    return risk


def _pairs(lists: RankedLists, mean_over: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows of the better and of the worse document of every pair, and the pairs' weights."""
    better, worse, weights = [], [], []
    labels = np.asarray(lists.labels)
    starts = lists.offsets - lists.offsets[0]
    for begin, end in pairwise(starts):
        own = labels[lists.offsets[0] + begin : lists.offsets[0] + end]
        i, j = np.nonzero(own[:, None] > own[None, :])
        better.append(i + begin)
        worse.append(j + begin)
        weights.append(np.full(len(i), 1.0 if mean_over == "pairs" else 1.0 / max(len(i), 1)))
    weight = np.concatenate(weights)
    return np.concatenate(better), np.concatenate(worse), weight / weight.sum()
