"""From MSRD's archive to lists with features, in five parts that share no answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from directrank.data.archives import Archive
from directrank.data.msrd.features import features
from directrank.data.msrd.groups import answers, communities, folds
from directrank.data.msrd.source import Collection, read
from directrank.lists.packed import RankedLists


def extract(
    archive: Archive, parts: int, note: Callable[[str], None]
) -> tuple[list[RankedLists], dict[str, Any]]:
    """The parts of the collection from which folds are made, and what the record says about them.

    Queries whose answers lie in several parts are left out and counted. Nothing is random.

    Args:
        archive: the archive of the catalogue's entry.
        parts: the number of parts.
        note: called with a short description of each step.

    Returns:
        The lists of each part, and a mapping with ``feature_names`` and ``omitted``, the number of
        items that were left out for each reason.

    Raises:
        DataError: see :func:`directrank.data.msrd.source.read`.
    """
    note("reading movies and judgements")
    collection = read(archive)
    note("finding groups of queries")
    answering = answers(collection)
    group, part = folds(answering, communities(answering, len(collection.movies)), parts)
    note(f"extracting features of {len(collection.labels)} pairs")
    names, values = features(collection)
    whole = as_lists(collection, values, group)
    omitted = dict(collection.omitted)
    spanning = int((part < 0).sum())
    if spanning:
        omitted["queries whose answers lie in several parts"] = spanning
    lists = [whole.select(np.flatnonzero(part == number)) for number in range(parts)]
    return lists, {"feature_names": names, "omitted": omitted}


def as_lists(collection: Collection, values: np.ndarray, group: np.ndarray) -> RankedLists:
    """All queries with the features ``values``, float32 ``[N, F]``."""
    offsets = np.searchsorted(collection.query, np.arange(len(collection.queries) + 1))
    return RankedLists(
        features=values,
        labels=collection.labels,
        offsets=offsets.astype(np.int64),
        query_ids=collection.query_ids,
        groups=group,
    )
