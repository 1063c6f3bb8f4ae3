"""Disks that are full, and folders that cannot be written."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

from world import Row, SkippedError, Start, World, fill, said_once

#: How much room: shares of what an undisturbed run writes, so that it fails early, midway, late.
SHARES = (0.2, 0.5, 0.8)


def full(world: World) -> Row:
    """The file system is too small; then it grows, as when a user makes room."""
    row = Row(
        "disk full",
        "The message is “No space left on device”. The next start resumes once there is room.",
    )
    brought = _size(world.new("brought"))
    written = _size(world.base / "undisturbed") - brought
    for share in world.variants(SHARES):
        folder = world.base / f"full-{round(100 * share)}"
        folder.mkdir()
        size = brought + int(share * written)
        with _mounted(folder, "-t", "tmpfs", "-o", f"size={size}", "tmpfs"):
            fill(folder)
            start = Start(folder)
            start.wait()
            # Snakemake's own log lies on the same disk, and Python shows that it cannot be written.
            problems = said_once(start, "No space left on device", traceback=True)
            _run("mount", "-o", "remount,size=1g", str(folder))
            row.count(1, problems + world.finishes(folder))
    return row


def read_only(world: World) -> Row:
    """The folder of results, and in another try that of tables, is mounted read-only."""
    row = Row(
        "read-only results folder",
        "The message is “Read-only file system” with the folder. The next start resumes once the "
        "folder is writable.",
    )
    for top in world.variants(("results", "paper_tables")):
        folder = world.new(f"read-only-{top}")
        target = folder / top
        target.mkdir()
        with _mounted(target, "--bind", str(target)):
            _run("mount", "-o", "remount,ro,bind", str(target))
            start = Start(folder)
            start.wait()
            problems = said_once(start, "Read-only file system", top)
        row.count(1, problems + world.finishes(folder))
    return row


@contextlib.contextmanager
def _mounted(target: Path, *options: str) -> Iterator[None]:
    if os.geteuid() != 0:
        raise SkippedError("mounting needs root")
    done = subprocess.run(["mount", *options, str(target)], capture_output=True, text=True)
    if done.returncode != 0:
        raise SkippedError(f"mounting is not allowed here: {done.stderr.strip()}")
    try:
        yield
    finally:
        _run("umount", str(target))


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


def _size(folder: Path) -> int:
    """What the files of a folder take on a file system of pages of 4096 bytes."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return sum(-(-path.stat().st_size // 4096) * 4096 for path in files)


FAULTS = (full, read_only)
