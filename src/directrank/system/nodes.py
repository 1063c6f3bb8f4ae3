"""Jobs on the nodes of a cluster: share GPUs with other jobs, and return to the queue."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from directrank.system.locks import lock

#: Locks on GPUs that this process holds until it ends, however it ends.
_HELD: list[int] = []


def visible_gpus() -> list[str]:
    """The GPUs that this process may use, as CUDA_VISIBLE_DEVICES names them; often none.

    If that variable is not set, they are the identifiers that the driver's ``nvidia-smi`` lists.
    """
    if "CUDA_VISIBLE_DEVICES" in os.environ:
        named = os.environ["CUDA_VISIBLE_DEVICES"].split(",")
        return [name.strip() for name in named if name.strip() not in ("", "-1", "NoDevFiles")]
    if shutil.which("nvidia-smi") is None:
        return []
    listed = subprocess.run(
        ["nvidia-smi", "--query-gpu=uuid", "--format=csv,noheader"], capture_output=True, text=True
    )
    return listed.stdout.split() if listed.returncode == 0 else []


def take_gpu(
    share: int, folder: str | Path | None = None, sleep: Callable[[float], None] = time.sleep
) -> str | None:
    """Restrict this process to a GPU that fewer than ``share`` others use; wait if all are full.

    Of several, the GPU with the fewest users is chosen. The choice is held by a lock that ends with
    this process. Call this before PyTorch first accesses the GPUs.

    Args:
        share: how many processes may use a GPU at once.
        folder: the folder of the locks, the same for all processes that share GPUs; by default one
            for this node, this user and, where jobs number the GPUs that they were given from 0,
            this job.
        sleep: a function that waits for a number of seconds.

    Returns:
        The GPU, to which ``CUDA_VISIBLE_DEVICES`` is now set; None if there is no GPU.
    """
    gpus = visible_gpus()
    if not gpus:
        return None
    if folder is None:
        job = os.environ.get("SLURM_JOB_ID", "all")
        folder = Path(tempfile.gettempdir()) / f"directrank-gpus-{os.getuid()}" / job
    Path(folder).mkdir(parents=True, exist_ok=True)
    while True:
        for place in range(share):
            for gpu in gpus:
                if _locked(Path(folder) / f"{gpu.replace('/', '-')}.{place}"):
                    os.environ["CUDA_VISIBLE_DEVICES"] = gpu
                    return gpu
        sleep(1)


def requeue() -> None:
    """Put the Slurm job of this process back into the queue, if Slurm says that it is running.

    A job that its user cancelled is no longer running, and stays cancelled. If Slurm refuses, its
    reason is printed, and the job ends as it would have anyway.
    """
    job = os.environ.get("SLURM_JOB_ID")
    if job is None:
        return
    with contextlib.suppress(OSError):
        state = _output("squeue", "--noheader", "--jobs", job, "--format", "%T")
        if state.strip() != "RUNNING":
            return
        said = _output("scontrol", "requeue", job)
        print(said or f"job {job} is back in the queue", file=sys.stderr, flush=True)


def _output(*command: str) -> str:
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.stdout


def _locked(path: Path) -> bool:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    if lock(descriptor, wait=False):
        _HELD.append(descriptor)
        return True
    os.close(descriptor)
    return False
