"""Compiling loops with numba, and the loop that gathers the range of every feature."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numba import njit


def kernel(function: Callable) -> Callable:
    """Compile with numba, free of the interpreter lock; kept on disk where that can be written."""
    try:
        return njit(nogil=True, cache=True)(function)
    except RuntimeError:  # numba: no locator available
        return njit(nogil=True)(function)


@kernel
def gather_ranges(
    features: np.ndarray, minimum: np.ndarray, maximum: np.ndarray, non_zero: np.ndarray
) -> None:
    """Update ``minimum``, ``maximum`` (float32 ``[F]``) and ``non_zero`` (int64 ``[F]``) in place.

    One pass over ``features`` ``[n, F]``, where NumPy would take three.
    """
    for row in range(features.shape[0]):
        for column in range(features.shape[1]):
            value = features[row, column]
            minimum[column] = min(minimum[column], value)
            maximum[column] = max(maximum[column], value)
            non_zero[column] += value != 0
