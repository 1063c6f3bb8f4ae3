"""The study as a module that another workflow takes from a Git host."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from workflow_runs import ROOT, TINY, output_of, tables

pytestmark = pytest.mark.slow

#: What `snakedeploy deploy-workflow` writes.
SNAKEFILE = """\
configfile: {config!r}

module study:
    snakefile:
        github("org/directrank", path="workflow/Snakefile", commit={commit!r})
    config:
        config

use rule * from study
"""


@pytest.fixture
def deployed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with such a workflow, and a Git host on this machine with the working tree."""

    def git(*arguments: str) -> str:
        done = subprocess.run(["git", *arguments], capture_output=True, text=True, check=True)
        return done.stdout.strip()

    if not (ROOT / ".git").exists():
        pytest.skip("this copy of the repository is no clone")
    git("clone", "-q", "--bare", str(ROOT), str(tmp_path / "hub/org/directrank"))
    author = ("-c", "user.name=Test", "-c", "user.email=test@example.org")
    commit = git(*author, "-C", str(ROOT), "stash", "create") or git(
        "-C", str(ROOT), "rev-parse", "HEAD"
    )
    git("-C", str(tmp_path / "hub/org/directrank"), "fetch", "-q", str(ROOT), commit)
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", f"url.{tmp_path}/hub/.insteadOf")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "https://github.com/")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "deployed"
    folder.mkdir()
    text = SNAKEFILE.format(config=str(TINY), commit=commit)
    (folder / "Snakefile").write_text(text, encoding="utf-8")
    return folder


def run(folder: Path, *arguments: str) -> None:
    process = subprocess.run(
        [sys.executable, "-m", "snakemake", "--cores", "2", *arguments],
        capture_output=True, text=True, cwd=folder,
    )  # fmt: skip
    assert process.returncode == 0, output_of(process)


def test_a_module_from_a_git_host_plans_and_runs(deployed: Path) -> None:
    plan = "results/tiny/plan/bruch2019/table1.json"
    run(deployed, plan)
    assert (deployed / plan).is_file()
    (study,) = (deployed / ".snakemake/study").iterdir()
    assert (study / "data/datasets.yaml").is_file()


@pytest.mark.long
def test_a_module_from_a_git_host_makes_the_same_tables_and_a_report(
    deployed: Path, finished: Path
) -> None:
    run(deployed)
    assert tables(deployed) == tables(finished)
    run(deployed, "--report", "report.zip")
    with zipfile.ZipFile(deployed / "report.zip") as report:
        assert any(name.endswith("table1.csv") for name in report.namelist())
