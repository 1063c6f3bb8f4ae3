"""The range of every feature, collected while a data set is written."""

from __future__ import annotations

import numpy as np

from directrank.system.compiling import compiled


@compiled
def gather_ranges(
    features: np.ndarray, minimum: np.ndarray, maximum: np.ndarray, non_zero: np.ndarray
) -> None:
    """Update ``minimum``, ``maximum`` (float32 ``[F]``) and ``non_zero`` (int64 ``[F]``) in place.

    This takes one pass over ``features`` ``[n, F]``, where NumPy would take three.
    """
    for row in range(features.shape[0]):
        for column in range(features.shape[1]):
            value = features[row, column]
            minimum[column] = min(minimum[column], value)
            maximum[column] = max(maximum[column], value)
            non_zero[column] += value != 0
