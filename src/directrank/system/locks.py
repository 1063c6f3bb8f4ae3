"""Locks of the operating system (``flock``), which are released however their process ends."""

from __future__ import annotations

import atexit
import contextlib
import errno
import fcntl
import json
import os
import platform
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

from directrank.system.errors import ConfigError

#: Errors of a file system without locks.
_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP)


def lock(file: int | IO[Any], *, wait: bool = True, shared: bool = False) -> bool:
    """Lock an open file or folder until it is closed; False if another process holds the lock.

    Args:
        file: the open file, or its descriptor.
        wait: whether to wait until the lock is free, in which case the result is True.
        shared: whether others may hold a shared lock at the same time.

    Raises:
        OSError: the file system does not support locks.
    """
    kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    try:
        fcntl.flock(file, kind if wait else kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextlib.contextmanager
def locked(path: str | Path) -> Iterator[None]:
    """Hold the lock on the file ``path``, created if need be; wait while others hold it."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w") as file:
        lock(file)
        yield


class HeldLocks:
    """Names that this process has claimed, until :meth:`release` or until it ends.

    Each is a lock on a file of that name, so a killed process leaves nothing to remove. The file
    records who holds the lock, for the error message of a second process.

    Args:
        folder: the folder of the lock files, created if need be.
        exclusive: names on which no other process may work at the same time.
        shared: names that others may share, but not claim exclusively.

    Raises:
        ConfigError: another process works on one of the names, or the file system does not support
            locks. Nothing is claimed in that case.
    """

    def __init__(
        self, folder: str | Path, exclusive: Iterable[str], shared: Iterable[str] = ()
    ) -> None:
        self._folder = Path(folder)
        self._folder.mkdir(parents=True, exist_ok=True)
        self._held: list[tuple[int, bool]] = []
        names = dict.fromkeys(shared, False) | dict.fromkeys(exclusive, True)
        try:
            # In a fixed order, so that two processes with the same names do not refuse each other.
            for name in sorted(names):
                self._take(name, names[name])
        except BaseException:
            self.release()
            raise
        atexit.register(self.release)

    def release(self) -> None:
        """Release every name."""
        for descriptor, exclusive in self._held:
            if exclusive:
                os.ftruncate(descriptor, 0)
            os.close(descriptor)
        self._held.clear()
        atexit.unregister(self.release)

    def _take(self, name: str, exclusive: bool) -> None:
        path = self._folder / f"{name}.lock"
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            if not lock(descriptor, wait=False, shared=not exclusive):
                raise ConfigError(
                    f"'{name}' is being worked on in this folder by {_who(_holder(path))}",
                    "wait until it has ended, or end it; a process that has died leaves no lock "
                    "to remove",
                )
            # Some file systems do not share locks between machines, so the holder of a claim that
            # another machine has not released may still be running there.
            holder = _holder(path) if exclusive else {}
            if holder and holder.get("host") != platform.node():
                raise ConfigError(
                    f"'{name}' was last worked on in this folder by {_who(holder)}, which did not "
                    "end normally",
                    f"if it is no longer running there, remove {path} and start again",
                )
        except OSError as error:
            os.close(descriptor)
            if error.errno not in _NO_LOCKS:
                raise
            raise ConfigError(
                f"the file system of {self._folder.absolute()} does not support locks "
                f"({error.strerror})",
                "work on one that does (on Lustre, use the mount option flock)",
            ) from None
        except ConfigError:
            os.close(descriptor)
            raise
        if exclusive:
            who = {
                "host": platform.node(),
                "pid": os.getpid(),
                "since": time.strftime("%Y-%m-%d %H:%M"),
            }
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, json.dumps(who).encode(), 0)
        self._held.append((descriptor, exclusive))


def _holder(path: Path) -> dict[str, object]:
    """The process that a lock file names; empty if it names none."""
    with contextlib.suppress(OSError, ValueError):
        who = json.loads(path.read_text(encoding="utf-8"))
        return who if isinstance(who, dict) else {}
    return {}


def _who(holder: dict[str, object]) -> str:
    if not holder:
        return "another process"
    return "process {pid} on {host}, since {since}".format(
        **{key: holder.get(key, "?") for key in ("pid", "host", "since")}
    )
