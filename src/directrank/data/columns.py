"""Lists without some of their features, which are named by patterns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from directrank.lists.packed import RankedLists
from directrank.system.errors import ConfigError


def kept(record: Mapping[str, Any], n_features: int, without: Sequence[str]) -> np.ndarray:
    """The places of the features that no pattern of ``without`` names, in their order.

    Args:
        record: of the prepared data set; its ``feature_names`` are matched, or else numbers from 1.
        n_features: their number.
        without: patterns with ``*`` and ``?``, such as ``title.*``.

    Returns:
        int64 ``[K]``.

    Raises:
        ConfigError: a pattern names no feature, or all features are named.
    """
    names = record.get("feature_names") or [str(number + 1) for number in range(n_features)]
    for pattern in without:
        if not any(fnmatchcase(name, pattern) for name in names):
            raise ConfigError(
                f"'without_features': no feature of '{record['name']}' has the name '{pattern}'",
                f"its features are {', '.join(names)}",
            )
    places = [
        place
        for place, name in enumerate(names)
        if not any(fnmatchcase(name, pattern) for pattern in without)
    ]
    if not places:
        raise ConfigError(
            f"'without_features' leaves no feature of '{record['name']}'", "name fewer of them"
        )
    return np.array(places, dtype=np.int64)


def select(lists: RankedLists, places: np.ndarray) -> RankedLists:
    """The same lists with the features at ``places`` alone, copied."""
    first, last = int(lists.offsets[0]), int(lists.offsets[-1])
    return replace(
        lists,
        features=np.ascontiguousarray(lists.features[first:last, places]),
        labels=np.asarray(lists.labels[first:last]),
        offsets=np.asarray(lists.offsets) - first,
    )
