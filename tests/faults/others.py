"""A second Snakemake, a clock that jumps, and memory that runs out."""

from __future__ import annotations

import os
import time
from pathlib import Path

from world import Row, Start, World, said_once

DAY = 86400.0
#: Ours, and the C library's where the interpreter itself cannot go on.
NO_MEMORY = ("out of memory", "annot allocate memory")


def two_at_once(world: World) -> Row:
    """Two are started in one folder: at the same moment, or one while the other is at work."""
    row = Row(
        "two Snakemakes started at once",
        "The second names the first and ends immediately. It can be started when the first has "
        "ended.",
    )
    for at_work in world.variants((False, True)):
        folder = world.new("two-at-work" if at_work else "two-at-once")
        first = Start(folder)
        # However slowly the second starts, the first is at work then.
        held = (first.until(lambda start=first: start.jobs("train")) if at_work else None) or []
        for job in held:
            job.suspend()
        second = Start(folder)
        if held:
            second.wait()
        for job in held:
            job.resume()
        codes = {first: first.wait(), second: second.wait()}
        refused = [start for start, code in codes.items() if code != 0]
        problems = [] if len(refused) == 1 else [f"{len(refused)} of two were refused"]
        for start in refused:
            problems += said_once(start, "is being worked on in this folder by process")
        row.count(1, problems + world.differences(folder) + world.finishes(folder))
    return row


def clock(world: World) -> Row:
    """The clock is set between two starts, so that files are from tomorrow or long ago."""
    row = Row(
        "a clock set back, or forward",
        "If a file is dated in the future, the message names it. The next start resumes once "
        "`touch` has set the dates of such files to now.",
    )
    for days, command in world.variants(((1, "train"), (1, "draw"), (-3650, "train"))):
        folder = world.new(f"clock-{days}-{command}")
        start = Start(folder)
        start.until(lambda start=start, command=command: start.jobs(command))
        start.kill_group()
        _shift(folder, days * DAY)
        problems = []
        if days > 0:
            start = Start(folder)
            start.wait()
            problems += said_once(start, "clock skew")
            _end_the_future(folder)
        problems += world.finishes(folder)
        start = Start(folder)
        start.wait()
        if "Nothing to be done" not in start.said:
            problems.append(f"a third start does something: {start.said[-1500:]}")
        row.count(1, problems + world.differences(folder))
    return row


def memory(world: World) -> Row:
    """A fit has less address space than it needs; at the next start it has enough."""
    row = Row(
        "a job out of memory",
        "The message names the job and says that memory ran out. The next start resumes once the "
        "job gets more.",
    )
    folder = world.new("memory")
    start = Start(folder, snakefile=Path(__file__).with_name("limited.smk"))
    start.wait()
    problems = said_once(start, "Error in rule fit")
    if not any(words in start.said for words in NO_MEMORY):
        problems.append(f"does not say that memory ran out: {start.said[-1500:]}")
    row.count(1, problems + world.finishes(folder))
    return row


def _shift(folder: Path, seconds: float) -> None:
    """Move the times of every file, as a clock that is set the other way does."""
    for path in [folder, *folder.rglob("*")]:
        times = path.lstat()
        os.utime(path, (times.st_atime + seconds, times.st_mtime + seconds), follow_symlinks=False)


def _end_the_future(folder: Path) -> None:
    """Date files of the future now, as `find . -newermt now -exec touch {} +` does."""
    now = time.time()
    for path in folder.rglob("*"):
        if path.lstat().st_mtime > now:
            os.utime(path, (now, now), follow_symlinks=False)


FAULTS = (two_at_once, clock, memory)
