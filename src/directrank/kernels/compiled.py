"""Compiled loops over the lists of a batch: when they are used, and on which threads they run.

Lists are worked one at a time, each by one thread, so that results do not depend on the number of
threads. The threads are Python's: a kernel lets go of the interpreter's lock, and numba's own
threads would not survive a fork.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

#: Pairs of documents that are worth a second thread.
WORTH_A_THREAD = 300_000

#: How numba compiles. Arithmetic may be reordered; NaN and infinity are not assumed away.
OPTIONS: dict[str, Any] = {
    "nogil": True,
    "fastmath": {"reassoc", "contract", "nsz", "arcp"},
    "error_model": "numpy",
}


def usable(*values: Any) -> bool:
    """Whether kernels can work on these: numba is installed, tensors are float32 or 64 on a CPU.

    Hyper-parameters may be among the values; one that wants a gradient needs PyTorch.
    """
    first, *others = values
    return (
        first.device.type == "cpu"
        and first.dtype in (torch.float32, torch.float64)
        and not any(isinstance(other, Tensor) and other.requires_grad for other in others)
        and _numba_is_installed()
    )


@cache
def _numba_is_installed() -> bool:
    return find_spec("numba") is not None


def compiled(kernel: Callable) -> Callable:
    """Compile a function that Python calls, on first use; kept on disk where possible.

    It lets go of the interpreter's lock. Division by zero gives infinity: Python's check for it
    would keep loops from vectorising.
    """
    from numba import njit  # here: importing a loss must not wait for numba

    # Numba keeps a function under its name, and looks for changes in its own file alone.
    kernel.__qualname__ += f"-{_shared_code()}"
    try:
        return njit(cache=True, **OPTIONS)(kernel)
    except RuntimeError:  # numba: no locator available
        return njit(**OPTIONS)(kernel)


def inlined(part: Callable) -> Callable:
    """Compile a function that kernels of its own file call, into each of them.

    Numbers depend on this. If not inlined, a part is a symbol of its own, and of all its copies the
    first that a process meets is called: another one where the kernel has just been compiled than
    where it comes from the disk, or after another kernel. Their last bits differ.
    """
    from numba import njit

    return njit(forceinline=True, no_cpython_wrapper=True, no_cfunc_wrapper=True, **OPTIONS)(part)


@cache
def _shared_code() -> str:
    """A digest of the code that kernels of several files are made of."""
    sources = (Path(__file__), Path(__file__).with_name("numbers.py"))
    return sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:8]


class _Pool:
    """Threads beside the calling one, made when first needed."""

    def __init__(self) -> None:
        self.process, self.size, self.executor = 0, 0, None

    def get(self, size: int) -> ThreadPoolExecutor:
        """At least ``size`` threads of this process; a fork does not inherit its parent's."""
        if self.executor is None or self.process != os.getpid() or self.size < size:
            self.process, self.size = os.getpid(), size
            self.executor = ThreadPoolExecutor(size, "directrank")
        return self.executor


_pool = _Pool()

#: How many threads compiled loops use while PyTorch keeps to one; None for as many as PyTorch does.
_threads: int | None = None


@contextmanager
def pytorch_on_one_thread() -> Iterator[None]:
    """PyTorch's own operations on one thread, compiled loops on as many as before.

    For work of which compiled loops do the most: PyTorch's threads wait for the next operation by
    spinning, for some ms, on the cores that compiled loops want.
    """
    global _threads
    before = _threads, torch.get_num_threads()
    _threads = before[0] or before[1]
    torch.set_num_threads(1)
    try:
        yield
    finally:
        _threads = before[0]
        torch.set_num_threads(before[1])


def threads_for(work: int) -> int:
    """How many threads :func:`over_lists` uses for so much ``work``, if there are enough lists."""
    return min(_threads or torch.get_num_threads(), work // WORTH_A_THREAD + 1)


def _turns(lists: int, threads: int) -> list[tuple[int, int]]:
    """Ranges that make up the ``lists``: long ones first, as calls take time; short ones last.

    So threads end at about the same time, though lists differ and cores have other work as well.
    """
    ranges, begin, least = [], 0, max(1, lists // (16 * threads))
    while begin < lists:
        end = min(begin + max(least, (lists - begin) // (3 * threads)), lists)
        ranges.append((begin, end))
        begin = end
    return ranges


def over_lists(kernel: Callable[..., None], work: int, lists: int, *arguments: object) -> None:
    """``kernel(begin, end, *arguments)`` for ranges that make up the ``lists``.

    As many threads as PyTorch uses, or used before :func:`pytorch_on_one_thread`, take turns, if
    the ``work`` (in pairs of documents) is worth it.
    """
    threads = min(threads_for(work), lists)
    if threads <= 1:
        kernel(0, lists, *arguments)
        return
    turns = iter(_turns(lists, threads))

    def take_turns() -> None:
        for begin, end in turns:
            kernel(begin, end, *arguments)

    others = [_pool.get(threads - 1).submit(take_turns) for _ in range(threads - 1)]
    take_turns()
    for other in others:
        other.result()


def array(values: Tensor) -> np.ndarray:
    """A tensor's numbers as a contiguous array, which shares their memory where it can."""
    return values.detach().contiguous().numpy()


def per_list(value: float | Tensor, lists: int) -> np.ndarray:
    """A hyper-parameter (a number or ``[B, 1]``) as float64 ``[B]``."""
    if isinstance(value, Tensor):
        return value.detach().double().expand(lists, 1).reshape(lists).contiguous().numpy()
    return np.full(lists, value, dtype=np.float64)
