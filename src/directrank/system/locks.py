"""Claims of a process on names: they end with the process, whatever ends it.

A claim is a lock of the system (``flock``) on a file named after what is claimed. Nothing is left
to be removed after a kill. The file says who holds it, for the message to whoever comes second.
"""

from __future__ import annotations

import atexit
import contextlib
import errno
import fcntl
import json
import os
import platform
import time
from collections.abc import Iterable
from pathlib import Path

from directrank.system.errors import ConfigError

#: What flock says where a file system has no locks.
_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP)


class Claim:
    """Names that this process works on, until :meth:`release` or its end.

    Args:
        folder: where the lock files lie; made if it is not there.
        exclusive: names on which nobody else may work meanwhile.
        shared: names that others may share, but nobody may claim for himself.

    Raises:
        ConfigError: somebody else works on one of them, or the file system has no locks. Nothing
            is claimed then.
    """

    def __init__(
        self, folder: str | Path, exclusive: Iterable[str], shared: Iterable[str] = ()
    ) -> None:
        self._folder = Path(folder)
        self._folder.mkdir(parents=True, exist_ok=True)
        self._held: list[tuple[int, bool]] = []
        wanted = dict.fromkeys(shared, False) | dict.fromkeys(exclusive, True)
        try:
            # In one order, so that two who want the same names do not refuse each other.
            for name in sorted(wanted):
                self._take(name, wanted[name])
        except BaseException:
            self.release()
            raise
        atexit.register(self.release)

    def release(self) -> None:
        """Give everything back."""
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
            kind = fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
            # Not every file system shares its locks between machines: one that did not give its
            # claim back on another machine may still be at work there.
            elsewhere = _holder(path) if exclusive else {}
            if elsewhere and elsewhere.get("host") != platform.node():
                raise ConfigError(
                    f"'{name}' was last worked on in this folder by {_who(elsewhere)}, which has "
                    "not ended in order",
                    f"if it no longer runs there, remove {path} and start again",
                )
        except BlockingIOError:
            os.close(descriptor)
            raise ConfigError(
                f"'{name}' is being worked on in this folder by {_who(_holder(path))}",
                "wait until that has ended, or end it; one that has died leaves nothing to remove",
            ) from None
        except OSError as error:
            os.close(descriptor)
            if error.errno not in _NO_LOCKS:
                raise
            raise ConfigError(
                f"the file system of {self._folder.absolute()} has no locks ({error.strerror})",
                "work on one that has (Lustre: mount option flock)",
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
    """Who wrote himself into a lock file; empty where nobody did."""
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
