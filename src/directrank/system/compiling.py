"""Compile loops with numba and cache them on disk where possible; the only place that does so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit


def compiled(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """Compile a function on its first call; it runs without the global interpreter lock.

    Args:
        function: the loop.
        options: those of :func:`numba.njit`; without any, arithmetic is Python's, in the order
            written.
    """
    options = {"nogil": True, **options}
    try:
        return njit(cache=True, **options)(function)
    except RuntimeError:  # numba: no locator available
        return njit(**options)(function)
