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

import pandas as pd
import pytest

from directrank.edition import progress
from directrank.edition.progress import Drawing, Span, TrainingProgress
from directrank.system.io import write_text
from studies import ROOT, study_of, workflow_of

SECONDS = {"long": 90.0, "short": 8.0, "shorter": 2.0}


def test_the_share_of_the_work_follows_from_predicted_seconds_and_not_from_the_number_of_runs():
    spans: dict[str, Span] = {}
    watch = TrainingProgress([SECONDS], lambda run: spans.get(run, Span()), print)
    assert watch.text(100) == (
        "0 of 3 runs are trained, 0 % of the work; too early to estimate the time left"
    )
    spans |= {"short": Span(50, 66), "shorter": Span(66, 70)}
    assert watch.text(70) == ("2 of 3 runs are trained, 10 % of the work; about 3 minutes left")
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


def test_a_run_that_took_unusually_long_does_not_count_more_than_twice():
    spans = {"a": Span(0, 20), "b": Span(20, 40), "c": Span(40, 1040)}
    batch = dict.fromkeys("abcd", 10.0)
    watch = TrainingProgress([batch], lambda run: spans.get(run, Span()), print)
    assert watch.estimate(1040) == pytest.approx((3 / 4, (20 + 20 + 40) / 3))


def test_products_take_what_those_that_are_made_took():
    spans = {"run": Span(0, 180)}
    watch = TrainingProgress(
        [{"run": 90.0, "other": 8.0}],
        lambda job: spans.get(job, Span()),
        print,
        [Drawing(["figure", "table", "claims"], ["run"])],
    )
    share, left = watch.estimate(180)  # as long as products take where runs take as predicted
    assert share == pytest.approx(90 / (90 + 8 + 3 * progress.PRODUCT_SECONDS))
    assert left == pytest.approx(2 * (8 + 3 * progress.PRODUCT_SECONDS))
    spans["figure"] = Span(180, 200)
    share, left = watch.estimate(200)
    usual = (20 + 10 * 2 * progress.PRODUCT_SECONDS) / 11
    assert left == pytest.approx(16 + 2 * usual)
    assert share == pytest.approx(1 - left / (196 + 3 * usual))
    spans |= {"table": Span(200, 203), "claims": Span(203, 207), "other": Span(207, 223)}
    assert watch.text(223) == "2 of 2 runs are trained, 100 % of the work; less than a minute left"


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
        "1 of 3 runs are trained and 1 failed, 80 % of the work; less than a minute left"
    )


Batches = list[dict[str, float]]


def schedule(speed: float, seed: int) -> tuple[Batches, dict[str, Span], list[Drawing]]:
    """The demo on two cores of a machine: the predicted seconds of its runs, when runs and products
    were made, and what is drawn.

    Each takes longer or shorter than it once took (benchmarks/results/jobs.csv), typically by a
    fifth. Long runs begin first, the other batches in any order, and a part's products before what
    is left to train. Data are prepared before, and a job begins with imports.
    """
    draw = random.Random(seed)
    workflow = workflow_of(study_of("demo"))
    recorded = pd.read_csv(ROOT / "benchmarks/results/jobs.csv").query("edition == 'demo'")
    seconds = {**workflow.seconds, **dict(zip(recorded.job, recorded.seconds, strict=True))}
    long = re.compile(workflow.fit_rules()["fit_long"][0])
    names = list(workflow.batches)
    draw.shuffle(names)
    names.sort(key=lambda name: not long.fullmatch(name))
    drawings = [workflow.drawing(part) for part in workflow.parts]
    todo = list(drawings)
    cores, spans = [60 / speed, 75 / speed], {}
    while names or todo:
        now = heapq.heappop(cores)
        trained = {run for run, span in spans.items() if span.ended <= now}
        ready = [drawing for drawing in todo if trained.issuperset(drawing.runs)]
        if ready:
            todo.remove(ready[0])
            jobs = ready[0].products
        elif names:
            jobs = workflow.batches[names.pop(0)].runs
        else:  # until what is being trained has ended
            heapq.heappush(cores, min(end for end in cores if end > now))
            continue
        at = now + 4 / speed
        for job in jobs:
            took = seconds[job] * math.exp(draw.gauss(0, 0.2)) / speed
            spans[job] = Span(at, at + took)
            at += took
        heapq.heappush(cores, at)
    batches = [{run: workflow.seconds[run] for run in b.runs} for b in workflow.batches.values()]
    return batches, spans, drawings


def seen(spans: Mapping[str, Span], run: str, now: float) -> Span:
    """What there is of a run at a time."""
    span = spans[run]
    if span.began > now:
        return Span()
    return span if span.ended <= now else Span(span.began)


@pytest.mark.parametrize("speed", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("seed", range(6))
def test_after_a_tenth_of_the_work_the_time_left_is_true_within_a_factor(speed, seed):
    batches, spans, drawings = schedule(speed, seed)
    end = max(span.ended for span in spans.values())
    clock = 0.0
    watch = TrainingProgress(batches, lambda job: seen(spans, job, clock), print, drawings)
    shares, factors = [], []
    while clock < end - 40:  # then less than a minute is left
        clock += 10
        share, left = watch.estimate(clock)
        shares.append(share)
        if share >= 0.1:
            factors.append(left / (end - clock))
            # In the end one job decides.
            is_true = 1 / 1.5 < factors[-1] < 1.5 or abs(left - (end - clock)) < 45
            assert is_true, f"{left:.0f} s instead of {end - clock:.0f}"
    assert len(factors) > 20
    assert all(later > earlier - 0.05 for earlier, later in pairwise(shares))


def test_a_run_is_seen_in_its_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    workflow = workflow_of(study_of("demo"))
    batch = next(iter(workflow.batches))
    run = workflow.batches[batch].runs[0]
    trained: set[str] = set()
    monkeypatch.setattr(workflow, "_is_trained", trained.__contains__)
    watch = workflow.progress([batch], [], print)
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


def test_a_product_is_seen_in_its_usage(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    workflow = workflow_of(study_of("demo"))
    span_of = workflow.progress([], ["bruch2019"], print)._span_of
    drawing = workflow.drawing("bruch2019")
    assert {"figure/bruch2019/figure1", "claims/bruch2019"} <= set(drawing.products)
    assert set(drawing.runs) <= set(workflow.study.runs)
    assert span_of("claims/bruch2019") == Span()
    usage = tmp_path / "logs/demo/claims/bruch2019.benchmark.tsv"
    usage.parent.mkdir(parents=True)
    write_text(usage, "s\tmax_rss\tcpu_time\n2.50\t100.00\t2.00\n")
    os.utime(usage, (130, 130))
    assert span_of("claims/bruch2019") == Span(127.5, 130)


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
