"""Filter queries, as Yu2020 does in every split (its code: min_docs 10, min_rele 1)."""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from directrank.lists.packed import RankedLists
from directrank.system.errors import DataError
from directrank.system.schema import refuse_unknown

#: Settings that keep every query.
DEFAULTS = {"min_documents": 1, "min_relevant": 0}


@dataclass(frozen=True)
class Selection:
    """Queries of lists in their order, which are read block by block and never held as a whole.

    Attributes:
        lists: the lists of the queries; may be memory-mapped.
        queries: their positions, int64 ``[Q]``, ascending.
    """

    lists: RankedLists
    queries: np.ndarray

    @classmethod
    def of_all(cls, lists: RankedLists) -> Selection:
        """A selection of every query."""
        return cls(lists, np.arange(lists.n_queries))

    @cached_property
    def offsets(self) -> np.ndarray:
        """int64 ``[Q + 1]``, as in :class:`RankedLists`."""
        return np.concatenate([[0], np.cumsum(self.lists.lengths[self.queries])]).astype(np.int64)

    @property
    def n_queries(self) -> int:
        """Number of queries, Q."""
        return len(self.offsets) - 1

    @property
    def n_documents(self) -> int:
        """Number of their documents."""
        return int(self.offsets[-1])

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.lists.n_features

    def blocks(self, documents: int) -> Iterator[RankedLists]:
        """Blocks of queries with up to ``documents`` documents together, but at least one query.

        A block may be a view of mapped features, whose pages are given back after it.
        """
        offsets, first = self.offsets, 0
        while first < self.n_queries:
            last = int(np.searchsorted(offsets, offsets[first] + documents, side="right")) - 1
            last = max(last, first + 1)
            yield self._block(self.queries[first:last])
            _give_back_pages(self.lists.features)
            first = last

    def _block(self, queries: np.ndarray) -> RankedLists:
        begin, end = int(queries[0]), int(queries[-1]) + 1
        if end - begin > len(queries):
            return self.lists.select(queries)
        # All are neighbours, so a view is enough.
        offsets = self.lists.offsets[begin : end + 1]
        rows = slice(int(offsets[0]), int(offsets[-1]))
        return RankedLists(
            self.lists.features[rows],
            self.lists.labels[rows],
            offsets - rows.start,
            self.lists.query_ids[begin:end],
            None if self.lists.groups is None else self.lists.groups[begin:end],
        )


def _give_back_pages(features: np.ndarray) -> None:
    """Take the pages of a mapped file out of this process; they stay in the system's cache.

    A process that reads a collection once would otherwise seem to need memory for all of it.
    """
    mapped = getattr(features, "_mmap", None)
    # Pages that may have been written to could be lost.
    if mapped is not None and not features.flags.writeable and hasattr(mmap, "MADV_DONTNEED"):
        mapped.madvise(mmap.MADV_DONTNEED)


def check(settings: Mapping[str, Any]) -> None:
    """Raise :class:`ConfigError` for a setting that :func:`is_kept` does not have."""
    refuse_unknown(settings, DEFAULTS, "filter")


def is_kept(lists: RankedLists, min_documents: int = 1, min_relevant: int = 0) -> np.ndarray:
    """Whether each query has enough documents and enough relevant ones, bool ``[Q]``.

    >>> features, labels = np.zeros((5, 1), np.float32), np.array([0, 1, 0, 0, 0], np.float32)
    >>> lists = RankedLists(features, labels, np.array([0, 3, 4, 5]), np.array([7, 8, 9]))
    >>> is_kept(lists, min_documents=2, min_relevant=1).tolist()
    [True, False, False]

    Args:
        lists: the queries.
        min_documents: the fewest documents that a query may have.
        min_relevant: the fewest relevant documents (label above 0) that a query may have.
    """
    return (lists.lengths >= min_documents) & (lists.relevant_counts() >= min_relevant)


def select(
    lists: RankedLists, min_documents: int = 1, min_relevant: int = 0, where: str = "the data"
) -> Selection:
    """The queries that :func:`is_kept` keeps; ``where`` is their name for the error.

    Raises:
        DataError: no query is left.
    """
    keep = is_kept(lists, min_documents, min_relevant)
    if not keep.any():
        raise nothing_left(where, min_documents, min_relevant)
    return Selection(lists, np.flatnonzero(keep))


def nothing_left(where: str, min_documents: int, min_relevant: int) -> DataError:
    """The error for a split of which no query is left."""
    return DataError(
        f"{where}: no query has {min_documents} documents and {min_relevant} relevant ones",
        "lower 'min_documents' or 'min_relevant'",
    )
