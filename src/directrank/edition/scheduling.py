"""The order in which Snakemake's scheduler starts jobs, and how often it looks for ready jobs."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

#: The priority of every job that is not a fit: it takes seconds, and others may wait for it.
FIRST = 1e9


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


def longest_first(dag: Any, runs: Mapping[str, float]) -> None:
    """Start the longest fits first, so that no core idles while the last of them finishes.

    Priorities that a user has set are kept.

    Args:
        dag: a :class:`snakemake.dag.DAG` of version 9.
        runs: the predicted seconds of fits, by run.
    """
    for job in dag.needrun_jobs(exclude_finished=False):
        if dag._priority[job] == 0:
            fit = job.rule.name == "fit"
            dag._priority[job] = runs.get(job.wildcards.run, 0.0) if fit else FIRST
