"""The scheduler's timers do not add up."""

import threading
import time
from inspect import signature

from snakemake.scheduling.job_scheduler import JobScheduler

from directrank.edition.scheduling import keep_one_timer


class Scheduler:
    def __init__(self):
        self._open_jobs = threading.Semaphore(0)


def test_many_rounds_share_a_timer_and_the_next_round_has_one_again():
    scheduler = Scheduler()
    keep_one_timer(scheduler)
    before = threading.active_count()
    for _ in range(100):
        scheduler._schedule_reevalutation(0.05)
    assert threading.active_count() == before + 1
    assert scheduler._open_jobs.acquire(timeout=10)
    time.sleep(0.1)
    assert not scheduler._open_jobs.acquire(blocking=False)
    scheduler._schedule_reevalutation(0.05)
    assert scheduler._open_jobs.acquire(timeout=10)


def test_a_timer_keeps_no_process_from_ending():
    scheduler = Scheduler()
    keep_one_timer(scheduler)
    scheduler._schedule_reevalutation(0.2)
    (timer,) = [thread for thread in threading.enumerate() if isinstance(thread, threading.Timer)]
    assert timer.daemon
    timer.join()


def test_snakemakes_scheduler_has_what_is_replaced():
    assert list(signature(JobScheduler._schedule_reevalutation).parameters) == ["self", "delay"]
