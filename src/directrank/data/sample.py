"""Random queries of a data set: new splits as in Burges2006 (section 6), or smaller ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

import numpy as np

from directrank.lists.packed import RankedLists
from directrank.system.errors import DataError
from directrank.system.seeds import numpy_stream

#: The splits in the order in which they are cut from the drawn queries.
ORDER = ("test", "vali", "train")


def draw(
    splits: Mapping[str, RankedLists],
    name: str,
    fold: int | None,
    queries: Mapping[str, int],
    max_documents: int | None = None,
) -> dict[str, RankedLists]:
    """Draw queries from all splits together, without replacement, and divide them into new splits.

    The draw depends only on the data set: every fold has the same queries with the same documents.
    Folds rotate, so that the test sets of as many folds as possible are disjoint.

    Args:
        splits: ``train``, ``vali`` and ``test`` of a fold; together the same queries in every fold.
        name: the data set's name; it names the random streams.
        fold: counted from 1; None if there are no folds.
        queries: the number for each split.
        max_documents: longer lists are reduced to this many random documents, in the data's order.

    Returns:
        The new splits, in memory.

    Raises:
        DataError: there are too few queries.
    """
    pool = sorted(
        (int(query), split, place)
        for split in sorted(splits)
        for place, query in enumerate(splits[split].query_ids)
    )
    total = sum(queries.values())
    if len(pool) < total:
        raise DataError(
            f"'{name}' has {len(pool)} queries, but {total} are to be drawn",
            "lower the numbers of the run's 'sample'",
        )
    drawn = numpy_stream("sample", name).permutation(len(pool))[:total]
    drawn = np.roll(drawn, -((fold or 1) - 1) * queries["test"])
    ends = np.cumsum([queries[split] for split in ORDER])[:-1]
    return {
        split: _lists(splits, [pool[number] for number in numbers], name, max_documents)
        for split, numbers in zip(ORDER, np.split(drawn, ends), strict=True)
    }


def fewer(lists: RankedLists, stream: tuple[str | int, ...], queries: int) -> RankedLists:
    """Copy random queries of lists, in their order; all of them if there are no more.

    Args:
        lists: those of a training or validation set.
        stream: names the random stream.
        queries: how many.
    """
    if lists.n_queries <= queries:
        return lists
    drawn = numpy_stream(*stream).choice(lists.n_queries, queries, replace=False)
    return lists.select(np.sort(drawn))


def _lists(
    splits: Mapping[str, RankedLists],
    queries: Sequence[tuple[int, str, int]],
    name: str,
    max_documents: int | None,
) -> RankedLists:
    """Copy the named queries; only those are read from the splits."""
    rows = [
        _rows(splits[split], place, (name, query), max_documents) for query, split, place in queries
    ]
    offsets = np.concatenate([[0], np.cumsum([len(some) for some in rows])]).astype(np.int64)
    first = next(iter(splits.values()))
    features = np.empty((offsets[-1], first.n_features), dtype=first.features.dtype)
    labels = np.empty(offsets[-1], dtype=first.labels.dtype)
    for (_, split, _), some, begin in zip(queries, rows, offsets, strict=False):
        features[begin : begin + len(some)] = splits[split].features[some]
        labels[begin : begin + len(some)] = splits[split].labels[some]
    ids = np.array([query for query, _, _ in queries], dtype=np.int64)
    groups = None
    if first.groups is not None:
        named = {split: cast(np.ndarray, lists.groups) for split, lists in splits.items()}
        groups = np.array([named[split][place] for _, split, place in queries], dtype=np.int64)
    return RankedLists(features, labels, offsets, ids, groups)


def _rows(
    lists: RankedLists, place: int, stream: tuple[str, int], max_documents: int | None
) -> np.ndarray:
    """The rows of a query's documents that are kept, ascending."""
    begin, end = int(lists.offsets[place]), int(lists.offsets[place + 1])
    if max_documents is None or end - begin <= max_documents:
        return np.arange(begin, end)
    generator = numpy_stream("sample", *stream)
    return begin + np.sort(generator.choice(end - begin, max_documents, replace=False))
