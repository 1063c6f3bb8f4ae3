"""How far the training of a workflow has come, and what is left of it."""

import heapq
import math
import os
import random
import re
import time
from collections.abc import Mapping
from itertools import pairwise
from unittest.mock import Mock

import pytest

from directrank.edition import progress
from directrank.edition.progress import Span, TrainingProgress
from studies import study_of, workflow_of

SECONDS = {"long": 90.0, "short": 8.0, "shorter": 2.0}


def test_the_share_of_the_work_follows_from_predicted_seconds_and_not_from_the_number_of_runs():
    spans: dict[str, Span] = {}
    watch = TrainingProgress([SECONDS], lambda run: spans.get(run, Span()), print)
    assert watch.text(100) == (
        "0 of 3 runs are trained, 0 % of the work; too early to estimate the time left"
    )
    spans |= {"short": Span(50, 66), "shorter": Span(66, 70)}
    assert watch.text(70) == (
        "2 of 3 runs are trained, 10 % of the work; about 3 minutes of training left"
    )
    spans["long"] = Span(70, 250)
    assert "3 of 3 runs are trained, 100 % of the work; less than a minute" in watch.text(250)


def test_what_is_done_of_a_run_that_is_being_trained_counts():
    spans = {"short": Span(0, 16), "long": Span(16)}
    watch = TrainingProgress([SECONDS], lambda run: spans.get(run, Span()), print)
    share, left = watch.estimate(106)  # twice the predicted seconds, so that half of it is done
    assert share == pytest.approx((8 + 45) / 100)
    assert left == pytest.approx(90 + 4)
    share, left = watch.estimate(416)  # it is late, and its pace is that of what is left
    assert share == pytest.approx(98 / 100)
    assert left == pytest.approx(2 * (16 + 400) / 98)


def test_batches_at_a_time_shorten_what_is_left_to_the_longest_of_them():
    spans = {"a": Span(0, 10), "b": Span(0, 10), "c": Span(10), "d": Span(10)}
    for batches, left in (
        (["ac", "bd", "e", "f"], (5 + 5 + 10 + 10) / 2),
        (["ac", "bdef"], 5 + 10 + 10),
    ):
        seconds = [dict.fromkeys(batch, 10.0) for batch in batches]
        watch = TrainingProgress(seconds, lambda run: spans.get(run, Span()), print)
        assert watch.estimate(15)[1] == pytest.approx(left)


def test_jobs_that_wait_on_a_cluster_are_waited_for():
    spans = {"short": Span(0, 8)}
    batches = [{"short": 8.0}, {"long": 90.0}]
    watch = TrainingProgress(batches, lambda run: spans.get(run, Span()), print)
    share, left = watch.estimate(32)  # a run was trained in a quarter of the time, none since
    assert share == pytest.approx(8 / 98)
    assert left == pytest.approx(4 * 90)


def test_what_an_earlier_workflow_left_has_not_begun(monkeypatch):
    monkeypatch.setattr(progress.threading, "Thread", Mock())
    monkeypatch.setattr(progress.time, "time", lambda: 1000.0)
    spans = {"long": Span(500), "short": Span(1010, 1018)}
    watch = TrainingProgress([SECONDS], lambda run: spans.get(run, Span()), print)
    watch.start()
    assert watch.estimate(1018) == pytest.approx((8 / 100, 92))


def test_a_clock_that_is_behind_that_of_the_files_does_no_harm():
    spans = {"short": Span(100, 116), "long": Span(117)}
    watch = TrainingProgress([SECONDS], lambda run: spans.get(run, Span()), print)
    assert watch.estimate(50) == pytest.approx((8 / 100, 184))


def test_a_run_that_failed_is_not_waited_for():
    spans = {"short": Span(0, 8), "long": Span(8, 9, failed=True)}
    watch = TrainingProgress([SECONDS], lambda run: spans.get(run, Span()), print)
    assert watch.text(9) == (
        "1 of 3 runs are trained and 1 failed, 80 % of the work; less than a minute of training "
        "left"
    )


def schedule(speed: float, seed: int) -> tuple[list[dict[str, float]], dict[str, Span]]:
    """The demo on two cores of a machine: the predicted seconds of its runs, and when they were.

    Predictions are what each run of the demo took once (benchmarks/results/jobs.csv); here each
    takes longer or shorter, typically by a fifth. Long runs begin first, the other batches in any
    order. Data are prepared before, and a batch begins with imports.
    """
    draw = random.Random(seed)
    workflow = workflow_of(study_of("demo"))
    long = re.compile(workflow.fit_rules()["fit_long"][0])
    names = list(workflow.batches)
    draw.shuffle(names)
    names.sort(key=lambda name: not long.fullmatch(name))
    cores, spans = [60 / speed, 75 / speed], {}
    for name in names:
        at = heapq.heappop(cores) + 4 / speed
        for run in workflow.batches[name].runs:
            took = workflow.seconds[run] * math.exp(draw.gauss(0, 0.2))
            spans[run] = Span(at, at + took / speed)
            at += took / speed
        heapq.heappush(cores, at)
    batches = workflow.batches.values()
    return [{run: workflow.seconds[run] for run in batch.runs} for batch in batches], spans


def seen(spans: Mapping[str, Span], run: str, now: float) -> Span:
    """What there is of a run at a time."""
    span = spans[run]
    if span.began > now:
        return Span()
    return span if span.ended <= now else Span(span.began)


@pytest.mark.parametrize("speed", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("seed", range(6))
def test_after_a_tenth_of_the_work_the_time_left_is_true_within_a_factor(speed, seed):
    batches, spans = schedule(speed, seed)
    end = max(span.ended for span in spans.values())
    clock = 0.0
    watch = TrainingProgress(batches, lambda run: seen(spans, run, clock), print)
    shares, factors = [], []
    while clock < 0.95 * end:  # later, a single run decides
        clock += 10
        share, left = watch.estimate(clock)
        shares.append(share)
        if share >= 0.1:
            factors.append(left / (end - clock))
    assert len(factors) > 20
    assert min(factors) > 1 / 1.5
    assert max(factors) < 1.5
    assert all(later > earlier - 0.05 for earlier, later in pairwise(shares))


def test_a_run_is_seen_in_its_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    workflow = workflow_of(study_of("demo"))
    batch = next(iter(workflow.batches))
    run = workflow.batches[batch].runs[0]
    trained: set[str] = set()
    monkeypatch.setattr(workflow, "_is_trained", trained.__contains__)
    watch = workflow.progress([batch], print)
    span_of = watch._span_of
    assert span_of(run) == Span()
    specification = tmp_path / f"results/demo/runs/{run}/spec.json"
    usage = tmp_path / f"logs/demo/fit/{run}.benchmark.tsv"
    for path, when in ((usage, 90), (specification, 100)):
        path.parent.mkdir(parents=True)
        path.touch()
        os.utime(path, (when, when))
    assert span_of(run) == Span(100)  # the usage is that of an earlier time
    os.utime(usage, (130, 130))
    assert span_of(run) == Span(100, 130, failed=True)
    trained.add(run)
    assert span_of(run) == Span(100, 130)


def test_reports_come_at_intervals_until_everything_is_trained(monkeypatch):
    monkeypatch.setattr(progress, "INTERVAL", 0.05)
    began, said = time.time(), []
    spans = {"long": Span(began, began + 1)}
    TrainingProgress([SECONDS], lambda run: spans.get(run, Span()), said.append).start()
    time.sleep(0.3)
    spans.update(dict.fromkeys(SECONDS, Span(began, began + 1)))
    time.sleep(0.3)
    reports = len(said)
    assert reports >= 2
    assert "1 of 3 runs are trained" in said[0]
    time.sleep(0.2)
    assert len(said) == reports


def test_nothing_is_reported_if_nothing_is_trained(monkeypatch):
    monkeypatch.setattr(progress.threading, "Thread", lambda **_: pytest.fail("was started"))
    TrainingProgress([], lambda run: Span(), print).start()
