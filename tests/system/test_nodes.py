"""What a fit does on a cluster's node: shares GPUs, stages data, goes back into the queue."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from directrank.data import prepared, staging
from directrank.lists.packed import RankedLists
from directrank.system import nodes
from directrank.system.errors import DataError

SPEC = {"fold": None, "filter": {}, "normalisation": {"name": "standardise"}}

TAKE = """
import sys
from directrank.system import nodes
print(nodes.take_gpu({share}, {folder!r}), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def data(tmp_path) -> Path:
    """A small prepared data set."""
    generator = np.random.default_rng(0)

    def lists() -> RankedLists:
        return RankedLists(
            generator.normal(size=(12, 3)).astype(np.float32),
            generator.integers(0, 2, 12).astype(np.float32),
            np.array([0, 5, 12]),
            np.array([1, 2]),
        )

    folder = tmp_path / "shared" / "small"
    splits = {split: lists() for split in prepared.SPLITS}
    prepared.write_prepared(folder, splits, {"name": "s", "origin": "standin", "label_levels": 2})
    return folder


@pytest.fixture
def takers(tmp_path):
    """Starts processes that take a GPU and keep it until they end; what each took."""
    started = []

    def take(share: int, gpus: str) -> tuple[subprocess.Popen, str]:
        process = subprocess.Popen(
            [sys.executable, "-c", TAKE.format(share=share, folder=str(tmp_path / "locks"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "CUDA_VISIBLE_DEVICES": gpus},
        )
        started.append(process)
        return process, process.stdout.readline().strip()

    yield take
    for process in started:
        process.kill()
        process.communicate()


def test_each_process_takes_a_gpu_of_its_own_before_they_share(takers):
    assert [takers(2, "0,1")[1] for _ in range(4)] == ["0", "1", "0", "1"]


def test_whoever_finds_every_gpu_taken_waits_for_one_that_was_killed(takers, tmp_path, monkeypatch):
    first, gpu = takers(1, "GPU-a")
    assert gpu == "GPU-a"
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-a")
    waits = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        first.kill()
        first.wait()

    assert nodes.take_gpu(1, tmp_path / "locks", wait) == "GPU-a"
    assert waits


@pytest.mark.parametrize("named", ["", "-1"])
def test_without_a_gpu_nothing_is_taken(named, tmp_path, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", named)
    assert nodes.take_gpu(1, tmp_path / "locks") is None
    assert not (tmp_path / "locks").exists()


def test_data_are_staged_once_and_are_what_they_were(data, tmp_path):
    found = []
    jobs = [
        threading.Thread(
            target=lambda: found.append(staging.stage_data(data, tmp_path / "node", SPEC))
        )
        for _ in range(4)
    ]
    for job in jobs:
        job.start()
    for job in jobs:
        job.join()
    assert len(found) == 4
    assert len(set(found)) == 1
    assert prepared.read_record(found[0]) == prepared.read_record(data)
    for split in prepared.SPLITS:
        here, there = (prepared.open_dataset(folder / split) for folder in (found[0], data))
        assert np.array_equal(here.features, there.features)
    # The scaled copy was made on the node, and nothing beside the data.
    assert (found[0] / prepared.COPIES).is_dir()
    assert not (data / prepared.COPIES).exists()


def test_a_copy_that_was_damaged_on_the_node_is_made_again(data, tmp_path):
    folder = staging.stage_data(data, tmp_path / "node", SPEC)
    (folder / "store/labels.npy").write_bytes(b"gone")
    assert staging.stage_data(data, tmp_path / "node", SPEC) == folder
    assert (folder / "store/labels.npy").read_bytes() == (data / "store/labels.npy").read_bytes()


def test_a_full_disk_makes_the_run_read_the_shared_data(data, tmp_path, monkeypatch):
    def full(source, target):
        Path(target).write_bytes(b"part")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(shutil, "copyfile", full)
    said = []
    assert staging.stage_data(data, tmp_path / "node", SPEC, said.append) == data
    assert "No space left on device" in said[0]
    assert [path.name for path in (tmp_path / "node").iterdir() if path.is_dir()] == []


def test_staging_something_else_than_prepared_data_is_refused(tmp_path):
    with pytest.raises(DataError, match="not a prepared data set"):
        staging.stage_data(tmp_path, tmp_path / "node", SPEC)


@pytest.mark.parametrize(
    ("state", "asked"), [("RUNNING", True), ("COMPLETING", False), ("CANCELLED", False)]
)
def test_a_job_goes_back_into_the_queue_unless_it_was_cancelled(
    state, asked, tmp_path, monkeypatch
):
    for name, line in (("squeue", f"echo {state}"), ("scontrol", f'echo "$@" > {tmp_path}/asked')):
        (tmp_path / name).write_text(f"#!/bin/sh\n{line}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("SLURM_JOB_ID", "17")
    nodes.requeue()
    assert (tmp_path / "asked").exists() == asked
    if asked:
        assert (tmp_path / "asked").read_text() == "requeue 17\n"
