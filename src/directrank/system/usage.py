"""The time, memory and CPU time that a process has used: written by it, read by others."""

from __future__ import annotations

import resource
import sys
from pathlib import Path

from directrank.system.io import write_text

#: Units of ``ru_maxrss`` in a megabyte.
_PER_MEGABYTE = 2**20 if sys.platform == "darwin" else 2**10

#: What :func:`write_usage` writes.
COLUMNS = ("s", "max_rss", "cpu_time")


def own_usage() -> list[resource.struct_rusage]:
    """What this process has used, and what those of its children have that it waited for."""
    return [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]


def write_usage(path: str | Path, seconds: float, *usages: resource.struct_rusage) -> None:
    """Write a tab-separated table of one row with the columns of Snakemake's benchmarks.

    Args:
        path: the file.
        seconds: the time that the work took.
        usages: what processes used for it.

    ``s`` is the wall time in seconds, ``max_rss`` the largest peak memory of a process in MB, and
    ``cpu_time`` the total CPU time in seconds.
    """
    memory = max(usage.ru_maxrss for usage in usages) / _PER_MEGABYTE
    processor = sum(usage.ru_utime + usage.ru_stime for usage in usages)
    row = f"{seconds:.2f}\t{memory:.2f}\t{processor:.2f}"
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
