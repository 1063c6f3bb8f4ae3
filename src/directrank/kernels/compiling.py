"""The compilation of this package's loops by numba."""

from __future__ import annotations

import sys
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

from numba import njit

from directrank.system import compiling

#: Arithmetic may be reordered, but NaN and infinity are respected. Division by zero gives infinity,
#: because Python's check for it would prevent vectorisation.
#:
#: A loop must not divide by an element of an array that is the same in each turn, but by a variable
#: that was set before the loop. Otherwise the vectorised loop multiplies by its reciprocal and the
#: plain one divides, and which of the two runs depends on where the arrays lie in memory.
OPTIONS: dict[str, Any] = {
    "fastmath": {"reassoc", "contract", "nsz", "arcp"},
    "error_model": "numpy",
}


def compiled(kernel: Callable) -> Callable:
    """Compile a function that Python calls, by :func:`.system.compiling.compiled`.

    The assignment of an array to a slice, and what contains one, such as ``np.diff``, takes numba
    five seconds, most of them for the words of an error message. Loops do without.
    """
    return _cached(kernel, **OPTIONS)


def compiled_as_written(kernel: Callable) -> Callable:
    """As :func:`compiled`, with each operation rounded by itself, in the order of the code."""
    return _cached(kernel, error_model=OPTIONS["error_model"])


def _cached(kernel: Callable, **options: Any) -> Callable:
    # Numba caches a function by its name, and checks only the function's own file for changes.
    kernel.__qualname__ += f"-{_code(kernel.__module__)}"
    return compiling.compiled(kernel, **options)


def inlined(part: Callable) -> Callable:
    """Compile a function that kernels call by inlining it into each of them.

    Numbers depend on this. A part that is not inlined is a separate symbol, of whose copies a
    process calls the first that it loads. This depends on whether the kernel has just been compiled
    or comes from the disk, and on other kernels, and the last bits of the copies differ.
    """
    options = {"forceinline": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True, **OPTIONS}
    return njit(**options, nogil=True)(part)


def _code(module: str) -> str:
    """A digest of what a module has taken from other modules of kernels when it defines a kernel.

    It covers the source of those modules, of those from which they took something, and constants.
    """
    digest, found, waiting = sha256(), {module}, [module]
    while waiting:
        taken = sorted(vars(sys.modules[waiting.pop()]).items())
        constants = [item for item in taken if isinstance(item[1], int | float | str | tuple)]
        digest.update(repr([item for item in constants if not item[0].startswith("__")]).encode())
        # Functions, classes, and numba's own objects, which bear the names of their functions.
        origins = {getattr(value, "__module__", None) or "" for _, value in taken}
        new = sorted(name for name in origins - found if name.startswith(f"{__package__}."))
        for name in new:
            digest.update(Path(str(sys.modules[name].__file__)).read_bytes())
        found.update(new)
        waiting += new
    return digest.hexdigest()[:8]
