"""The time, memory and CPU time that a process has used."""

from __future__ import annotations

import resource
import sys
import time
from pathlib import Path

from directrank.system.io import write_text

#: Units of ``ru_maxrss`` in a megabyte.
_PER_MEGABYTE = 2**20 if sys.platform == "darwin" else 2**10


def write_usage(path: str | Path, began: float) -> None:
    """Write a tab-separated table of one row with the columns of Snakemake's benchmarks.

    Args:
        path: the file.
        began: ``time.perf_counter()`` when the work began.

    ``s`` is the wall time in seconds, ``max_rss`` the peak memory in MB of this process or of a
    child that it waited for, whichever is larger, and ``cpu_time`` their total CPU time in seconds.
    """
    own, others = (
        resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    memory = max(own.ru_maxrss, others.ru_maxrss) / _PER_MEGABYTE
    processor = sum(usage.ru_utime + usage.ru_stime for usage in (own, others))
    row = f"{time.perf_counter() - began:.2f}\t{memory:.2f}\t{processor:.2f}"
    write_text(path, f"s\tmax_rss\tcpu_time\n{row}\n")
