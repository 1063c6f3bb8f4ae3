"""The fork server of a workflow: a process that has imported everything, whose forks run jobs.

A job of the workflow is a process of its own, and importing PyTorch or pandas takes it longer than
many a figure takes to be drawn. A fork has everything imported already, and is a process of its own
all the same: with its own log, memory, signals and end. Snakemake starts the server with the
workflow; ``cli/job.py`` asks it for a fork and stands for the job: it passes signals on and ends as
the job ends. When it is killed, so is the job. Where there is no server, on another node for
instance, jobs start as usual.

Only on Linux: elsewhere libraries do not survive a fork.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import secrets
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from importlib import import_module
from types import SimpleNamespace
from typing import Any, NoReturn

from directrank.__main__ import main
from directrank.cli import COMMANDS
from directrank.cli.collection import uncollected
from directrank.cli.job import FORWARDED, VARIABLE
from directrank.cli.parent import VARIABLE as PARENT
from directrank.system.arithmetic import PORTABLE, PORTABLE_X86

#: What fits and products have in common. Nothing here may start threads.
MODULES = (
    *(f"directrank.cli.{command}" for command in COMMANDS),
    "directrank.data.prepare",
    "directrank.data.staging",
    "directrank.learners.neural.fit",
    "directrank.models.feed_forward",
    "directrank.papers.shared.evidence",
    "directrank.papers.shared.judging",
    "directrank.papers.shared.summary",
    "directrank.report.build",
    "directrank.study.run",
    "lightgbm",
    "matplotlib.backends.backend_agg",
    "matplotlib.backends.backend_pdf",
    "matplotlib.backends.backend_svg",
    "matplotlib.pyplot",
    "pyarrow.dataset",
    "pyarrow.parquet",
    "scipy.stats",
    "xgboost",
)

#: Seconds in which a request must be there, so that one that stalls does not hold up the others.
PATIENCE = 10.0

#: Bytes that the path of a socket may have, on Linux.
LONGEST_PATH = 107

#: Variables that libraries read when they are loaded: a fork cannot change them any more.
LOADED_WITH = ("PYTHONPATH", "PYTHONHASHSEED", *PORTABLE, *PORTABLE_X86)


#: Whether this system has what the server needs.
AVAILABLE = sys.platform == "linux" and hasattr(os, "pidfd_open")


def socket_path() -> str:
    """A path for a server's socket that nobody else knows; nothing is made."""
    return os.path.join(tempfile.gettempdir(), f"directrank-{secrets.token_hex(8)}", "forks")


def start(python: str, path: str, environment: Mapping[str, str]) -> subprocess.Popen[bytes] | None:
    """Start the server beside this process, with which it ends. Jobs wait until it is ready.

    Args:
        python: the interpreter of jobs.
        path: where jobs reach it (:func:`socket_path`).
        environment: what jobs are started with, beyond this process's own.

    Returns:
        The server; None where there cannot be one.
    """
    if not AVAILABLE or len(os.fsencode(path)) > LONGEST_PATH:
        return None
    os.mkdir(os.path.dirname(path), 0o700)
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(path)
    listening.listen(1024)
    threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    server = subprocess.Popen(
        [python, "-m", "directrank.cli.forkserver", str(listening.fileno())],
        env=os.environ | dict(environment) | threads,
        cwd="/",  # so that it keeps no disk from being unmounted once the workflow has ended
        stdin=subprocess.DEVNULL,
        pass_fds=[listening.fileno()],
        start_new_session=True,  # what a terminal interrupts are the jobs
    )
    listening.close()
    return server


def serve(listening: socket.socket) -> None:
    """Import, then fork a job for whoever connects to the socket, until the parent ends."""
    try:
        parent = os.pidfd_open(int(os.environ[PARENT]))
    except ProcessLookupError:  # it has ended meanwhile
        _remove(listening)
        return
    _prepare()
    with selectors.DefaultSelector() as events:
        events.register(parent, selectors.EVENT_READ)
        events.register(listening, selectors.EVENT_READ)
        while True:
            for key, _ in events.select():
                if key.fd == parent:
                    _remove(listening)
                    return
                if key.fileobj is listening:
                    _accept(listening, events)
                elif not key.data.done:
                    _end(key.data, events)


def _remove(listening: socket.socket) -> None:
    shutil.rmtree(os.path.dirname(listening.getsockname()))


def _prepare() -> None:
    """Do once what every job would do first."""
    with uncollected():
        for module in MODULES:
            import_module(module)
        import torch

        from directrank import losses

        # The first compiled loop of a process sets up the compiler.
        losses.listnet(torch.zeros(1, 2), torch.ones(1, 2))


def _accept(listening: socket.socket, events: selectors.BaseSelector) -> None:
    """Fork the job that a new connection asks for."""
    connection, _ = listening.accept()
    connection.settimeout(PATIENCE)
    try:
        _, descriptors, _, _ = socket.recv_fds(connection, 1, 3)
        request = json.loads(connection.makefile().readline())
    except (OSError, ValueError):  # whoever asked has gone
        connection.close()
        return
    pid = _forked(request)
    if pid == 0:
        _leave(events, listening, connection)
        _run(request, descriptors)
    for descriptor in descriptors:
        os.close(descriptor)
    if pid is None:
        connection.close()  # and whoever asked starts the job as usual
        return
    job = SimpleNamespace(pid=pid, ended=os.pidfd_open(pid), connection=connection, done=False)
    events.register(job.ended, selectors.EVENT_READ, job)
    events.register(connection, selectors.EVENT_READ, job)
    with contextlib.suppress(OSError):  # it has gone, which the selector tells too
        connection.sendall(f"{pid}\n".encode())


def _forked(request: Mapping[str, Any]) -> int | None:
    """As :func:`os.fork`; None where a fork cannot be the job that is asked for.

    That is where the job needs other libraries, where its address space is limited, which counts
    all that the server has mapped, and where memory is short.
    """
    environment, limits = request["environment"], request["limits"]
    if any(environment.get(name) != os.environ.get(name) for name in LOADED_WITH):
        return None
    if limits[str(resource.RLIMIT_AS)][0] != resource.RLIM_INFINITY:
        return None
    try:
        return os.fork()
    except OSError:
        return None


def _end(job: Any, events: selectors.BaseSelector) -> None:
    """See a job off that has ended, or that nobody waits for any more: this one is killed."""
    job.done = True
    events.unregister(job.connection)
    events.unregister(job.ended)
    if not _has_ended(job.pid):
        os.kill(job.pid, signal.SIGKILL)
    _, status = os.waitpid(job.pid, 0)
    with contextlib.suppress(OSError):
        job.connection.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())
    job.connection.close()
    os.close(job.ended)


def _has_ended(pid: int) -> bool:
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _leave(
    events: selectors.BaseSelector, listening: socket.socket, connection: socket.socket
) -> None:
    """Close what belongs to the server: a socket is closed once nobody has it open any more."""
    for job in {id(key.data): key.data for key in events.get_map().values() if key.data}.values():
        job.connection.close()
    listening.close()
    connection.close()
    events.close()


def _run(request: Mapping[str, Any], descriptors: list[int]) -> NoReturn:
    """Be the job, as if it had been started by itself."""
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
        os.close(descriptor)
    for number in FORWARDED:
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, limits in request["limits"].items():
        resource.setrlimit(int(number), limits)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    os.environ.pop(VARIABLE, None)
    sys.argv = ["directrank", *request["arguments"]]
    main()


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
