"""``directrank compare DATA``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from directrank.cli import main, own_data
from workflow_runs import ROOT


@pytest.fixture
def clicks(tmp_path: Path) -> Path:
    """A file of thirty queries, whose first feature tells the label."""
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(rng.random((360, 4)), columns=["text", "price", "age", "stock"])
    frame["relevance"] = (3 * frame["text"]).astype(int)
    frame["query"] = np.repeat(np.arange(30), 12)
    frame.to_csv(tmp_path / "clicks.csv", index=False)
    return tmp_path / "clicks.csv"


def test_a_dry_run_says_what_it_would_take(
    clicks: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(clicks.parent)
    monkeypatch.setattr(own_data, "_predicted", lambda repository: (6, 3600.0))
    options = ["--losses", "RankNet", "ListNet", "--cores", "2", "--dry-run"]
    assert main(["compare", "clicks.csv", *options]) == 0
    said = capsys.readouterr().out
    assert "30 queries, 360 documents, 4 features, labels 0 to 2.\n" in said
    assert "The 6 runs take at most about 30 min on 2 cores" in said
    assert "Nothing was run" in said
    made = {path.name for path in (clicks.parent / "compare_clicks").iterdir()}
    assert made == {"data", "edition.yaml"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "expected either DATA or --run"),
        (["clicks.csv", "--run", "mine.run"], "expected either DATA or --run"),
        (["--run", "mine.run"], "needs published values"),
        (["clicks.csv", "--query-column", "session"], "--query-column NAME"),
        (["other.csv"], "does not exist"),
        (["clicks.csv", "--losses", "RankNet", "--scorers", "linear"], "too few to compare"),
    ],
)
def test_what_cannot_be_meant_is_said(
    clicks: Path,
    arguments: list[str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(clicks.parent)
    assert main(["compare", *arguments]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.long
def test_one_s_own_data_are_compared_from_a_file_to_a_report(clicks: Path) -> None:
    before = subprocess.run(["git", "status", "--short"], cwd=ROOT, capture_output=True).stdout
    command = [sys.executable, "-m", "directrank", "compare", clicks, "--budget", "quick"]
    chosen = ["--losses", "RankNet", "ListNet", "ApproxNDCG", "--scorers", "linear", "--cores", "2"]
    done = subprocess.run([*command, *chosen], cwd=clicks.parent, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    named = dict(line.split(": ", 1) for line in done.stdout.splitlines()[-3:])
    assert {"Report", "Table", "Values per query"} == named.keys()
    table = Path(named["Table"]).read_text(encoding="utf-8")
    assert "RankNet" in table
    values = pd.read_parquet(named["Values per query"])
    assert values["query_id"].nunique() == 30
    assert Path(named["Report"]).stat().st_size > 10_000
    after = subprocess.run(["git", "status", "--short"], cwd=ROOT, capture_output=True).stdout
    assert after == before
