"""Wall time and queue slots of a study on a described cluster."""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from directrank.system.errors import ConfigError
from directrank.system.schema import check, package_schema, read_yaml


@dataclass(frozen=True)
class Cluster:
    """The resources of a cluster; the attributes are the keys of its YAML file.

    Attributes:
        name: its name in tables.
        device: ``cpu`` or ``cuda``, the device on which fits run.
        nodes: the number of nodes that may be used.
        cores_per_node, gpus_per_node: of each node.
        cores_per_job: the cores that a job takes, which are the threads of the rates.
        jobs_per_gpu: fits that share a GPU.
        parallel_jobs: the number of jobs that the queue runs at once; None means no limit.
        time_limit_hours: the limit per job; a longer job is split and resumes from its checkpoint.
        group_minutes: short jobs are submitted together up to this total; 0 disables grouping.
        wait_minutes: how long a submission waits in the queue.
    """

    name: str
    nodes: int
    device: str = "cpu"
    cores_per_node: int = 1
    gpus_per_node: int = 0
    cores_per_job: int = 1
    jobs_per_gpu: int = 1
    parallel_jobs: int | None = None
    time_limit_hours: float = 24.0
    group_minutes: float = 0.0
    wait_minutes: float = 0.0

    @classmethod
    def read(cls, path: str | Path) -> Cluster:
        """A cluster from its YAML file; raises :class:`ConfigError` if the file is not valid."""
        content: Mapping[str, Any] = read_yaml(path)
        check(content, package_schema("cluster"), str(path))
        result = cls(**content)
        if result.slots < 1:
            raise ConfigError(
                f"{path}: no job fits onto a node",
                "lower cores_per_job, or give nodes GPUs for device: cuda",
            )
        return result

    @property
    def slots(self) -> int:
        """The number of jobs that can run at once."""
        by_cores = self.cores_per_node // self.cores_per_job
        by_gpus = self.gpus_per_node * self.jobs_per_gpu if self.device == "cuda" else by_cores
        slots = self.nodes * min(by_cores, by_gpus)
        return slots if self.parallel_jobs is None else min(slots, self.parallel_jobs)


@dataclass(frozen=True)
class Queue:
    """The predicted course of a study through a cluster's queue.

    Attributes:
        slots: the number of jobs that run at once.
        jobs: submissions; a group counts once, and a job that is split counts once per part.
        cut: the number of runs that exceed the time limit.
        longest_hours: hours of the longest run.
        wall_hours: from the first start to the last end.
        busy: the share of the slots' time that is used.
    """

    slots: int
    jobs: int
    cut: int
    longest_hours: float
    wall_hours: float
    busy: float


def queue(seconds: Sequence[float], cluster: Cluster) -> Queue:
    """Simulate the queue for runs that take ``seconds`` each, longest first.

    >>> queue([3600, 3600, 7200], Cluster("ours", nodes=2)).wall_hours
    2.0

    A run is one process and never spreads over slots; short runs are grouped in the order of their
    duration, and each submission waits :attr:`Cluster.wait_minutes`.
    """
    limit, wait = cluster.time_limit_hours * 3600, cluster.wait_minutes * 60
    runs = sorted(seconds, reverse=True)
    ends = [0.0] * cluster.slots
    submissions = 0
    for job in _grouped(runs, cluster.group_minutes * 60):
        pieces = max(1, math.ceil(job / limit))
        submissions += pieces
        heapq.heapreplace(ends, ends[0] + job + pieces * wait)
    wall = max(ends)
    return Queue(
        slots=cluster.slots,
        jobs=submissions,
        cut=sum(run > limit for run in runs),
        longest_hours=max(runs, default=0.0) / 3600,
        wall_hours=wall / 3600,
        busy=sum(runs) / (wall * cluster.slots) if wall else 0.0,
    )


def _grouped(runs: Sequence[float], most: float) -> list[float]:
    """Seconds of jobs, longest first; runs of similar duration share a job of up to ``most``."""
    jobs: list[float] = []
    for run in runs:
        if run < most and jobs and jobs[-1] + run <= most:
            jobs[-1] += run
        else:
            jobs.append(run)
    return sorted(jobs, reverse=True)
