"""Checks of the data of trees and linear baselines."""

from __future__ import annotations

import numpy as np

from directrank.learners.contract import Splits
from directrank.lists.packed import RankedLists
from directrank.system.errors import DataError


def check_splits(data: Splits) -> None:
    """Raise :class:`DataError` if a model cannot be fitted to ``data`` or chosen by it."""
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
                "use more queries, because there is nothing to learn from or to choose by",
            )
    if not _has_two_grades(data.train):
        raise DataError(
            "no query of the training set has two grades",
            "use more queries, because there is nothing to rank",
        )


def _has_two_grades(lists: RankedLists) -> bool:
    """Whether a query has two documents of different labels."""
    labels = documents(lists)[1]
    changes = np.flatnonzero(labels[1:] != labels[:-1]) + 1
    begins = np.asarray(lists.offsets[1:-1]) - int(lists.offsets[0])
    return not np.isin(changes, begins).all()


def check_features(lists: RankedLists, n_features: int) -> None:
    """Raise :class:`DataError` if a model of ``n_features`` cannot score ``lists``."""
    if lists.n_features != n_features:
        raise DataError(
            f"the model was fitted to {n_features} features, but these lists have "
            f"{lists.n_features}",
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
    """The number of queries that have documents but no relevant one."""
    return int(np.count_nonzero((lists.lengths > 0) & (lists.relevant_counts() == 0)))
