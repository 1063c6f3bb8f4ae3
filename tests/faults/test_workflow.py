"""Two Snakemakes in one folder, and one that was killed: what a user meets at the next start."""

import subprocess
import sys

import pytest

from workflow_runs import output_of, snakemake

pytestmark = pytest.mark.slow

PLAN = "results/tiny/plan/bruch2019/figure1.json"
HOLD = """
import sys, time
from directrank.system.locks import HeldLocks
HeldLocks(sys.argv[1], ["edition-tiny"])
print("held", flush=True)
time.sleep(600)
"""


@pytest.fixture
def other(tmp_path):
    """A process that makes the tiny edition in the same folder."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path / ".snakemake/claims")],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def test_the_second_is_refused_and_what_a_killed_one_left_is_no_hindrance(other, tmp_path):
    process = snakemake(tmp_path, PLAN)
    assert process.returncode != 0
    said = output_of(process)
    assert f"'edition-tiny' is being worked on in this folder by process {other.pid}" in said
    assert "remedy: wait until it has ended" in said
    assert "Traceback" not in said
    assert not (tmp_path / PLAN).exists()
    assert snakemake(tmp_path, PLAN, "-n").returncode == 0  # planning disturbs nobody

    other.kill()
    other.wait()
    # Snakemake's own locks, as a kill leaves them.
    locks = tmp_path / ".snakemake/locks"
    locks.mkdir(exist_ok=True)
    (locks / "0.output.lock").write_text(f"{PLAN}\n")
    process = snakemake(tmp_path, PLAN)
    assert process.returncode == 0, output_of(process)
    assert (tmp_path / PLAN).exists()
