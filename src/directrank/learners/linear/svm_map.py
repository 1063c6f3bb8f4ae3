"""SVMmap (Yue, Finley, Radlinski and Joachims, 2007): a structural SVM with the loss 1 - AP."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from directrank.learners.contract import FitJob, Fitted, Splits
from directrank.learners.inputs import check_splits
from directrank.learners.linear.cutting_plane import Risk, fit_risk
from directrank.learners.linear.linear import features_of
from directrank.learners.linear.settings import SVM_MAP
from directrank.lists.packed import RankedLists
from directrank.system.errors import DataError
from directrank.system.schema import complete


def fit(data: Splits, settings: Mapping[str, Any], job: FitJob) -> Fitted:
    """Minimise ``½‖w‖² + c · mean slack``, the slack of a query with margin rescaling.

    Args:
        data: the splits; the validation set is not read (tune ``c`` by it).
        settings: see :data:`.SVM_MAP`.
        job: its progress is reported; nothing is drawn at random.

    Raises:
        ConfigError: an unknown setting or an impossible value.
        DataError: features that are not finite, or no query with relevant and other documents.
        TrainingError: the solver did not reach its tolerance.
    """
    settings = complete(settings, SVM_MAP, "learner 'svmmap'")
    check_splits(data)
    risk = map_hinge(data.train, settings["min_label"])
    return fit_risk(risk, data.train.n_features, settings, job)


@dataclass(frozen=True)
class Violation:
    """The ranking that violates a query's margin most.

    Attributes:
        places: int ``[q]``: the irrelevant document of the j-th highest score stands before the
            relevant one of this rank among the relevant (from 0; p stands for after all).
        loss: ``1 - AP`` of the ranking.
        slack: ``loss + w·Ψ(ranking) - w·Ψ(best ranking)``; never negative.
        relevant: ``[p]``, derivative of the slack by the scores of the relevant, highest first.
        irrelevant: ``[q]``, by those of the others, highest first.
    """

    places: np.ndarray
    loss: float
    slack: float
    relevant: np.ndarray
    irrelevant: np.ndarray


def loss_gains(p: int, q: int) -> np.ndarray:
    """``[q, p + 1]``: what it adds to 1 - AP if irrelevant j goes before relevant i … p.

    ``Σ_{k ≥ i} (1/p) [j/(j + k) - (j - 1)/(j + k - 1)]``, j and k counted from 1; nothing for
    i = p + 1. It takes the j - 1 irrelevant documents before it to be ranked higher still.
    """
    j, k = np.arange(1, q + 1)[:, None], np.arange(1, p + 1)[None, :]
    steps = (j / (j + k) - (j - 1) / (j + k - 1)) / p
    return np.concatenate([np.cumsum(steps[:, ::-1], 1)[:, ::-1], np.zeros((q, 1))], 1)


def most_violated(relevant: np.ndarray, irrelevant: np.ndarray, gains: np.ndarray) -> Violation:
    """The exact search of Yue et al. (section 4.2): each irrelevant document finds its own place.

    Args:
        relevant: ``[p]``, scores from the highest to the lowest.
        irrelevant: ``[q]``, likewise.
        gains: :func:`loss_gains` of p and q.
    """
    p, q = len(relevant), len(irrelevant)
    sums = np.concatenate([np.cumsum(relevant[::-1])[::-1], [0.0]])  # Σ_{k ≥ i} s_k
    later = np.arange(p, -1, -1)
    margin = (2 / (p * q)) * (sums[None, :] - later[None, :] * irrelevant[:, None])
    places = np.argmax(gains - margin, axis=1)
    before = np.searchsorted(places, np.arange(p), side="right")  # irrelevant ones before each
    rank = np.arange(1, p + 1)
    loss = 1 - float(np.mean(rank / (rank + before)))
    # Ψ = Σ y_kj (x_k - x_j) / (p q), y = ±1; against the best ranking, where every y is 1.
    of_relevant = -2 * before / (p * q)
    of_irrelevant = 2 * (p - places) / (p * q)
    slack = loss + float(of_relevant @ relevant + of_irrelevant @ irrelevant)
    return Violation(places, loss, slack, of_relevant, of_irrelevant)


def map_hinge(lists: RankedLists, min_label: float = 1.0) -> Risk:
    """The mean slack of the queries that have relevant and other documents, and a subgradient.

    Raises:
        DataError: there is no such query.
    """
    features = features_of(lists)
    labels = np.asarray(lists.labels)[int(lists.offsets[0]) : int(lists.offsets[-1])]
    starts = lists.offsets - lists.offsets[0]
    queries = []
    for begin, end in pairwise(starts):
        chosen = labels[begin:end] >= min_label
        if chosen.any() and not chosen.all():
            rows = np.arange(begin, end)
            queries.append((rows[chosen], rows[~chosen], loss_gains(chosen.sum(), (~chosen).sum())))
    if not queries:
        raise DataError(
            "no query of the training set has relevant and other documents", "use more queries"
        )

    def risk(weights: np.ndarray) -> tuple[float, np.ndarray]:
        scores = features @ weights
        forces = np.zeros(len(features))
        total = 0.0
        for relevant, irrelevant, gains in queries:
            relevant = relevant[np.argsort(-scores[relevant], kind="stable")]
            irrelevant = irrelevant[np.argsort(-scores[irrelevant], kind="stable")]
            worst = most_violated(scores[relevant], scores[irrelevant], gains)
            total += worst.slack
            forces[relevant] = worst.relevant
            forces[irrelevant] = worst.irrelevant
        return total / len(queries), (forces / len(queries)) @ features

    return risk
