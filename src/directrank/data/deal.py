"""Divide a collection without splits into parts, from which folds are made."""

from __future__ import annotations

import numpy as np

from directrank.system.errors import DataError
from directrank.system.seeds import numpy_stream


def deal(groups: np.ndarray, parts: int, name: str) -> np.ndarray:
    """Deal queries to parts at random, whole groups together, in about equal numbers.

    Groups are shuffled; then the largest go first, each to the part with the fewest queries. The
    random stream is the data set's, so the same queries are always in the same parts.

    Args:
        groups: int64 ``[Q]``; queries with the same number stay together.
        parts: the number of parts.
        name: the data set's name.

    Returns:
        The part of every query, int64 ``[Q]``, counted from 0.

    Raises:
        DataError: there are fewer groups than parts.

    >>> deal(np.array([7, 7, 7, 8, 9, 9]), 3, "mine").tolist()
    [0, 0, 0, 2, 1, 1]
    """
    names, group, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    if len(names) < parts:
        raise DataError(
            f"has {len(names)} queries or groups of queries, which are too few for {parts} parts",
            "lower 'folds', or add queries",
            file=name,
        )
    shuffled = numpy_stream("deal", name).permutation(len(names))
    order = shuffled[np.argsort(-sizes[shuffled], kind="stable")]
    loads = np.zeros(parts, np.int64)
    part = np.empty(len(names), np.int64)
    for number in order.tolist():
        part[number] = loads.argmin()
        loads[part[number]] += sizes[number]
    return part[group]
