"""The lists of a batch, shared among threads.

Each list is worked by one thread, so that results do not depend on the number of threads. The
threads are Python's: a kernel lets go of the interpreter's lock, and numba's own threads would not
survive a fork.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import torch

#: Pairs of documents that are worth a second thread.
WORTH_A_THREAD = 300_000


class _Pool:
    """Threads beside the calling one, made when first needed."""

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
