"""What a job does on the node of a cluster: share its GPUs with others, and return to the queue."""

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

#: Locks on GPUs that this process holds until it ends, whatever ends it.
_HELD: list[int] = []


def visible_gpus() -> list[str]:
    """The GPUs that this process may use, as CUDA_VISIBLE_DEVICES names them; often none.

    Where that variable is not set, they are the identifiers that the driver's ``nvidia-smi`` lists.
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
    """Keep this process to one GPU that fewer than ``share`` others use; wait while all are full.

    Of several the one with the fewest users is taken. The choice is a lock that ends with this
    process. It must be made before PyTorch first looks at the GPUs.

    Args:
        share: how many processes may use a GPU at once.
        folder: of the locks, the same for all who share; by default one of this node, this user
            and, where jobs count the GPUs that they were given from 0, this job.
        sleep: waits for so many seconds.

    Returns:
        The GPU, to which ``CUDA_VISIBLE_DEVICES`` is set now; None without one.
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
    """Put the Slurm job of this process back into the queue, if it is one that still runs.

    One that its user cancelled is not running any more for Slurm, and stays cancelled. Where Slurm
    refuses, the job ends as it would have; why is printed.
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
