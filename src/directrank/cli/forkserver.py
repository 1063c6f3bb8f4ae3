"""The fork server of a workflow: a process that has imported everything, whose forks run jobs.

Each job of the workflow is a process of its own, and importing PyTorch or pandas takes longer than
drawing many a figure. A fork has everything imported already, and is still a process of its own,
with its own log, memory, signals and exit status. Snakemake starts the server with the workflow;
``cli/job.py`` asks it for a fork and acts as the job: it forwards signals and exits with the job's
status. If it is killed, so is the job. Where there is no server, on another node for instance, jobs
start as usual.

The server runs on Linux only, because libraries do not survive a fork elsewhere.
"""

from __future__ import annotations

import atexit
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
import threading
from collections.abc import Mapping
from importlib import import_module
from types import SimpleNamespace
from typing import Any, NoReturn, cast

from directrank.__main__ import main
from directrank.cli import COMMANDS
from directrank.cli.collection import uncollected
from directrank.cli.job import FORWARDED, VARIABLE
from directrank.cli.parent import VARIABLE as PARENT
from directrank.system.arithmetic import PORTABLE, PORTABLE_X86

#: The imports that fits and products share. None of these may start threads.
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

#: Seconds within which a request must arrive, so that one that stalls does not delay the others.
PATIENCE = 10.0

#: The most bytes that the path of a socket may have on Linux.
LONGEST_PATH = 107

#: Variables that libraries read when they are loaded, which is too late to change in a fork.
LOADED_WITH = ("PYTHONPATH", "PYTHONHASHSEED", *PORTABLE, *PORTABLE_X86)


#: Whether this system supports the server.
AVAILABLE = sys.platform == "linux" and hasattr(os, "pidfd_open")


def socket_path() -> str:
    """An unguessable path for a server's socket; nothing is created."""
    return os.path.join(tempfile.gettempdir(), f"directrank-{secrets.token_hex(8)}", "forks")


def start(python: str, path: str, environment: Mapping[str, str]) -> subprocess.Popen[bytes] | None:
    """Start the server, which ends with this process. Jobs wait until it is ready.

    Args:
        python: the interpreter of jobs.
        path: the socket at which jobs reach it (:func:`socket_path`).
        environment: variables that jobs are given in addition to those of this process.

    Returns:
        The server; None where it is not supported.
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
        cwd="/",  # so that it does not prevent a disk from being unmounted
        stdin=subprocess.DEVNULL,
        pass_fds=[listening.fileno()],
        start_new_session=True,  # a terminal's interrupt is meant for the jobs
    )
    listening.close()
    return server


def serve(listening: socket.socket) -> None:
    """Import everything, then fork a job for each connection until the parent process ends."""
    try:
        parent = os.pidfd_open(int(os.environ[PARENT]))
    except ProcessLookupError:  # it has already ended
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
    """Do once what every job would otherwise do first."""
    with uncollected():
        for module in MODULES:
            import_module(module)
        import torch

        from directrank import losses
        from directrank.study import provenance
        from directrank.system import blas

        # The first compiled loop of a process sets up the compiler.
        losses.listnet(torch.zeros(1, 2), torch.ones(1, 2))
        # What a run's record says of code, versions and libraries.
        provenance.versions()
        blas.libraries()


def _accept(listening: socket.socket, events: selectors.BaseSelector) -> None:
    """Fork the job that a new connection requests."""
    connection, _ = listening.accept()
    connection.settimeout(PATIENCE)
    try:
        _, descriptors, _, _ = socket.recv_fds(connection, 1, 3)
        request = json.loads(connection.makefile().readline())
    except (OSError, ValueError):  # the client has gone
        connection.close()
        return
    told, telling = os.pipe()
    pid = _forked(request)
    if pid == 0:
        os.close(telling)
        if not os.read(told, 1):  # the server was killed, and the client starts the job as usual
            os._exit(1)
        os.close(told)
        _leave(events, listening, connection)
        _run(request, descriptors)
    for descriptor in (*descriptors, told):
        os.close(descriptor)
    if pid is None:
        os.close(telling)
        connection.close()  # and the client starts the job as usual
        return
    job = SimpleNamespace(pid=pid, ended=os.pidfd_open(pid), connection=connection, done=False)
    events.register(job.ended, selectors.EVENT_READ, job)
    events.register(connection, selectors.EVENT_READ, job)
    with contextlib.suppress(OSError):  # the client has gone, which the selector reports as well
        connection.sendall(f"{pid}\n".encode())
    # The fork begins once the client knows of it, so that a job never runs twice.
    with contextlib.suppress(BrokenPipeError):  # it has been killed
        os.write(telling, b".")
    os.close(telling)


def _forked(request: Mapping[str, Any]) -> int | None:
    """As :func:`os.fork`; None where a fork cannot run the requested job.

    A fork cannot run it if the job needs other libraries, if its address space is limited (the
    limit would count everything that the server has mapped), or if memory is short.
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
    """Clean up after a job that has ended; kill one whose client has gone."""
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
    """Close the server's own sockets in a fork: a socket closes once no process has it open."""
    for job in {id(key.data): key.data for key in events.get_map().values() if key.data}.values():
        job.connection.close()
    listening.close()
    connection.close()
    events.close()


def _run(request: Mapping[str, Any], descriptors: list[int]) -> NoReturn:
    """Run the job as if it had been started by itself."""
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
    try:
        main()
    except SystemExit as end:
        _end_at_once(cast(int | None, end.code))


def _end_at_once(code: int | None) -> NoReturn:
    """End this process as ``multiprocessing`` ends its forks: without destroying every object.

    That would take a quarter of a second, because a fork has to copy the memory of the objects that
    the server has made.
    """
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):
            stream.flush()
    os._exit(code or 0)


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
