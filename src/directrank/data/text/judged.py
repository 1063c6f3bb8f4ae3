"""The queries, documents and judgements of a collection that comes as text."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from directrank.lists.packed import RankedLists


@dataclass(frozen=True)
class Judged:
    """Documents, queries, and what was judged.

    Attributes:
        documents: one mapping per document, with its ``id`` and what the collection says of it.
        queries: the texts of the queries.
        query_ids: int64 ``[Q]``, the numbers in their ids.
        query: int64 ``[N]``, the position of the query of each judgement; the judgements of a
            query are contiguous.
        document: int64 ``[N]``, the position of its document.
        labels: float32 ``[N]``, its grade.
        omitted: the number of items that were left out, for each reason.
    """

    documents: Sequence[Mapping[str, Any]]
    queries: list[str]
    query_ids: np.ndarray
    query: np.ndarray
    document: np.ndarray
    labels: np.ndarray
    omitted: dict[str, int] = field(default_factory=dict)


def arranged(
    documents: Sequence[Mapping[str, Any]],
    texts: Mapping[int, str],
    grades: Mapping[int, Mapping[str, int]],
    omitted: Mapping[str, int],
) -> Judged:
    """A collection with queries in the order of their ids.

    The order of a query's judgements in a file may reveal something about the labels, so they are
    ordered by a hash of their ids.

    Args:
        documents: the documents; no two have the same id.
        texts: the text of each query.
        grades: for each query, the grade of each judged document by its id.
        omitted: the number of items that were left out so far, for each reason.
    """
    place = {document["id"]: number for number, document in enumerate(documents)}
    numbers = sorted(number for number in grades if grades[number])
    order = [sorted(grades[number], key=lambda id_: _hash(str(number), id_)) for number in numbers]
    labels = [
        grades[number][id_] for number, ids in zip(numbers, order, strict=True) for id_ in ids
    ]
    counts = {**omitted, "queries without a judgement that is left": len(texts) - len(numbers)}
    return Judged(
        documents=documents,
        queries=[texts[number] for number in numbers],
        query_ids=np.array(numbers, np.int64),
        query=np.repeat(np.arange(len(numbers)), [len(ids) for ids in order]),
        document=np.array([place[id_] for ids in order for id_ in ids], np.int64),
        labels=np.array(labels, np.float32),
        omitted={what: count for what, count in counts.items() if count},
    )


def _hash(*parts: str) -> str:
    return hashlib.sha256("\t".join(parts).encode()).hexdigest()


def as_lists(collection: Judged, values: np.ndarray, group: np.ndarray) -> RankedLists:
    """All queries with the features ``values``, float32 ``[N, F]``, and groups, int64 ``[Q]``."""
    offsets = np.searchsorted(collection.query, np.arange(len(collection.queries) + 1))
    return RankedLists(
        features=values,
        labels=collection.labels,
        offsets=offsets.astype(np.int64),
        query_ids=collection.query_ids,
        groups=group,
    )
