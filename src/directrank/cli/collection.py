"""Python's garbage collection, put off while a command starts."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Import without garbage collection: it takes a quarter of the start of a fit, in vain.

    What was imported stays, so collection, once it is on again, leaves it out.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
