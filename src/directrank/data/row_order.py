"""The order of a user's rows: features that follow it, and an order that tells nothing."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

#: A feature that follows an order at fewer steps than this may do so by chance.
LEAST_STEPS = 20


def neutral_order(
    features: np.ndarray, labels: np.ndarray, queries: np.ndarray, *, sort: bool
) -> np.ndarray:
    """Rows by query, and within a query by a hash of the query and the features.

    Ties between scores are broken by this order, so it must say nothing about labels, and it does
    not depend on the order in which the rows are stored. Of rows of a query with the same features,
    the hash also covers a number: the first, second, … in the order of their labels.

    Args:
        features: float32 ``[N, F]``.
        labels: ``[N]``.
        queries: ``[N]``, text.
        sort: whether queries are sorted; otherwise they are in the order of their first rows.

    Returns:
        int64 ``[N]``, the rows in their new order.
    """
    query = pd.factorize(queries, sort=sort)[0]
    keys = pd.util.hash_array(queries.astype(object))
    for column in features.T:
        # Adding 0 turns -0 into 0, which equals it.
        keys = pd.util.hash_array(keys + (column + np.float32(0)).view(np.uint32))
    order = np.lexsort((labels, keys, query))
    first = np.ones(len(order), bool)
    first[1:] = (np.diff(query[order]) != 0) | (np.diff(keys[order]) != 0)
    starts = np.flatnonzero(first)
    number = np.arange(len(order)) - np.repeat(starts, np.diff(starts, append=len(order)))
    keys[order] = pd.util.hash_array(keys[order] + number.astype(np.uint64))
    return np.lexsort((keys, query))


def suspicious(
    features: np.ndarray, labels: np.ndarray, queries: np.ndarray, names: tuple[str, ...]
) -> Iterator[str]:
    """A sentence for each feature that follows the order of rows, or of labels, in every query.

    Args:
        features: ``[N, F]``, in the order in which the rows are stored.
        labels: ``[N]``.
        queries: ``[N]``.
        names: those of the F features.
    """
    query = pd.factorize(queries)[0]
    rows = _following(features, np.arange(len(labels)), query)
    for column in rows:
        yield (
            f"the feature '{names[column]}' follows the order of the rows in every query; if it is "
            f"a number of the row or a rank, leave it out: --leave-out '{names[column]}'"
        )
    for column in _following(features, labels, query):
        if column not in rows:
            yield (
                f"the feature '{names[column]}' orders the documents of every query as the labels "
                f"do; if it was made of the labels, leave it out: --leave-out '{names[column]}'"
            )


def _following(features: np.ndarray, by: np.ndarray, query: np.ndarray) -> list[int]:
    """Columns that rise, or that fall, from each value of ``by`` to the next within all queries."""
    order = np.lexsort((by, query))
    query, by = query[order], by[order]
    new_query = np.diff(query) != 0
    starts = np.r_[0, 1 + np.flatnonzero(new_query | (np.diff(by) != 0))]
    steps = np.diff(query[starts]) == 0
    if steps.sum() < LEAST_STEPS:
        return []
    few = min(1000, len(starts) - 1)  # most features do not follow the first rows already
    return [
        number
        for number, column in enumerate(features.T)
        if _follows(column[order[: starts[few]]], starts[:few], steps[: few - 1])
        and _follows(column[order], starts, steps)
    ]


def _follows(values: np.ndarray, starts: np.ndarray, steps: np.ndarray) -> bool:
    low, high = np.minimum.reduceat(values, starts), np.maximum.reduceat(values, starts)
    return bool((low[1:] > high[:-1])[steps].all() or (high[1:] < low[:-1])[steps].all())
