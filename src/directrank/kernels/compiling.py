"""How numba compiles the loops of this package."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from hashlib import sha256
from typing import Any

from numba import njit

from directrank.system import compiling, sources

#: Arithmetic may be reordered; NaN and infinity are not assumed away. Division by zero gives
#: infinity: Python's check for it would keep loops from vectorising.
OPTIONS: dict[str, Any] = {
    "fastmath": {"reassoc", "contract", "nsz", "arcp"},
    "error_model": "numpy",
}


def compiled(kernel: Callable) -> Callable:
    """Compile a function that Python calls, as :func:`.system.compiling.compiled` does."""
    # Numba keeps a function under its name, and looks for changes in its own file alone.
    kernel.__qualname__ += f"-{_code(kernel.__module__)}"
    return compiling.compiled(kernel, **OPTIONS)


def inlined(part: Callable) -> Callable:
    """Compile a function that kernels call, into each of them.

    Numbers depend on this. If not inlined, a part is a symbol of its own, and of all its copies the
    first that a process meets is called: another one where the kernel has just been compiled than
    where it comes from the disk, or after another kernel. Their last bits differ.
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
