"""The compilation of this package's loops by numba."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from hashlib import sha256
from typing import Any

from numba import njit

from directrank.system import compiling, sources

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


@cache
def _code(module: str) -> str:
    """A digest of the kernels' modules that a kernel's module imports."""

    def imports(name: str) -> list[str]:
        return [other for other in sources.imports_of(name) if other.startswith(f"{__package__}.")]

    modules = sorted(sources.reached([module], imports) - {module})
    return sha256(b"".join(sources.text_of(name) for name in modules)).hexdigest()[:8]
