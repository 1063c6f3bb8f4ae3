"""The packed container of ranked lists.

Outside losses and metrics everything is *packed*: the documents of all queries follow one another,
and ``offsets`` says where each query's list begins and ends. Nothing here needs PyTorch, whose
import takes longer than most plans and figures; :mod:`directrank.lists.padding` makes padded
tensors.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class RankedLists:
    """Queries with their documents, packed.

    Attributes:
        features: float32 ``[N, F]``, one row per document; may be memory-mapped.
        labels: float32 ``[N]``, graded relevance, 0 = not relevant.
        offsets: int64 ``[Q + 1]``; query ``q`` has the rows ``offsets[q]:offsets[q + 1]``.
        query_ids: int64 ``[Q]``, the query numbers of the data set.
        groups: int64 ``[Q]``; queries of the same group are not independent. None if no groups are
            known.
        weights: ``[Q]``, the factor of each query's loss, which the learner ``neural`` reads; None
            if all are 1.

    >>> lists = RankedLists(
    ...     features=np.zeros((5, 3), np.float32),
    ...     labels=np.array([0, 2, 1, 0, 1], np.float32),
    ...     offsets=np.array([0, 3, 5]),
    ...     query_ids=np.array([11, 12]),
    ... )
    >>> lists.n_queries, lists.n_documents, lists.n_features
    (2, 5, 3)
    >>> lists.lengths, lists.relevant_counts()
    (array([3, 2]), array([2, 1]))
    >>> lists.select([1]).labels
    array([0., 1.], dtype=float32)
    """

    features: np.ndarray
    labels: np.ndarray
    offsets: np.ndarray
    query_ids: np.ndarray
    groups: np.ndarray | None = None
    weights: np.ndarray | None = None

    @property
    def n_queries(self) -> int:
        """Number of queries, Q."""
        return len(self.offsets) - 1

    @property
    def n_documents(self) -> int:
        """Number of documents, N."""
        return int(self.offsets[-1] - self.offsets[0])

    @property
    def n_features(self) -> int:
        """Number of features, F."""
        return self.features.shape[1]

    @property
    def lengths(self) -> np.ndarray:
        """Documents per query, int64 ``[Q]``."""
        return np.diff(self.offsets)

    def relevant_counts(self, min_label: float = 1.0) -> np.ndarray:
        """Documents with a label of at least ``min_label`` per query, int64 ``[Q]``."""
        below = np.concatenate([[0], np.cumsum(self.labels >= min_label)])
        return (below[self.offsets[1:]] - below[self.offsets[:-1]]).astype(np.int64)

    def select(self, queries: np.ndarray) -> RankedLists:
        """Copy the queries at the positions ``queries`` (int ``[M]``), in that order."""
        queries = np.asarray(queries, dtype=np.int64)
        lengths = self.lengths[queries]
        rows = concatenated_ranges(self.offsets[queries], lengths)
        return RankedLists(
            features=np.asarray(self.features[rows]),
            labels=np.asarray(self.labels[rows]),
            offsets=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
            query_ids=np.asarray(self.query_ids[queries]),
            groups=None if self.groups is None else np.asarray(self.groups[queries]),
            weights=None if self.weights is None else np.asarray(self.weights[queries]),
        )


def whole_queries(offsets: np.ndarray, documents: int) -> Iterator[tuple[int, int]]:
    """Ranges of queries that together have at most ``documents`` documents, or are one query.

    >>> list(whole_queries(np.array([0, 2, 3, 9]), documents=4))
    [(0, 2), (2, 3)]
    """
    first, queries = 0, len(offsets) - 1
    while first < queries:
        last = int(np.searchsorted(offsets, offsets[first] + documents, side="right")) - 1
        last = max(last, first + 1)
        yield first, last
        first = last


def concatenated_ranges(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """``[starts[0], …, starts[0]+lengths[0]-1, starts[1], …]`` as int64, without a Python loop.

    >>> concatenated_ranges(np.array([0, 10]), np.array([3, 2]))
    array([ 0,  1,  2, 10, 11])
    """
    lengths = np.asarray(lengths, dtype=np.int64)
    ends = np.cumsum(lengths)
    shift = np.repeat(np.asarray(starts, dtype=np.int64) - (ends - lengths), lengths)
    return shift + np.arange(int(ends[-1]) if len(ends) else 0, dtype=np.int64)
