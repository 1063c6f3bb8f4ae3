"""The cost of the edition `paper` in the documentation: a table of what is planned now."""

from __future__ import annotations

import re

import pandas as pd
import pytest

from directrank import learners
from directrank.edition.plan import load
from directrank.study.specification import candidate_settings
from directrank.system.schema import read_yaml
from workflow_runs import ROOT


@pytest.mark.slow
def test_the_table_counts_the_runs_and_fits_that_are_planned(monkeypatch: pytest.MonkeyPatch):
    # As where no external program is installed.
    monkeypatch.setattr(
        learners.Learner, "missing", lambda learner, _: "not here" if learner.external else None
    )
    study = load(read_yaml(ROOT / "config/paper.yaml"), ROOT)
    needed: dict[str, set[str]] = {"all": set(study.runs)}
    for (paper, _), product in study.products.items():
        cells = [cell for cells in product["experiments"].values() for cell in cells]
        needed.setdefault(paper, set()).update(cell["run"] for cell in cells)
    fits = {
        run: spec["trials"]
        * len(candidate_settings(spec))
        * spec.get("training", {}).get("restarts", 1)
        for run, spec in study.runs.items()
    }
    planned = {paper: (len(runs), sum(fits[run] for run in runs)) for paper, runs in needed.items()}
    page = (ROOT / "docs/scale.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\w+) \| (\d+) \| (\d+) \| ", page, flags=re.MULTILINE)
    shown = {paper: (int(runs), int(fits)) for paper, runs, fits in rows}
    assert shown == planned, "the edition has changed: run `python docs/costs.py`"


def test_the_gain_of_sharing_a_gpu_is_the_measured_one():
    measured = pd.read_csv(ROOT / "benchmarks/results/gpu.csv")
    gain = measured[
        (measured["measure"] == "fits per hour, times one process")
        & (measured["configuration"] == "8 processes on one GPU")
    ]["value"].item()
    page = (ROOT / "docs/scale.md").read_text(encoding="utf-8")
    assert page.count(f"{gain:.1f} times as many") == 2


def test_the_page_has_the_columns_that_are_written(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(ROOT / "docs")
    import costs

    header = costs.header()
    assert header in (ROOT / "docs/scale.md").read_text(encoding="utf-8")
    assert "GPU, 1 process" in header, "several processes of small networks can share a GPU"
