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
    """A sentence for each feature that looks like a row number, a rank, an id or a label.

    Args:
        features: ``[N, F]``, in the order in which the rows are stored.
        labels: ``[N]``.
        queries: ``[N]``.
        names: those of the F features.
    """
    query = pd.factorize(queries)[0]
    kinds = {
        "follows the order of the rows in every query; if it is a row number or a rank": _following(
            features, np.arange(len(labels)), query
        ),
        "orders the documents of every query as the labels do; if it was made of them": _following(
            features, labels, query
        ),
        "has a different whole number in every row; if it is an id": _numbering(features),
    }
    said: set[int] = set()
    for kind, columns in kinds.items():
        for column in columns:
            if column not in said:
                said.add(column)
                name = names[column]
                yield f"the feature '{name}' {kind}, leave it out: --leave-out '{name}'"


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


def _numbering(features: np.ndarray) -> list[int]:
    """Columns of whole numbers that are all different."""
    if len(features) <= LEAST_STEPS:
        return []
    return [
        number
        for number, column in enumerate(features.T)
        if all(
            np.array_equal(part, np.floor(part)) and len(np.unique(part)) == len(part)
            for part in (column[:1000], column)
        )
    ]


def _follows(values: np.ndarray, starts: np.ndarray, steps: np.ndarray) -> bool:
    low, high = np.minimum.reduceat(values, starts), np.maximum.reduceat(values, starts)
    return bool((low[1:] > high[:-1])[steps].all() or (high[1:] < low[:-1])[steps].all())
