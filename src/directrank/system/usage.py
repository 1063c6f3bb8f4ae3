"""The time, memory and CPU time that a process has used: written by it, read by others."""

from __future__ import annotations

import resource
import sys
import time
from pathlib import Path

from directrank.system.io import write_text

#: Units of ``ru_maxrss`` in a megabyte.
_PER_MEGABYTE = 2**20 if sys.platform == "darwin" else 2**10

#: What :func:`write_usage` writes.
COLUMNS = ("s", "max_rss", "cpu_time")


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
    write_text(path, "\t".join(COLUMNS) + f"\n{row}\n")


def read_usage(path: str | Path) -> dict[str, float] | None:
    """The columns of a table like that of :func:`write_usage`, not a number where one is missing.

    None if the process has not ended: there is no file yet, or an empty one.
    """
    path = Path(path)
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    if len(lines) < 2:
        return None
    row = dict(zip(lines[0].split("\t"), lines[-1].split("\t"), strict=True))
    return {name: float(row.get(name, "nan")) for name in COLUMNS}
