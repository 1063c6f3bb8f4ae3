"""The scheduler's timers do not add up."""

import sys
import threading
import time
from collections import defaultdict
from inspect import getsource, signature
from types import SimpleNamespace

from snakemake.api import Workflow
from snakemake.scheduling.job_scheduler import JobScheduler

from directrank.edition.scheduling import Order, keep_one_timer


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
    def __init__(self, rule, run="", threads=1):
        self.threads = threads
        self.rule, self.wildcards = SimpleNamespace(name=rule), SimpleNamespace(run=run)


def ordered(jobs, seconds, soon=frozenset(), before=()):
    """``jobs`` in the order in which they would start."""
    priorities = defaultdict(int, before)
    dag = SimpleNamespace(needrun_jobs=lambda exclude_finished: jobs, _priority=priorities)
    order = Order(dag, lambda seconds: soon)
    order.set({})
    order.set(seconds)
    return sorted(jobs, key=priorities.__getitem__, reverse=True)


def test_the_longest_fit_is_first_after_what_takes_seconds():
    short, figure, long = Job("fit", "short"), Job("figure"), Job("fit", "long")
    unknown, wanted = Job("fit", "unknown"), Job("fit", "wanted")
    jobs = [short, figure, long, unknown, wanted]
    seconds = {"short": 2.0, "long": 300.0, "wanted": 1.0}
    order = ordered(jobs, seconds, before={wanted: 10**10})
    assert order == [wanted, figure, long, short, unknown]


def test_data_are_prepared_before_anything_else_and_those_first_that_need_more_cores():
    figure, data, fit = Job("figure"), Job("prepare_5_folds"), Job("fit", "a")
    parsed = Job("prepare", threads=2)
    jobs = [figure, data, fit, parsed]
    assert ordered(jobs, {"a": 9.0}, soon={"a"}) == [parsed, data, figure, fit]


def test_fits_that_are_wanted_soon_start_before_longer_ones():
    short, long, soon, sooner = (Job("fit", name) for name in ("short", "long", "soon", "sooner"))
    seconds = {"short": 2.0, "long": 300.0, "soon": 1.0, "sooner": 3.0}
    order = ordered([short, long, soon, sooner], seconds, soon={"soon", "sooner"})
    assert order == [sooner, soon, long, short]


def test_snakemakes_graph_takes_priorities_from_where_they_are_set():
    dag = sys.modules[Workflow.__module__].DAG
    assert "return self._priority[job]" in getsource(dag.priority)
    assert "exclude_finished" in signature(dag.needrun_jobs).parameters


def test_snakemakes_scheduler_has_what_is_replaced():
    assert list(signature(JobScheduler._schedule_reevalutation).parameters) == ["self", "delay"]
