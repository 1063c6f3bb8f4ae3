"""A node of a Slurm cluster that is lost while a fit runs on it."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess

from world import ROOT, Row, SkippedError, Start, World

CLUSTER = ROOT / "tests/slurm/cluster.sh"
PROFILE = (
    "--workflow-profile",
    str(ROOT / "workflow/profiles/slurm"),
    "--slurm-no-account",
    "--slurm-init-seconds-before-status-checks=1",
    "--seconds-between-status-checks=1",
    "--latency-wait=5",
    "--slurm-logdir=logs/slurm",
)


def lost(world: World) -> Row:
    """A node is lost under Slurm: it goes down with all that runs on it, and comes back."""
    row = Row(
        "a node lost under Slurm",
        "There is no message. The queue, or a retry of Snakemake, runs the job again.",
    )
    if os.geteuid() != 0 or not shutil.which("slurmctld"):
        raise SkippedError("needs root and slurm-wlm with munge")
    if subprocess.run(["pgrep", "-x", "slurmctld"], capture_output=True).returncode == 0:
        raise SkippedError("a Slurm runs here already")
    subprocess.run([CLUSTER, "up"], check=True, capture_output=True)
    try:
        folder = world.new("node")
        start = Start(folder, *PROFILE)
        fit = start.until(lambda: next(iter(_fits(folder)), None))
        problems = ["no fit was caught"] if fit is None else []
        if fit is not None:
            _state("down")
            # What runs on a node that is lost is lost with it.
            for pid in _fits(folder):
                os.kill(pid, signal.SIGKILL)
            _state("resume")
        code = start.wait()
        problems += world.differences(folder) if code == 0 else world.finishes(folder)
        row.count(1, problems)
    finally:
        subprocess.run([CLUSTER, "down"], check=True, capture_output=True)
    return row


def _state(state: str) -> None:
    node = f"nodename={socket.gethostname().split('.')[0]}"
    command = ["scontrol", "update", node, f"state={state}"]
    command += ["reason=lost"] if state == "down" else []
    # A node that has come back by itself cannot be resumed.
    subprocess.run(command, check=state == "down", capture_output=True)


def _fits(folder) -> list[int]:
    """Processes that fit a run of this folder; the cluster started them, not Snakemake."""
    import psutil

    found = []
    for process in psutil.process_iter(["cmdline", "cwd"]):
        words = process.info["cmdline"] or []
        if "directrank" in words[:3] and "train" in words and process.info["cwd"] == str(folder):
            found.append(process.pid)
    return found


FAULTS = (lost,)
