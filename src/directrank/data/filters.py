"""Leaving queries out, as Yu2020 does in every split (its code: min_docs 10, min_rele 1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from directrank.errors import ConfigError, DataError
from directrank.lists import RankedLists
from directrank.schema import suggest

_DEFAULTS = {"min_documents": 1, "min_relevant": 0}


def filter_queries(
    lists: RankedLists, min_documents: int = 1, min_relevant: int = 0
) -> RankedLists:
    """The queries with enough documents, and enough of them relevant (label above 0).

    Args:
        lists: the queries; returned as they are where none is left out.
        min_documents: the fewest documents that a query may have.
        min_relevant: the fewest relevant documents that a query may have.

    Raises:
        DataError: no query is left.
    """
    keep = (lists.lengths >= min_documents) & (lists.relevant_counts() >= min_relevant)
    if keep.all():
        return lists
    if not keep.any():
        raise DataError(
            f"no query has {min_documents} documents and {min_relevant} relevant ones",
            "lower 'min_documents' or 'min_relevant'",
        )
    return lists.select(np.flatnonzero(keep))


def apply(settings: Mapping[str, Any], splits: Mapping[str, RankedLists]) -> dict[str, RankedLists]:
    """:func:`filter_queries` on every split, with ``settings`` as its keyword arguments.

    Raises:
        ConfigError: an unknown setting.
        DataError: a split from which no query is left.
    """
    for key in settings:
        if key not in _DEFAULTS:
            raise ConfigError(f"filter has no setting '{key}'", suggest(key, _DEFAULTS))
    filtered = {}
    for name, lists in splits.items():
        try:
            filtered[name] = filter_queries(lists, **settings)
        except DataError as error:
            raise DataError(f"split '{name}': {error.what}", error.remedy) from None
    return filtered
