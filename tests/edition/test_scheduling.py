"""The scheduler's timers do not add up."""

import sys
import threading
import time
from collections import defaultdict
from inspect import getsource, signature
from types import SimpleNamespace

from snakemake.api import Workflow
from snakemake.scheduling.job_scheduler import JobScheduler

from directrank.edition.scheduling import keep_one_timer, longest_first


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


class Job:
    def __init__(self, rule, run=""):
        self.rule, self.wildcards = SimpleNamespace(name=rule), SimpleNamespace(run=run)


def test_the_longest_fit_is_first_after_what_takes_seconds():
    jobs = [Job("fit", "short"), Job("figure"), Job("fit", "long"), Job("fit", "unknown")]
    wanted = Job("fit", "wanted")
    priorities = defaultdict(int, {wanted: 10**10})
    dag = SimpleNamespace(
        needrun_jobs=lambda exclude_finished: [*jobs, wanted], _priority=priorities
    )
    longest_first(dag, {"short": 2.0, "long": 300.0, "wanted": 1.0})
    short, figure, long, unknown = jobs
    order = sorted([*jobs, wanted], key=priorities.__getitem__, reverse=True)
    assert order == [wanted, figure, long, short, unknown]


def test_snakemakes_graph_takes_priorities_from_where_they_are_set():
    dag = sys.modules[Workflow.__module__].DAG
    assert "return self._priority[job]" in getsource(dag.priority)
    assert "exclude_finished" in signature(dag.needrun_jobs).parameters


def test_snakemakes_scheduler_has_what_is_replaced():
    assert list(signature(JobScheduler._schedule_reevalutation).parameters) == ["self", "delay"]
