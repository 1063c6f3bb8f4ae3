"""Whether methods can be trained, chosen and compared on one's own data, before anything is run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from directrank.data import sample
from directrank.data.catalog import ALL
from directrank.data.deal import deal
from directrank.data.prepared import SPLITS, ring_split
from directrank.lists.packed import RankedLists
from directrank.system.errors import DataError

#: What each split is called in messages.
SETS = {"train": "training set", "vali": "validation set", "test": "test set"}


@dataclass(frozen=True)
class QuerySummary:
    """What must be known of the queries of one file.

    Attributes:
        relevant: bool ``[Q]``, whether a document of the query is relevant.
        graded: bool ``[Q]``, whether documents of the query have different grades.
        groups: int64 ``[Q]``, the group of each query; its own number if it is alone.
    """

    relevant: np.ndarray
    graded: np.ndarray
    groups: np.ndarray

    @classmethod
    def of(cls, grades: np.ndarray, numbers: np.ndarray, groups: np.ndarray | None) -> QuerySummary:
        """The queries of documents with these grades, query numbers and groups, ``[N]`` each."""
        _, first, query = np.unique(numbers, return_index=True, return_inverse=True)
        low, high = np.full(len(first), np.inf), np.zeros(len(first))
        np.minimum.at(low, query, grades)
        np.maximum.at(high, query, grades)
        return cls(high > 0, high > low, (numbers if groups is None else groups)[first])


def refuse_unusable(
    data: Path,
    name: str,
    files: Mapping[str, QuerySummary],
    folds: int | None,
    vali_from_train: float,
    changes: Mapping[str, Any],
) -> None:
    """Raise :class:`DataError` if a set has nothing to learn from, to choose by or to compare.

    Args:
        data: the user's file or folder, for messages.
        name: that of the data set, which decides how queries are dealt to folds.
        files: the queries of each split's file, or of the only file under :data:`ALL`.
        folds: the number of folds of a single file; otherwise None.
        vali_from_train: the share of training queries that validate if no file does.
        changes: what the budget sets of every run; ``train_queries`` and so on draw queries.
    """
    tested = []
    for fold, split, queries, places in _sets(data, name, files, folds, vali_from_train):
        where = SETS[split] + (f" of fold {fold}" if fold else "")
        if not len(places):
            raise DataError(f"has no query for the {where}", "give more queries", file=data)
        places, drawn = _draw_queries(places, split, name, fold, changes)
        relevant = int(queries.relevant[places].sum())
        if not relevant:
            raise DataError(
                f"no query of the {where} has a relevant document, which has a grade above 0 "
                f"(queries of the set: {len(places)}{drawn}; queries of the whole file: "
                f"{len(queries.relevant)}, with a relevant document: {queries.relevant.sum()})",
                "give more queries with a relevant document"
                + (", or fewer folds with --folds" if (folds or 0) > 3 else ""),
                file=data,
            )
        if split == "train" and not queries.graded[places].any():
            raise DataError(
                f"no query of the {where} has documents of different grades{drawn}, so there is "
                "nothing to learn",
                "give queries that have both better and worse documents",
                file=data,
            )
        if split == "test":
            tested.append(queries.groups[places][queries.relevant[places]])
    blocks = len(np.unique(np.concatenate(tested)))
    if blocks < 2:
        raise DataError(
            "has 1 test query, or group of test queries, with a relevant document, which is too "
            "few to compare methods",
            "give at least 2",
            file=data,
        )


def _sets(
    data: Path,
    name: str,
    files: Mapping[str, QuerySummary],
    folds: int | None,
    vali_from_train: float,
) -> Iterator[tuple[int | None, str, QuerySummary, np.ndarray]]:
    """Fold, split, the queries of its file, and which of them it has."""
    if folds is not None:
        queries = files[ALL]
        number = len(np.unique(queries.groups))
        if number < folds:
            alone = number == len(queries.groups)
            one, many = ("query", "queries") if alone else ("group of queries", "groups of queries")
            raise DataError(
                f"has {number} {one if number == 1 else many}, which "
                f"{'is' if number == 1 else 'are'} too few for {folds} folds",
                f"give at least {folds} {many}"
                + (", or fewer folds with --folds" if number >= 3 else ""),
                file=data,
            )
        part = deal(queries.groups, folds, name) + 1
        for fold in range(1, folds + 1):
            for split in SPLITS:
                parts = ring_split(fold, split, folds)
                yield (
                    fold,
                    split,
                    queries,
                    np.concatenate([np.flatnonzero(part == p) for p in parts]),
                )
        return
    for split, queries in files.items():
        places = np.arange(len(queries.relevant))
        if split == "train" and "vali" not in files:
            kept = round(len(places) * (1 - vali_from_train))
            yield None, "vali", queries, places[kept:]
            places = places[:kept]
        yield None, split, queries, places


def _draw_queries(
    places: np.ndarray, split: str, name: str, fold: int | None, changes: Mapping[str, Any]
) -> tuple[np.ndarray, str]:
    """Those queries of a set that the budget draws, and words that say so if it draws some."""
    most = changes.get(f"{split}_queries", len(places))
    if most >= len(places):
        return places, ""
    alone = np.arange(len(places) + 1)
    lists = RankedLists(np.zeros((len(places), 0), np.float32), alone[1:], alone, places)
    chosen = sample.fewer(lists, (f"{split}_queries", name, fold or 0), most)
    return np.asarray(chosen.query_ids), ", drawn from more by the budget; --budget full takes all"
