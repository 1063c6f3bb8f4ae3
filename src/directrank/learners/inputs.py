"""What trees and linear baselines ask of their settings and of their data."""

from __future__ import annotations

import numpy as np

from directrank.learners.contract import Splits
from directrank.lists.packed import RankedLists
from directrank.system.errors import DataError


def check_splits(data: Splits) -> None:
    """Raise a :class:`DataError` where a model cannot be fitted to ``data`` or chosen by it."""
    for name, lists in (("training", data.train), ("validation", data.vali)):
        labels = documents(lists)[1]
        if lists.n_features != data.train.n_features:
            raise DataError(
                f"the {name} set has {lists.n_features} features, the training set "
                f"{data.train.n_features}",
                "prepare the data set again",
            )
        levels = data.label_levels
        if not ((labels >= 0) & (labels < levels) & (labels == np.floor(labels))).all():
            raise DataError(
                f"a label of the {name} set is not one of 0 … {levels - 1}",
                "prepare the data set again with the right number of label levels",
            )
        if not (labels > 0).any():
            raise DataError(
                f"no query of the {name} set has a relevant document",
                "use more queries: there is nothing to learn or to choose by",
            )
    if not _has_two_grades(data.train):
        raise DataError(
            "no query of the training set has two grades",
            "use more queries: there is nothing to rank by",
        )


def _has_two_grades(lists: RankedLists) -> bool:
    """Whether a query has two documents of different labels."""
    labels = documents(lists)[1]
    changes = np.flatnonzero(labels[1:] != labels[:-1]) + 1
    begins = np.asarray(lists.offsets[1:-1]) - int(lists.offsets[0])
    return not np.isin(changes, begins).all()


def check_features(lists: RankedLists, n_features: int) -> None:
    """Raise a :class:`DataError` where ``lists`` cannot be scored by a model of ``n_features``."""
    if lists.n_features != n_features:
        raise DataError(
            f"the model was fitted to {n_features} features, these lists have {lists.n_features}",
            "score the data set that the model was trained on",
        )


def documents(lists: RankedLists) -> tuple[np.ndarray, np.ndarray]:
    """Features ``[N, F]`` and labels ``[N]`` of the lists, as views."""
    rows = slice(int(lists.offsets[0]), int(lists.offsets[-1]))
    return lists.features[rows], lists.labels[rows]


def groups(lists: RankedLists) -> np.ndarray:
    """Documents per query, int64, without the queries that have none."""
    lengths = np.asarray(lists.lengths)
    return lengths[lengths > 0]


def empty_queries(lists: RankedLists) -> int:
    """Number of queries with documents of which none is relevant."""
    return int(np.count_nonzero((lists.lengths > 0) & (lists.relevant_counts() == 0)))
