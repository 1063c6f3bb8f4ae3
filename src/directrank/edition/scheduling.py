"""The order in which Snakemake's scheduler starts jobs, and how often it looks for ready jobs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping
from typing import Any

#: The priority of a job that prepares data, for which most others wait, per thread that it has: two
#: cores are free at once only before jobs with one thread have started.
DATA = 2e9

#: The priority of every other job that is not a fit: it takes seconds, and others may wait for it.
FIRST = 1e9

#: What is added to the priority of the fits behind the figure that is made first.
SOON = 1e6


def keep_one_timer(scheduler: Any) -> None:
    """Make a scheduler wait for its next round with a single timer instead of many.

    Each round of Snakemake's scheduler that finds jobs left starts a timer for another round, and
    each finished job starts a round, so timers accumulate: after some hundred jobs the rounds take
    a third of a core. Their purpose, to start jobs that a rate limit has delayed, needs only one
    timer. It does not keep the process alive.

    Args:
        scheduler: a :class:`snakemake.scheduling.job_scheduler.JobScheduler` of version 9.
    """
    pending = threading.Event()

    def look_again() -> None:
        pending.clear()
        scheduler._open_jobs.release()

    def schedule(delay: float) -> None:
        if pending.is_set():
            return
        pending.set()
        timer = threading.Timer(delay, look_again)
        timer.daemon = True
        timer.start()

    scheduler._schedule_reevalutation = schedule


class Order:
    """Sets the priorities of jobs: data, what takes seconds, some fits, then the longest ones.

    Priorities that a user has set are kept.

    Args:
        dag: a :class:`snakemake.dag.DAG` of version 9.
        soon: returns the runs that are fitted before all others, given the predicted seconds.
    """

    def __init__(self, dag: Any, soon: Callable[[Mapping[str, float]], Collection[str]]) -> None:
        self.dag = dag
        self.soon = soon
        self.jobs = [
            job for job in dag.needrun_jobs(exclude_finished=False) if dag._priority[job] == 0
        ]

    def set(self, seconds: Mapping[str, float]) -> None:
        """Start the longest fits first, so that no core idles while the last of them finishes.

        Args:
            seconds: the predicted seconds of fits, by run; empty before they are known.
        """
        soon = self.soon(seconds)
        for job in self.jobs:
            self.dag._priority[job] = _priority(job, seconds, soon)


def _priority(job: Any, seconds: Mapping[str, float], soon: Collection[str]) -> float:
    if job.rule.name.startswith("prepare"):
        return DATA * job.threads
    if job.rule.name != "fit":
        return FIRST
    run = job.wildcards.run
    return seconds.get(run, 0.0) + SOON * (run in soon)
