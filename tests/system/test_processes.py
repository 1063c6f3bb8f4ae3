"""Commands in forks, and the end of processes whose workflow has died."""

import os
import signal
import subprocess
import sys
import time

import pytest

from directrank.system import processes
from directrank.system.processes import PARENTS, Command, Forks
from directrank.system.usage import read_usage


def commands(folder, *names):
    return [Command(name, [name], folder / f"logs/{name}.log") for name in names]


def uncaptured():
    """Print where a process prints that pytest has not started."""
    sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__


def test_each_command_is_a_process_with_a_log_a_status_and_a_usage_of_its_own(tmp_path):
    def main(arguments):
        uncaptured()
        print("out", *arguments, os.getpid(), flush=True)
        print("err", file=sys.stderr)
        if arguments == ["busy"]:
            began = time.process_time()
            while time.process_time() - began < 0.3:
                pass
        return 0

    ended = list(Forks(main).run(commands(tmp_path, "busy", "idle")))
    assert [(one.command.name, one.status) for one in ended] == [("busy", 0), ("idle", 0)]
    pids = set()
    for one in ended:
        out, name, pid, err = one.command.log.read_text().split()
        assert (out, name, err) == ("out", one.command.name, "err")
        pids.add(pid)
    assert len(pids) == 2
    assert str(os.getpid()) not in pids
    busy, idle = (read_usage(one.command.usage) for one in ended)
    assert busy["cpu_time"] >= 0.3 > idle["cpu_time"]
    assert ended[0].seconds >= 0.3


def test_a_command_that_fails_raises_or_is_killed_does_so_alone(tmp_path):
    def main(arguments):
        uncaptured()
        match arguments:
            case ["fails"]:
                return 2
            case ["raises"]:
                raise ValueError("a fault of the code")
            case ["leaves"]:
                sys.exit(3)
            case ["crashes"]:
                os.kill(os.getpid(), signal.SIGKILL)
        return 0

    forks = Forks(main)
    names = ("fails", "raises", "leaves", "crashes", "works")
    ended = {one.command.name: one for one in forks.run(commands(tmp_path, *names))}
    assert [ended[name].status for name in names] == [2, 1, 1, -signal.SIGKILL, 0]
    assert "a fault of the code" in (tmp_path / "logs/raises.log").read_text()
    assert ended["fails"].how == "failed with exit status 2"
    assert ended["crashes"].how == "was killed by SIGKILL"
    assert forks.stopped is None


def test_several_run_at_once(tmp_path):
    began = time.monotonic()
    forks = Forks(lambda arguments: time.sleep(0.5) or 0, at_once=3)
    assert len(list(forks.run(commands(tmp_path, "a", "b", "c")))) == 3
    assert time.monotonic() - began < 1.2


#: A process that runs two commands, which say when they are told to end, and prints what came.
SERVING = """
import signal, sys, time
from pathlib import Path
from directrank.system.processes import Command, Forks, end_with_parents

def main(arguments):
    end_with_parents()
    told = []
    signal.signal(signal.SIGTERM, lambda number, frame: told.append(number))
    Path(sys.argv[1], "begun").touch()
    for _ in range(400):
        if told:
            print("told")
            return 2
        time.sleep(0.05)
    return 0

forks = Forks(main)
first, second = (Command(name, [name], Path(sys.argv[1], name)) for name in ("first", "second"))
ended = [(one.command.name, one.status) for one in forks.run([first, second])]
print(ended, forks.stopped)
"""


@pytest.fixture(params=["", "import os; del os.pidfd_open"], ids=["Linux", "without descriptors"])
def serving(tmp_path, request):
    """Such a process, once its first command runs, and the process that it serves."""
    served = subprocess.Popen(["sleep", "60"])
    process = subprocess.Popen(
        [sys.executable, "-c", request.param + SERVING, str(tmp_path)],
        env={**os.environ, PARENTS: str(served.pid)},
        stdout=subprocess.PIPE,
        text=True,
    )
    while not (tmp_path / "begun").exists():
        assert process.poll() is None
        time.sleep(0.02)
    yield process, served
    for each in (process, served):
        each.kill()
        each.wait()
    process.stdout.close()


def test_a_process_of_another_user_has_not_ended(monkeypatch):
    monkeypatch.delattr(os, "pidfd_open")

    def kill(pid, number):
        assert (pid, number) == (7, 0)  # it must not be struck
        raise PermissionError

    monkeypatch.setattr(os, "kill", kill)
    assert not processes._has_ended(7)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1])
def test_a_signal_reaches_the_command_that_runs_and_the_next_is_not_begun(
    serving, tmp_path, number
):
    process, _ = serving
    process.send_signal(number)
    status = 2 if number == signal.SIGTERM else -signal.SIGUSR1  # which it does not handle
    assert process.communicate(timeout=30)[0] == f"[('first', {status})] {number.name}\n"
    assert not (tmp_path / "second").exists()


def test_if_the_workflow_dies_the_command_is_told_and_the_next_is_not_begun(serving, tmp_path):
    process, served = serving
    served.kill()
    served.wait()
    assert process.communicate(timeout=30)[0] == "[('first', 2)] the end of the workflow\n"
    assert (tmp_path / "first").read_text() == "told\n"


def test_if_the_process_itself_is_killed_its_command_is_told(serving, tmp_path):
    process, _ = serving
    process.kill()
    process.wait()
    for _ in range(400):
        if (tmp_path / "first").read_text() == "told\n":
            return
        time.sleep(0.05)
    pytest.fail("the command goes on")
