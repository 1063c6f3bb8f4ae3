"""How far a workflow has come."""

import io
import sys
import time
from inspect import getsource
from types import SimpleNamespace

import pytest
import rich.console
import rich.progress
from snakemake.api import Workflow
from snakemake.jobs import GroupJob, Job
from snakemake.scheduling.job_scheduler import JobScheduler

from directrank.edition import progress
from directrank.edition.progress import Progress, predicted_by


class Wildcards(list):
    def __init__(self, run):
        super().__init__([run])
        self.run = run


class Entry(SimpleNamespace):
    """A job or a group, as the scheduler has them."""

    __hash__ = object.__hash__


def job(rule, run):
    return Entry(rule=SimpleNamespace(name=rule), wildcards=Wildcards(run), is_group=lambda: False)


@pytest.fixture
def watched():
    """A workflow of a long fit, a short one and two figures, and what watches it."""
    jobs = [
        job(rule, run)
        for rule, run in [("fit", "long"), ("fit", "short"), ("figure", "a"), ("figure", "b")]
    ]
    finished: set = set()
    dag = SimpleNamespace(needrun_jobs=lambda: iter(jobs), finished=finished.__contains__)
    scheduler = SimpleNamespace(running=set())
    watch = Progress(lambda: {"long": 89.0, "short": 8.0}, io.StringIO())
    watch.start(dag, scheduler)
    watch._runs = {"long": 89.0, "short": 8.0}
    yield watch, jobs, finished, scheduler.running
    watch.stop()


def test_the_share_of_the_work_follows_from_predicted_seconds_and_not_from_the_number_of_jobs(
    watched,
):
    watch, (long, short, first, second), finished, running = watched
    finished.update((short, first, second))
    text = watch.text(watch._began + 11)
    assert "3 of 4 jobs done, 11 % of the work" in text
    assert "about 1 minute left" in text
    running.add(long)
    assert "running: fit long" in watch.text(watch._began + 11)
    # A job that runs counts as far as its time has passed, and never as done.
    assert "3 of 4 jobs done, 61 % of the work" in watch.text(watch._began + 61)
    assert "91 % of the work" in watch.text(watch._began + 9000)


def test_nothing_is_said_of_the_time_left_before_anything_is_done(watched):
    watch, *_ = watched
    assert "too early to estimate the time left" in watch.text(watch._began + 500)


def test_jobs_of_a_group_run_together(watched):
    watch, (long, short, *_), _, running = watched
    running.add(Entry(is_group=lambda: True, jobs={long, short}))
    assert "running: fit long, fit short" in watch.text(watch._began + 1)


def test_without_a_terminal_a_line_comes_now_and_then(watched, monkeypatch):
    monkeypatch.setattr(progress, "LINE_INTERVAL", 0.05)
    first, _, _, _ = watched
    watch = Progress(dict, io.StringIO())
    watch.start(first._dag, first._scheduler)
    time.sleep(0.5)
    watch.stop()
    lines = watch._out.getvalue().splitlines()
    assert len(lines) >= 3
    assert all("of 4 jobs done" in line for line in lines)


def test_on_a_terminal_a_bar_has_the_time_left(watched, monkeypatch):
    monkeypatch.setattr(progress, "BAR_INTERVAL", 0.05)
    first, (_, short, *_), finished, _ = watched
    console = rich.console.Console(file=io.StringIO(), force_terminal=True)
    handler = SimpleNamespace(progress=rich.progress.Progress(console=console), console=console)
    finished.add(short)
    watch = Progress(dict, io.StringIO())
    watch.start(first._dag, first._scheduler, [SimpleNamespace(), handler])
    time.sleep(0.3)
    watch.stop()
    (task,) = handler.progress.tasks
    assert task.description.startswith("Predicted work, ")
    assert task.completed == pytest.approx(10 / 23)  # two fits that nobody predicted, two figures
    assert watch._out.getvalue() == ""


def test_a_prediction_that_fails_leaves_the_display_without(tmp_path):
    assert predicted_by(["false"], {"edition": "x"}, tmp_path) == {}


def test_snakemake_has_what_is_read():
    dag = getsource(sys.modules[Workflow.__module__].DAG)
    assert "def needrun_jobs(self" in dag
    assert "def finished(self, job)" in dag
    assert callable(Job.is_group)
    assert callable(GroupJob.is_group)
    assert "self.running = set()" in getsource(JobScheduler.__init__)
