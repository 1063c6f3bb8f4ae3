"""Commands in forks of this process, each with its own log, and the end of orphaned processes.

A fork has everything imported already and is still a process of its own: with its own log, memory,
processor time and exit status, so that a crash ends one command only.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import NoReturn

from directrank.system.usage import write_usage

#: The variable that names the processes that this one serves; the workflow sets it.
PARENTS = "DIRECTRANK_PARENT"

#: Whether libraries work in a fork of a process that has imported them, as long as it has started
#: no threads. Elsewhere a fork starts anew.
WORKS_IN_FORKS = sys.platform == "linux"

#: The signals that are passed on to the forks.
FORWARDED = (signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP)

#: Seconds between two looks at other processes on systems that do not tell of their end.
POLLED = 1.0


@dataclass(frozen=True)
class Command:
    """A command line of directrank, and the file for all that it prints."""

    name: str
    arguments: Sequence[object]
    log: Path

    @property
    def usage(self) -> Path:
        """The file for the resources that it uses, beside the log."""
        return self.log.with_name(f"{self.log.stem}.benchmark.tsv")


@dataclass(frozen=True)
class Ended:
    """A command that has ended: its status, or the negative number of the signal that killed it,
    and the seconds that it took."""

    command: Command
    status: int
    seconds: float

    @property
    def how(self) -> str:
        """The status in words, such as ``was killed by SIGKILL``."""
        if self.status < 0:
            return f"was killed by {signal.Signals(-self.status).name}"
        return f"failed with exit status {self.status}"


class Forks:
    """Runs commands in forks of this process, as :meth:`run`.

    Args:
        main: runs the arguments of a command and returns its exit status.
        at_once: the number of forks at a time.
    """

    def __init__(self, main: Callable[[Sequence[str]], int], at_once: int = 1) -> None:
        self._main = main
        self._at_once = at_once
        self._running: dict[int, tuple[Command, float]] = {}
        #: Why no more commands are begun, in words; None if nothing has asked for an end.
        self.stopped: str | None = None

    def run(self, commands: Iterable[Command]) -> Iterator[Ended]:
        """Run commands in their order; yield each when it has ended.

        A signal that asks for an end is passed on to the commands that run, and no more are begun.
        So it is when a process that this one serves has ended, which they notice by themselves.
        """
        signals = (*FORWARDED, signal.SIGINT)
        old = {number: signal.signal(number, self._forward_signal) for number in signals}
        try:
            waiting = iter(commands)
            while True:
                while len(self._running) < self._at_once and not self._asked_to_end():
                    command = next(waiting, None)
                    if command is None or not self._begin(command):
                        break
                if not self._running:
                    return
                pid, status, usage = os.wait4(-1, 0)
                if pid in self._running:
                    command, began = self._running.pop(pid)
                    seconds = time.monotonic() - began
                    with contextlib.suppress(OSError):  # a full disk has already been reported
                        write_usage(command.usage, seconds, usage)
                    yield Ended(command, os.waitstatus_to_exitcode(status), seconds)
        finally:
            for number, handler in old.items():
                signal.signal(number, handler)

    def _forward_signal(self, number: int, frame: FrameType | None) -> None:
        self.stopped = self.stopped or signal.Signals(number).name
        if number in FORWARDED:  # an interrupt of a terminal reaches the forks anyway
            for pid in self._running:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)

    def _asked_to_end(self) -> bool:
        if self.stopped is None and any(map(_has_ended, _parents())):
            self.stopped = "the end of the workflow"
        return self.stopped is not None

    def _begin(self, command: Command) -> bool:
        """Fork; False if a signal has asked for an end by now."""
        sys.stdout.flush()
        sys.stderr.flush()
        # From here a signal waits until the fork is known here, and has its own handlers there.
        old = signal.pthread_sigmask(signal.SIG_BLOCK, FORWARDED)
        try:
            if self.stopped is not None:
                return False
            pid = os.fork()
            if pid == 0:
                self._be(command, old)
            self._running[pid] = (command, time.monotonic())
            return True
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, old)

    def _be(self, command: Command, mask: set[int | signal.Signals]) -> NoReturn:
        """Be the command, in a fork."""
        status = 1
        try:
            for number in FORWARDED:
                signal.signal(number, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            command.log.parent.mkdir(parents=True, exist_ok=True)
            command.usage.unlink(missing_ok=True)
            log = os.open(command.log, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o666)
            os.dup2(log, 1)
            os.dup2(log, 2)
            os.close(log)
            os.environ[PARENTS] = f"{os.environ.get(PARENTS, '')} {os.getppid()}"
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            arguments = [str(argument) for argument in command.arguments]
            if not WORKS_IN_FORKS:
                os.execv(sys.executable, [sys.executable, "-m", "directrank", *arguments])
            status = self._main(arguments)
        except BaseException:
            traceback.print_exc()
        finally:
            # Not as Python ends: a fork would copy all that its parent has made, to destroy it.
            for number in FORWARDED:
                signal.signal(number, signal.SIG_IGN)
            with contextlib.suppress(OSError):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(status)


def end_with_parents() -> None:
    """Send SIGTERM to this process once one that :data:`PARENTS` names has ended.

    A fit then saves its state and stops, so it does not compete with a workflow that is started
    again. If the variable is not set, nothing happens.
    """
    watched = _parents()
    if watched:
        threading.Thread(target=_end_after, args=(watched,), daemon=True).start()


def _parents() -> list[int]:
    return [int(word) for word in os.environ.get(PARENTS, "").split() if word.isdecimal()]


def _has_ended(pid: int) -> bool:
    return _first_end([pid], wait=False)


def _end_after(pids: Sequence[int]) -> None:
    _first_end(pids, wait=True)
    os.kill(os.getpid(), signal.SIGTERM)


def _is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:  # it is another user's
        pass
    return False


def _first_end(pids: Sequence[int], wait: bool) -> bool:
    """Whether a process has ended; with ``wait``, once one has."""
    if not hasattr(os, "pidfd_open"):  # macOS, and Linux before 5.3
        while not any(map(_is_gone, pids)):
            if not wait:
                return False
            time.sleep(POLLED)
        return True
    poll = select.poll()
    descriptors = []
    try:
        for pid in pids:
            descriptors.append(os.pidfd_open(pid))
            poll.register(descriptors[-1], select.POLLIN)
        return bool(poll.poll(None if wait else 0))
    except ProcessLookupError:
        return True
    finally:
        for descriptor in descriptors:
            os.close(descriptor)
