"""Run a command of directrank in a fork of the workflow's fork server, or as usual without one.

    python -I -S job.py fit run.json --data … --out …

The rules of the workflow call this file. It imports nothing from the package, so it starts in a
hundredth of a second. See :mod:`directrank.cli.forkserver`.
"""

import contextlib
import json
import os
import resource
import select
import signal
import socket
import sys
from typing import NoReturn

#: The variable that names the fork server's socket; the workflow sets it.
VARIABLE = "DIRECTRANK_FORKSERVER"

#: The signals that are forwarded to the job.
FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP)

#: The resource limits that the job inherits.
LIMITS = (resource.RLIMIT_AS, resource.RLIMIT_CPU, resource.RLIMIT_FSIZE, resource.RLIMIT_NOFILE)


def main() -> int:
    """Run the command of ``sys.argv`` and return its exit status."""
    arguments = sys.argv[1:]
    connection = _connected(os.environ.get(VARIABLE, ""))
    if connection is None:
        _run_here(arguments)
    # Signals are read from a socket, because a handler might run too late while the process waits.
    told, telling = socket.socketpair()
    telling.setblocking(False)
    told.setblocking(False)
    signal.set_wakeup_fd(telling.fileno())
    for known in FORWARDED:
        signal.signal(known, lambda number, _: None)
    request = {
        "arguments": arguments,
        "folder": os.getcwd(),
        "environment": dict(os.environ),
        "limits": {number: resource.getrlimit(number) for number in LIMITS},
    }
    try:
        socket.send_fds(connection, [b"."], [0, 1, 2])
        connection.sendall(json.dumps(request).encode() + b"\n")
        started = _line(connection)
    except OSError:
        started = ""
    if not started:  # the server has gone, or a fork cannot run this job
        for known in FORWARDED:
            signal.signal(known, signal.SIG_DFL)
        _forward(told, os.getpid())
        _run_here(arguments)
    return _watched(connection, int(started), told)


def _connected(path: str) -> socket.socket | None:
    if not path:
        return None
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(path)
    except OSError:
        return None
    return connection


def _run_here(arguments: list[str]) -> NoReturn:
    os.execv(sys.executable, [sys.executable, "-m", "directrank", *arguments])


def _line(connection: socket.socket) -> str:
    """The next line without its newline; empty if there is none."""
    line = b""
    with contextlib.suppress(ConnectionResetError):
        while byte := connection.recv(1):
            if byte == b"\n":
                return line.decode()
            line += byte
    return ""


def _forward(told: socket.socket, job: int) -> None:
    """Send the signals received so far to the process ``job``."""
    with contextlib.suppress(BlockingIOError, ProcessLookupError):
        for number in told.recv(1000):
            os.kill(job, number)


def _watched(connection: socket.socket, job: int, told: socket.socket) -> int:
    """Forward signals to the process ``job`` until it ends, and return its exit status."""
    ready: list[socket.socket] = []
    while connection not in ready:
        ready, _, _ = select.select([connection, told], [], [])
        if told in ready:
            _forward(told, job)
    status = _line(connection)
    if not status:  # the server was killed, so the job's exit status would be lost
        with contextlib.suppress(ProcessLookupError):
            os.kill(job, signal.SIGKILL)
        print("error: the process that started this job was killed", file=sys.stderr)
        return 1
    code = int(status)
    if code < 0:  # the job was ended by a signal; end this process by the same one
        if -code in FORWARDED:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code


if __name__ == "__main__":
    sys.exit(main())
