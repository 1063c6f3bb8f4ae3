"""Distribute the lists of a batch among threads.

Each list is processed by one thread, so that results do not depend on the number of threads. The
threads are Python's, because kernels release the global interpreter lock, and numba's own threads
would not survive a fork.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import torch

from directrank.system import blas

#: Pairs of documents that are worth a second thread.
WORTH_A_THREAD = 300_000


class _Pool:
    """Threads in addition to the calling one, created when first needed."""

    def __init__(self) -> None:
        self.process, self.size = 0, 0
        self.executor: ThreadPoolExecutor | None = None

    def get(self, size: int) -> ThreadPoolExecutor:
        """At least ``size`` threads of this process; a fork does not inherit its parent's."""
        if self.executor is None or self.process != os.getpid() or self.size < size:
            self.process, self.size = os.getpid(), size
            self.executor = ThreadPoolExecutor(size, "directrank")
        return self.executor


_pool = _Pool()

#: The number of threads of compiled loops while PyTorch is limited to one; None for PyTorch's
#: number.
_threads: int | None = None


@contextmanager
def pytorch_on_one_thread() -> Iterator[None]:
    """Run PyTorch's operations on one thread, and compiled loops on as many as before.

    This is for work that is mostly in compiled loops, because PyTorch's threads spin for some ms on
    the cores while they wait for the next operation.
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


#: Whether BLAS is limited to one thread.
_blas_is_limited = False


@contextmanager
def blas_on_one_thread() -> Iterator[None]:
    """Run BLAS on one thread; its own threads would compete with those of compiled loops."""
    global _blas_is_limited
    if _blas_is_limited:
        yield
        return
    with blas.libraries().limit(limits=1):
        _blas_is_limited = True
        try:
            yield
        finally:
            _blas_is_limited = False


@contextmanager
def steps_in_loops() -> Iterator[None]:
    """Keep PyTorch and BLAS to one thread each during many steps in compiled loops."""
    with pytorch_on_one_thread(), blas_on_one_thread():
        yield


def threads_for(work: int) -> int:
    """The number of threads that :func:`over_lists` uses for ``work`` and enough lists."""
    return min(_threads or torch.get_num_threads(), work // WORTH_A_THREAD + 1)


def _turns(lists: int, threads: int) -> list[tuple[int, int]]:
    """Ranges that cover the ``lists``: long ones first, because calls take time, and short ones
    last.

    Threads then finish at about the same time, even if lists differ and cores have other load.
    """
    ranges, begin, least = [], 0, max(1, lists // (16 * threads))
    while begin < lists:
        end = min(begin + max(least, (lists - begin) // (3 * threads)), lists)
        ranges.append((begin, end))
        begin = end
    return ranges


def over_lists(kernel: Callable[..., None], work: int, lists: int, *arguments: object) -> None:
    """Call ``kernel(begin, end, *arguments)`` for ranges that cover the ``lists``.

    As many threads as PyTorch uses, or used before :func:`pytorch_on_one_thread`, take turns, if
    the ``work`` (in pairs of documents) is worth it.
    """
    if lists == 0:
        return
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
