"""How often Snakemake's scheduler looks for jobs to start."""

from __future__ import annotations

import threading
from typing import Any


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
