"""Claims keep two processes apart, and a kill leaves nothing to be removed."""

import json
import os
import platform
import signal
import subprocess
import sys

import pytest

from directrank.system.errors import ConfigError
from directrank.system.locks import HeldLocks

HOLD = """
import sys, time
from directrank.system.locks import HeldLocks
HeldLocks(sys.argv[1], sys.argv[2:3], sys.argv[3:])
print("held", flush=True)
time.sleep(60)
"""


@pytest.fixture
def held(tmp_path):
    """Another process that claims names; it is killed at the end."""
    processes = []

    def hold(*names):
        process = subprocess.Popen(
            [sys.executable, "-c", HOLD, str(tmp_path), *names], stdout=subprocess.PIPE, text=True
        )
        processes.append(process)
        assert process.stdout.readline() == "held\n"
        return process

    yield hold
    for process in processes:
        process.kill()
        process.wait()
        process.stdout.close()


def test_the_second_is_told_who_the_first_is(held, tmp_path):
    first = held("edition")
    with pytest.raises(ConfigError, match=f"'edition' .* by process {first.pid} on ") as error:
        HeldLocks(tmp_path, ["data", "edition"])
    assert "leaves no lock to remove" in str(error.value)
    # Nothing is held of what was asked for together with it.
    held("data")


def test_a_killed_process_holds_nothing(held, tmp_path):
    first = held("edition")
    first.send_signal(signal.SIGKILL)
    first.wait()
    claim = HeldLocks(tmp_path, ["edition"])
    assert json.loads((tmp_path / "edition.lock").read_text())["pid"] == os.getpid()
    claim.release()
    assert (tmp_path / "edition.lock").read_text() == ""


def test_many_may_share_what_nobody_claims_alone(held, tmp_path):
    held("first", "data")
    second = HeldLocks(tmp_path, ["second"], ["data"])
    with pytest.raises(ConfigError, match="'data' is being worked on"):
        HeldLocks(tmp_path, ["data"])
    second.release()


def test_a_claim_from_another_machine_that_was_not_given_back_is_respected(tmp_path):
    lock = tmp_path / "edition.lock"
    lock.write_text(json.dumps({"host": "elsewhere", "pid": 7, "since": "today"}))
    with pytest.raises(ConfigError, match="process 7 on elsewhere, since today") as error:
        HeldLocks(tmp_path, ["edition"])
    assert f"remove {lock}" in str(error.value)
    assert "elsewhere" in lock.read_text()
    lock.write_text(json.dumps({"host": platform.node(), "pid": 7, "since": "today"}))
    HeldLocks(tmp_path, ["edition"]).release()
