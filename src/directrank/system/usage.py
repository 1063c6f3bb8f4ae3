"""What a process has taken: time, memory, processor time."""

from __future__ import annotations

import resource
import sys
import time
from pathlib import Path

from directrank.system.io import write_text

#: Units of ``ru_maxrss`` in a megabyte.
_PER_MEGABYTE = 2**20 if sys.platform == "darwin" else 2**10


def write_usage(path: str | Path, began: float) -> None:
    """Write a table of one row, separated by tabs, with the columns of Snakemake's benchmarks.

    Args:
        path: the file.
        began: ``time.perf_counter()`` when the work began.

    ``s`` are seconds of a clock, ``max_rss`` is the most memory in MB that this process had, or one
    that it waited for, ``cpu_time`` seconds of processors that they took together.
    """
    own, others = (
        resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    memory = max(own.ru_maxrss, others.ru_maxrss) / _PER_MEGABYTE
    processor = sum(usage.ru_utime + usage.ru_stime for usage in (own, others))
    row = f"{time.perf_counter() - began:.2f}\t{memory:.2f}\t{processor:.2f}"
    write_text(path, f"s\tmax_rss\tcpu_time\n{row}\n")
