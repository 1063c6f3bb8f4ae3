"""How far the training of a workflow has come."""

import time

import pytest

from directrank.edition import progress
from directrank.edition.progress import TrainingProgress

SECONDS = {"long": 90.0, "short": 8.0, "shorter": 2.0}


def test_the_share_of_the_work_follows_from_predicted_seconds_and_not_from_the_number_of_runs():
    trained: set = set()
    watch = TrainingProgress(SECONDS, trained.__contains__, print)
    assert watch.text(100) == (
        "0 of 3 runs are trained, 0 % of the work; too early to estimate the time left"
    )
    trained |= {"short", "shorter"}
    assert watch.text(20) == (
        "2 of 3 runs are trained, 10 % of the work; about 3 minutes of training left"
    )
    trained.add("long")
    assert "3 of 3 runs are trained, 100 % of the work; less than a minute" in watch.text(200)


def test_reports_come_at_intervals_until_everything_is_trained(monkeypatch):
    monkeypatch.setattr(progress, "INTERVAL", 0.05)
    trained, said = {"long"}, []
    TrainingProgress(SECONDS, trained.__contains__, said.append).start()
    time.sleep(0.3)
    trained.update(SECONDS)
    time.sleep(0.3)
    reports = len(said)
    assert reports >= 2
    assert "1 of 3 runs are trained" in said[0]
    time.sleep(0.2)
    assert len(said) == reports


def test_nothing_is_reported_if_nothing_is_trained(monkeypatch):
    monkeypatch.setattr(progress.threading, "Thread", lambda **_: pytest.fail("was started"))
    TrainingProgress({}, lambda run: False, print).start()
