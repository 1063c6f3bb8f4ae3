"""Files that are dated in the future, as a clock that has been set back leaves them."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

#: Seconds by which the clocks of machines that share a disk may differ.
SLACK = 60.0


def date_back(folders: Iterable[str | Path]) -> int:
    """Date files of the future back, so that the last of them is of now; their order stays.

    Whatever is made from such a file would be older than it, and count as outdated for ever.

    Args:
        folders: those that are not there are left out.

    Returns:
        How many files were dated in the future. One that may not be changed stays as it is.
    """
    now = time.time()
    late = {
        entry.path: entry.stat(follow_symlinks=False)
        for folder in folders
        for entry in _files(folder)
        if entry.stat(follow_symlinks=False).st_mtime > now + SLACK
    }
    if not late:
        return 0
    ahead = max(times.st_mtime_ns for times in late.values()) - int(now * 1e9)
    for path, times in late.items():
        with contextlib.suppress(OSError):
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns - ahead), follow_symlinks=False)
    return len(late)


def _files(folder: str | Path) -> Iterator[os.DirEntry[str]]:
    """The files in a folder and below; none where it cannot be read."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from _files(entry.path)
            elif entry.is_file(follow_symlinks=False):
                yield entry
