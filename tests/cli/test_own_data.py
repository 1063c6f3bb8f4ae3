"""``directrank compare DATA``."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from directrank.cli import main, own_data
from directrank.system.locks import HeldLocks
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


def test_remedies_are_options_of_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for line in ("1 1:2", "1 qid: 1:2", "x qid:1 1:2", "1 qid:1 a:2", "1 qid:1 1:1e39", "1 qid:1"):
        Path("mine.txt").write_text(f"{line}\n", encoding="utf-8")
        assert main(["compare", "mine.txt", "--dry-run"]) == 2
        said = capsys.readouterr().err
        assert "mine.txt" in said
        assert "remedy" in said
        assert not any(word in said for word in ("--quarantine", "first_index", "'clip'"))
    assert not Path("compare_mine").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("grades", "cut"),
    [("0.25,0.5", "begin at 0.25, 0.5 (the cut points"), ("3", "(quantiles of")],
)
def test_grades_are_a_number_or_cut_points(
    clicks: Path,
    grades: str,
    cut: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(clicks.parent)
    monkeypatch.setattr(own_data, "_predicted", lambda plan, cores: 3600.0 / cores)
    options = ["--label-column", "price", "--grades", grades, "--dry-run"]
    assert main(["compare", "clicks.csv", *options, "--leave-out", "relevance"]) == 0
    said = capsys.readouterr().out
    assert cut in said
    assert "the features are text, age, stock.\n" in said
    with pytest.raises(SystemExit):
        main(["compare", "clicks.csv", "--grades", "few"])
    assert "neither a number of grades nor labels" in capsys.readouterr().err


def test_a_scorer_has_the_name_of_the_tables(
    clicks: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(clicks.parent)
    monkeypatch.setattr(own_data, "_predicted", lambda plan, cores: 3600.0 / cores)
    options = ["--losses", "RankNet", "ListNet", "--scorers", "network", "--dry-run"]
    assert main(["compare", "clicks.csv", *options]) == 0
    assert "The 10 runs, " in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["compare", "clicks.csv", "--scorers", "tower"])
    assert "'linear', 'network', 'context', 'trees'" in capsys.readouterr().err


def test_a_dry_run_says_what_it_would_take(
    clicks: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(clicks.parent)
    monkeypatch.setattr(own_data, "_predicted", lambda plan, cores: 3600.0 / cores)
    options = ["--losses", "RankNet", "ListNet", "--scorers", "linear", "--cores", "2", "--dry-run"]
    assert main(["compare", "clicks.csv", *options]) == 0
    said = capsys.readouterr().out
    assert "30 queries, 360 documents, 4 features, labels 0 to 2.\n" in said
    assert "The 10 runs, their tables and figures take about 30 minutes on 2 cores" in said
    assert "No boosted trees are trained; --scorers linear network trees adds them.\n" in said
    assert "2 methods are too few to compare, so figures of differences are left out.\n" in said
    assert "Nothing was trained" in said
    made = {path.name for path in (clicks.parent / "compare_clicks").iterdir()}
    assert made == {".snakemake", "data", "edition.yaml"}


def test_the_command_of_a_dry_run_can_be_pasted(
    clicks: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(clicks.parent)
    monkeypatch.setattr(own_data, "_predicted", lambda plan, cores: 3600.0 / cores)
    options = ["--losses", "RankNet", "ListNet", "--scorers", "linear", "--cores", "2"]
    assert main(["compare", "clicks.csv", *options, "--dry-run", "--out", "it's mine"]) == 0
    shown = capsys.readouterr().out.partition("this is run: ")[2]
    words = shlex.split(shown)
    assert words[words.index("--directory") + 1] == str(clicks.parent / "it's mine")


@pytest.mark.parametrize("cores", ["0", "-3", "two"])
def test_cores_are_a_whole_number(cores: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["compare", "clicks.csv", "--cores", cores])
    assert f"'{cores}' is no whole number, 1 or more" in capsys.readouterr().err


@pytest.mark.parametrize("held", ["comparison-clicks", "edition-clicks"])
def test_a_folder_in_use_is_not_written_to(
    held: str, clicks: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(clicks.parent)
    monkeypatch.setattr(own_data, "_predicted", lambda plan, cores: 3600.0 / cores)
    options = ["compare", "clicks.csv", "--losses", "RankNet", "ListNet", "--dry-run"]
    assert main(options) == 0
    folder = clicks.parent / "compare_clicks"
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.suffix != ".lock"
              and path.is_file()}  # fmt: skip
    claim = HeldLocks(folder / ".snakemake/claims", [held])
    assert main([*options, "--grades", "2"]) == 2
    claim.release()
    assert f"'{held}' is being worked on in this folder" in capsys.readouterr().err
    assert all(path.read_bytes() == content for path, content in before.items())
    assert main(options) == 0


def test_a_folder_has_the_comparison_of_one_file(
    clicks: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(clicks.parent)
    monkeypatch.setattr(own_data, "_predicted", lambda plan, cores: 3600.0 / cores)
    options = ["--losses", "RankNet", "ListNet", "--dry-run"]
    assert main(["compare", "clicks.csv", *options]) == 0
    other = clicks.parent / "Clicks.csv"
    other.write_bytes(clicks.read_bytes())
    assert main(["compare", "Clicks.csv", *options]) == 2
    assert f"has the comparison of {clicks}" in capsys.readouterr().err
    assert main(["compare", "Clicks.csv", *options, "--out", "others"]) == 0


def test_a_termination_ends_the_workflow(tmp_path: Path) -> None:
    child = (
        "import os, pathlib, signal, time\n"
        "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "pathlib.Path('begun').write_text(str(os.getpid()))\n"
        "time.sleep(60)\n"
    )
    parent = (
        "import sys; from directrank.cli.own_data import _complete\n"
        f"print(_complete([sys.executable, '-c', {child!r}]))\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", parent], cwd=tmp_path, stdout=subprocess.PIPE, text=True
    )
    begun = tmp_path / "begun"
    while not (begun.exists() and begun.read_text()):
        assert process.poll() is None
        time.sleep(0.05)
    process.terminate()
    said, _ = process.communicate(timeout=30)
    assert said == "False\n"
    with pytest.raises(ProcessLookupError):
        os.kill(int(begun.read_text()), 0)


def test_a_cache_is_provided_where_the_users_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("XDG_CACHE_HOME", "MPLCONFIGDIR"):
        monkeypatch.setenv(name, str(tmp_path / "mine"))
    own_data._provide_cache(tmp_path)
    assert os.environ["XDG_CACHE_HOME"] == str(tmp_path / "mine")
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/mine")
    own_data._provide_cache(tmp_path)
    assert os.environ["XDG_CACHE_HOME"] == os.environ["MPLCONFIGDIR"] == str(tmp_path / ".cache")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "expected either DATA or --run"),
        (["clicks.csv", "--run", "mine.run"], "expected either DATA or --run"),
        (["--run", "mine.run"], "needs published values"),
        (["clicks.csv", "--query-column", "session"], "--query-column NAME"),
        (["other.csv"], "does not exist"),
        (["clicks.csv", "--losses", "RankNets"], "did you mean 'RankNet'"),
        (["clicks.csv", "--ensembles", "LambdaMARTS"], "did you mean 'LambdaMART'"),
        (["clicks.csv", "--grades", "100,200"], "no label reaches the first cut point, 100: the"),
        (["clicks.csv", "--metric", "ap"], "--metric is of a comparison with published values"),
        (["clicks.csv", "--margin", "0.05"], "--margin is of a comparison with published values"),
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


@pytest.mark.long
def test_a_method_that_fails_costs_neither_the_report_nor_the_others(clicks: Path) -> None:
    frame = pd.read_csv(clicks)
    frame[frame["query"] < 12].to_csv(clicks, index=False)  # LightGBM needs more documents
    command = [sys.executable, "-m", "directrank", "compare", clicks, "--budget", "quick"]
    chosen = ["--losses", "RankNet", "ListNet", "--scorers", "linear", "--cores", "2"]
    chosen += ["--ensembles", "LambdaMART"]
    home = os.environ | {"HOME": "/proc"}  # whose cache cannot be written
    home.pop("XDG_CACHE_HOME", None)
    done = subprocess.run(
        [*command, *chosen], cwd=clicks.parent, capture_output=True, text=True, env=home
    )
    assert done.returncode == 2, done.stdout + done.stderr
    assert "1 of 3 methods could not be trained" in done.stderr
    assert "LambdaMART (trees): no tree found a split" in done.stderr
    (log,) = re.findall("log: (.*)", done.stderr)
    assert "no tree found a split" in Path(log).read_text(encoding="utf-8")
    named = dict(line.split(": ", 1) for line in done.stdout.splitlines()[-3:])
    table = pd.read_csv(Path(named["Table"]).with_suffix(".csv"))
    assert table.loc[table["failed"].notna(), "method"].tolist() == ["LambdaMART"]
    report = Path(named["Report"]).read_text(encoding="utf-8")
    assert "<h1>A comparison on clicks</h1>" in report
    assert 'id="verdicts"' not in report
    first = re.search(r"<article id=\"([^\"]*)", report)
    assert first is not None
    assert first[1] == "one_protocol-table_clicks"
    assert "Runs that could not be trained" in report
    linked = set(re.findall(r'href="#([^"]*)"', report))
    assert linked <= set(re.findall(r'id="([^"]*)"', report))
    assert not list(Path(named["Report"]).parents[2].glob("paper_tables/*/claims.*"))
