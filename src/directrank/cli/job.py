"""Run a command of directrank in a fork of the workflow's fork server, or, without one, as usual.

    python -I -S job.py fit run.json --data … --out …

The rules of the workflow call this file, which imports nothing of the package: it starts in a
hundredth of a second. See :mod:`directrank.cli.forkserver`.
"""

import contextlib
import json
import os
import resource
import signal
import socket
import sys
from typing import IO, NoReturn

#: Names the fork server's socket; the workflow sets it.
VARIABLE = "DIRECTRANK_FORKSERVER"

#: What somebody who waits for a job may tell it.
FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP)

#: What a process may be kept to.
LIMITS = (resource.RLIMIT_AS, resource.RLIMIT_CPU, resource.RLIMIT_FSIZE, resource.RLIMIT_NOFILE)


def main() -> int:
    """Run the command of ``sys.argv`` and return its exit status."""
    arguments = sys.argv[1:]
    connection = _connected(os.environ.get(VARIABLE, ""))
    if connection is None:
        _run_here(arguments)
    told: list[int] = []
    for known in FORWARDED:
        signal.signal(known, lambda number, _: told.append(number))
    request = {
        "arguments": arguments,
        "folder": os.getcwd(),
        "environment": dict(os.environ),
        "limits": {number: resource.getrlimit(number) for number in LIMITS},
    }
    try:
        socket.send_fds(connection, [b"."], [0, 1, 2])
        connection.sendall(json.dumps(request).encode() + b"\n")
        answers = connection.makefile()
        started = answers.readline()
    except OSError:
        started = ""
    if not started:  # the server has gone, or its environment is another
        for known in FORWARDED:
            signal.signal(known, signal.SIG_DFL)
        _run_here(arguments)
    return _watched(answers, int(started), told)


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


def _watched(answers: IO[str], job: int, told: list[int]) -> int:
    """The exit status of the process ``job``, to which signals go on."""

    def forward(number: int, _: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(job, number)

    for known in FORWARDED:
        signal.signal(known, forward)
    for number in told:
        forward(number, None)
    status = answers.readline()
    if not status:  # the server was killed; nobody would know how the job ends
        forward(signal.SIGKILL, None)
        print("error: the process that started this job was killed", file=sys.stderr)
        return 1
    code = int(status)
    if code < 0:  # by a signal, and so is this process
        if -code in FORWARDED:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code


if __name__ == "__main__":
    sys.exit(main())
