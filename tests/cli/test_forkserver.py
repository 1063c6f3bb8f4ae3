"""Jobs in forks of a process that has imported everything are like jobs of their own."""

import os
import resource
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from directrank.cli import forkserver, job

JOB = [sys.executable, "-IS", job.__file__]

#: Jobs run their first argument as Python; nothing is imported beforehand.
SERVER = """
import socket, sys
from directrank.cli import forkserver

def main():
    code, sys.argv = sys.argv[1], sys.argv[1:]
    exec(code)
    sys.exit(0)

forkserver.main, forkserver._prepare = main, lambda: None
forkserver.serve(socket.socket(fileno=int(sys.argv[1])))
"""

pytestmark = pytest.mark.skipif(not forkserver.AVAILABLE, reason="only on Linux")


def server_of(path, parent, *command):
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(path))
    listening.listen()
    return subprocess.Popen(
        [sys.executable, *command, str(listening.fileno())],
        env={**os.environ, "DIRECTRANK_PARENT": str(parent)},
        pass_fds=[listening.fileno()],
    )


@pytest.fixture
def forks(tmp_path):
    """The environment of jobs that reach a server, and the server."""
    folder = tmp_path / "forks"
    folder.mkdir()
    server = server_of(folder / "socket", os.getpid(), "-c", SERVER)
    yield {**os.environ, job.VARIABLE: str(folder / "socket")}, server
    server.kill()
    server.wait()


def begun(environment, code, *arguments, **options):
    return subprocess.Popen(
        [*JOB, code, *arguments], env=environment, stdout=subprocess.PIPE, text=True, **options
    )


def gone(pid, seconds=10):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.02)
    return False


def test_a_job_has_the_folder_environment_arguments_and_streams_of_whoever_asks(forks, tmp_path):
    environment, server = forks
    code = "import os; print(os.getppid(), os.getcwd(), os.environ['OWN'], sys.argv[1:], input())"
    asking = {**environment, "OWN": "a b"}
    process = begun(asking, code, "--x", "ü", cwd=tmp_path, stdin=subprocess.PIPE)
    out, _ = process.communicate("a line\n", timeout=20)
    assert process.returncode == 0
    assert out == f"{server.pid} {tmp_path} a b ['--x', 'ü'] a line\n"


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("sys.exit(3)", 3),
        ("raise ValueError", 1),
        ("import os; os.kill(os.getpid(), 9)", -9),
    ],
)
def test_a_job_ends_as_its_fork_ends_and_the_server_goes_on(forks, code, status):
    environment, _ = forks
    assert subprocess.run([*JOB, code], env=environment, timeout=20).returncode == status
    assert subprocess.run([*JOB, "pass"], env=environment, timeout=20).returncode == 0


def test_a_fork_ends_with_what_is_registered_for_its_exit_and_with_its_streams_written(forks):
    environment, _ = forks
    code = "import atexit; atexit.register(print, 'last', end=''); print('first')"
    out, _ = begun(environment, code).communicate(timeout=20)
    assert out == "first\nlast"


def test_jobs_run_side_by_side(forks, tmp_path):
    environment, _ = forks
    waiting = (
        "import time, pathlib; mine, other = map(pathlib.Path, sys.argv[1:]); mine.touch()\n"
        "while not other.exists(): time.sleep(0.01)"
    )
    one, two = str(tmp_path / "one"), str(tmp_path / "two")
    both = [begun(environment, waiting, one, two), begun(environment, waiting, two, one)]
    assert [process.wait(20) for process in both] == [0, 0]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1, signal.SIGINT])
def test_a_signal_reaches_the_fork(forks, number):
    environment, _ = forks
    code = (
        "import signal, time\n"
        "def saved(number, _): print('saved', number, flush=True); sys.exit(7)\n"
        f"signal.signal({int(number)}, saved); print('ready', flush=True)\n"
        # A signal just before a long sleep would be handled only after it.
        "for _ in range(600): time.sleep(0.1)"
    )
    process = begun(environment, code)
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    assert process.communicate(timeout=20)[0] == f"saved {int(number)}\n"
    assert process.returncode == 7


SLEEPING = "import os, time; print(os.getpid(), flush=True); time.sleep(60)"


def test_a_job_that_is_killed_takes_its_fork_with_it(forks):
    environment, _ = forks
    process = begun(environment, SLEEPING)
    fork = int(process.stdout.readline())
    assert fork != process.pid
    process.kill()
    process.wait()
    assert gone(fork)


def test_a_server_that_is_killed_takes_its_jobs_with_it_and_they_say_so(forks):
    environment, server = forks
    process = begun(environment, SLEEPING, stderr=subprocess.PIPE)
    fork = int(process.stdout.readline())
    server.kill()
    assert "the process that started this job was killed" in process.communicate(timeout=20)[1]
    assert process.returncode == 1
    assert gone(fork)


def test_a_job_whose_server_is_killed_before_it_can_answer_runs_once(tmp_path):
    code = """
import os
fork = os.fork

def fork_and_die():
    pid = fork()
    if pid:
        os.kill(os.getpid(), 9)
    return pid

os.fork = fork_and_die
"""
    folder = tmp_path / "forks"
    folder.mkdir()
    server = server_of(folder / "socket", os.getpid(), "-c", code + SERVER)
    environment = {**os.environ, job.VARIABLE: str(folder / "socket")}
    written = tmp_path / "written"
    process = begun(environment, f"open({str(written)!r}, 'x')", stderr=subprocess.PIPE)
    # It runs as a process of its own, to which that code is not a command.
    assert "invalid choice" in process.communicate(timeout=60)[1]
    assert server.wait(20) == -signal.SIGKILL
    assert not written.exists()


def test_the_server_ends_with_its_parent_and_removes_its_folder(tmp_path):
    parent = subprocess.Popen(["sleep", "60"])
    folder = tmp_path / "forks"
    folder.mkdir()
    server = server_of(folder / "socket", parent.pid, "-c", SERVER)
    parent.kill()
    parent.wait()
    assert server.wait(20) == 0
    assert not folder.exists()


def test_limits_of_whoever_asks_hold_for_the_fork(forks):
    environment, _ = forks
    code = "import resource; print(resource.getrlimit(resource.RLIMIT_NOFILE))"

    def limited():
        resource.setrlimit(resource.RLIMIT_NOFILE, (100, 200))

    process = begun(environment, code, preexec_fn=limited)
    assert process.communicate(timeout=20)[0] == "(100, 200)\n"


@pytest.mark.parametrize("change", [{"MKL_CBWR": "COMPATIBLE"}, {job.VARIABLE: "/none"}])
def test_a_job_that_needs_other_libraries_or_finds_no_server_is_a_process_of_its_own(forks, change):
    environment, _ = forks
    process = begun({**environment, **change}, "--version")
    assert process.communicate(timeout=60)[0].startswith("directrank ")
    assert process.returncode == 0


def test_a_job_with_limited_address_space_is_a_process_of_its_own(forks):
    environment, _ = forks

    def limited():
        resource.setrlimit(resource.RLIMIT_AS, (2**40, 2**40))

    process = begun(environment, "--version", preexec_fn=limited)
    assert process.communicate(timeout=60)[0].startswith("directrank ")
    assert process.returncode == 0


def test_a_request_that_stalls_or_makes_no_sense_does_not_hold_up_others(forks, monkeypatch):
    environment, _ = forks
    for sent in (b"", b".", b"no fork\n"):
        client = socket.socket(socket.AF_UNIX)
        client.connect(environment[job.VARIABLE])
        if sent:
            client.sendall(sent)
        client.close()
    assert subprocess.run([*JOB, "pass"], env=environment, timeout=20).returncode == 0


def test_the_workflows_server_is_ready_for_every_command_and_has_no_threads_that_a_fork_lacks():
    """Another thread's locks would never be opened; jemalloc, Arrow's, sees to its own."""
    path = forkserver.socket_path()
    variables = {"PYTHONPATH": str(Path(forkserver.__file__).parents[2])}
    variables["DIRECTRANK_PARENT"] = str(os.getpid())
    server = forkserver.start(sys.executable, path, variables)
    try:
        environment = {**os.environ, **variables, job.VARIABLE: path}
        done = subprocess.run(
            [*JOB, "fit", "--help"], env=environment, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0
        assert "checkpoint" in done.stdout
        names = [task.read_text() for task in Path(f"/proc/{server.pid}/task").glob("*/comm")]
        assert [name for name in names if name != "jemalloc_bg_thd\n"] == names[:1]
    finally:
        server.kill()
        server.wait()
