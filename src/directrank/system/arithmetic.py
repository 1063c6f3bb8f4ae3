"""The processor instructions that libraries may use, which decide the last bits of results.

Libraries read them from the environment when they are loaded, so a job's shell sets them.
"""

from __future__ import annotations

import os
import platform

#: Restricts libraries to AVX2, so that machines agree as far as the libraries allow. The names are
#: those of x86; told the name of a processor of another kind, numba can end the process.
PORTABLE = {
    "ATEN_CPU_CAPABILITY": "avx2",
    "ONEDNN_MAX_CPU_ISA": "AVX2",
    "MKL_CBWR": "AVX2",
    "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR",
    "OPENBLAS_CORETYPE": "Haswell",
    "NUMBA_CPU_NAME": "haswell",
    "NUMBA_CPU_FEATURES": "+sse4.2,+popcnt,+lzcnt,+avx,+avx2,+f16c,+fma,+bmi,+bmi2",
}


def variables(arithmetic: str) -> dict[str, str]:
    """The environment variables of an edition's ``arithmetic``, ``portable`` or ``native``."""
    on_x86 = platform.machine().lower() in ("x86_64", "amd64")
    return dict(PORTABLE) if arithmetic == "portable" and on_x86 else {}


def of_this_process() -> str:
    """The arithmetic whose variables this process has."""
    return "portable" if PORTABLE.items() <= os.environ.items() else "native"
