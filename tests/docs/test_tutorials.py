"""Each tutorial does what it promises, step by step as its page says."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from directrank import relaxations
from studies import study_of
from tutorial_pages import add_lines, blocks, digests, follow, repository, run
from workflow_runs import ROOT

pytestmark = pytest.mark.slow


@pytest.fixture
def copy(tmp_path):
    return repository(tmp_path / "copy")


#: Prints the runs of editions by name, with the settings that single them out, as planned.
PLAN = """
import json, sys, yaml
from directrank.edition.plan import load
def runs(edition):
    plan = load(yaml.safe_load(open(f"config/{edition}.yaml")))
    cells = [cell for item in plan.products.values() for part in item["experiments"].values()
             for cell in part]
    return {cell["run"]: cell["settings"] for cell in cells}
print(json.dumps([runs(edition) for edition in sys.argv[1:]]))
"""


def planned(copy: Path, *editions: str) -> list[dict[str, dict]]:
    """The runs of editions of the copy, by name, with the settings that single them out."""
    return json.loads(run(f"{sys.executable} -c '{PLAN}' {' '.join(editions)}", copy))


def test_a_loss_that_is_added_makes_a_run_per_scorer_and_changes_no_other(copy):
    before = digests(copy)
    old = study_of("demo").runs
    follow("add_a_loss", copy, train=False)
    demo, mine = planned(copy, "demo", "mine")
    assert set(old) < set(demo)
    assert [demo[name]["method"] for name in demo if name not in old] == ["Hinge"] * 3
    assert len(mine) == 6
    assert changed(before, copy) == {
        "config/papers/one_protocol.yaml",
        "src/directrank/losses/__init__.py",
    }


def test_a_metric_that_is_added_is_evaluated_composed_and_planned(copy):
    before = digests(copy)
    evaluated, composed = follow("add_a_metric", copy, train=False)
    assert "rbp@2" in evaluated
    assert composed.count("True") == len(relaxations.REGISTRY)
    (mine,) = planned(copy, "mine")
    assert [name.split("-")[1] for name in mine] == ["composed"]
    assert changed(before, copy) == {"src/directrank/metrics/__init__.py"}


@pytest.mark.long
def test_a_loss_that_is_added_has_its_rows_in_the_comparison_and_the_report(copy):
    follow("add_a_loss", copy)
    table = pd.read_csv(copy / "paper_tables/mine/one_protocol/table_web30k.csv")
    rows = table[(table["method"] == "Hinge") & (table["metric"] == "NDCG@10")]
    assert rows["scorer"].tolist() == ["linear", "network", "context-aware"]
    assert rows["mean"].between(0.2, 1).all()
    report = (copy / "report/mine/report.html").read_text(encoding="utf-8")
    assert report.count("Hinge") >= 3
    assert "web30k_standin-hinge-" in report


@pytest.mark.long
def test_a_collection_is_one_entry_and_one_line_and_goes_through_the_comparison(copy):
    before = digests(copy)
    follow("add_a_dataset", copy)
    table = pd.read_csv(copy / "paper_tables/mine/one_protocol/table_mine.csv")
    assert set(table["method"]) == {"RankNet", "LambdaRank", "ListNet"}
    assert table["data"].unique().tolist() == ["real"]
    assert table.loc[table["metric"] == "NDCG@10", "mean"].gt(0.8).all()
    assert changed(before, copy) == {"data/datasets.yaml"}


@pytest.mark.long
def test_a_metric_is_one_file_and_one_line_and_a_loss_under_every_relaxation(copy):
    before = digests(copy)
    _, composed, evaluated = follow("add_a_metric", copy)
    assert composed.count("True") == len(relaxations.REGISTRY)
    assert "rbp@10" in evaluated
    (run,) = (copy / "results/mine/runs").glob("*-composed-*/per_query.parquet")
    values = pd.read_parquet(run)["rbp@10"].dropna()
    assert ((values >= 0) & (values <= 1)).all()
    assert "rbp@10" in (copy / "report/mine/report.html").read_text(encoding="utf-8")
    assert changed(before, copy) == {"src/directrank/metrics/__init__.py"}


@pytest.mark.long
def test_a_paper_is_a_folder_and_a_configuration_file(copy):
    before = digests(copy)
    follow("add_a_paper", copy)
    folder = "src/directrank/papers/mine2026"
    added = {name for name in digests(copy) if name not in before}
    assert {name for name in added if name.startswith(("src/", "config/papers/"))} == {
        "config/papers/mine2026.yaml",
        *(f"{folder}/{name}" for name in ("__init__.py", "table1.py", "claims.yaml")),
    }
    table = pd.read_csv(copy / "paper_tables/mine/mine2026/table1.csv")
    assert table["method"].tolist() == ["ListNet", "RankNet"]
    assert table["published"].tolist() == [0.41, 0.40]
    assert table["data"].unique().tolist() == ["stand-in"]
    claims = pd.read_csv(copy / "paper_tables/mine/claims.csv").set_index(["claim", "comparison"])
    assert claims.loc[("M01", "overall"), "verdict"] == "ran"  # on a stand-in
    report = (copy / "report/mine/report.html").read_text(encoding="utf-8")
    assert "Table 1 of mine (2026)" in report
    assert "ListNet beats RankNet" in report
    assert changed(before, copy) == set()


def changed(before: dict[str, str], copy: Path) -> set[str]:
    """Files that were there before and have another content now."""
    after = digests(copy)
    return {name for name, digest in before.items() if after.get(name) != digest}


@pytest.mark.parametrize("page", ["add_a_loss", "add_a_dataset", "add_a_metric", "add_a_paper"])
def test_code_of_the_pages_is_in_the_projects_style(page, tmp_path):
    for number, block in enumerate(blocks(page)):
        if block.file.endswith(".py") and block.language == "python":
            (tmp_path / f"{page}_{number}.py").write_text(block.text, encoding="utf-8")
    for command in (["check"], ["format", "--check"]):
        arguments = ["--config", str(ROOT / "pyproject.toml"), str(tmp_path)]
        process = subprocess.run(
            [sys.executable, "-m", "ruff", *command, *arguments], capture_output=True, text=True
        )
        assert process.returncode == 0, process.stdout


def test_a_diff_whose_context_is_gone_is_refused(tmp_path):
    path = tmp_path / "file.py"
    path.write_text("one\ntwo\n", encoding="utf-8")
    with pytest.raises(AssertionError, match="does not fit"):
        add_lines(path, " three\n+four\n")
    add_lines(path, " one\n+more\n")
    assert path.read_text(encoding="utf-8") == "one\nmore\ntwo\n"
