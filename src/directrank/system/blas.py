"""The BLAS libraries that NumPy and SciPy bring; PyTorch has settings for its own."""

from __future__ import annotations

from functools import cache

from threadpoolctl import ThreadpoolController


@cache
def libraries() -> ThreadpoolController:
    """The BLAS libraries of this process, whose number of threads can be limited.

    That of compiled loops, which is SciPy's, is among them. They are looked up once, because this
    takes longer than a short training step.
    """
    import scipy.linalg.cython_blas  # noqa: F401

    return ThreadpoolController().select(user_api="blas")


def kernels() -> str:
    """The processor for which the BLAS of compiled loops computes, such as ``SkylakeX``.

    Haswell and Zen have AVX2, and SkylakeX and those after it AVX-512. It is empty for a library
    that does not say so.
    """
    found = (library.get("architecture") for library in libraries().info())
    return next((name for name in found if name), "")
