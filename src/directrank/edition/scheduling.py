"""In which order Snakemake's scheduler starts jobs, and how often it looks for some to start."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

#: The priority of whatever is no fit: it takes seconds, and fits or readers wait for it.
FIRST = 1e9


def keep_one_timer(scheduler: Any) -> None:
    """Have a scheduler wait for its next look with one timer in the place of many.

    Each round of Snakemake's scheduler that finds jobs left starts a timer for another round, and
    each finished job a round, so that timers add up: after some hundred jobs the rounds take a
    third of a processor. What they are for, jobs that a limit of their rate has held back, one
    timer does as well. It does not keep the process from ending.

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
    """Have the longest fits started first, so that no core waits for one of them at the end.

    Priorities that a user has given stay.

    Args:
        dag: a :class:`snakemake.dag.DAG` of version 9.
        runs: the predicted seconds of fits, by run.
    """
    for job in dag.needrun_jobs(exclude_finished=False):
        if dag._priority[job] == 0:
            fit = job.rule.name == "fit"
            dag._priority[job] = runs.get(job.wildcards.run, 0.0) if fit else FIRST
