"""The page for whoever checks the claims, and the record of measured jobs that it reads."""

from __future__ import annotations

import json
import re

import pandas as pd
import pytest

from directrank.cost.predict import planned_seconds
from directrank.edition.plan import load
from directrank.papers.shared.claims import published_claims
from directrank.system.schema import read_yaml
from studies import study_of
from workflow_runs import ROOT, TINY, load_script

artefact = load_script("docs/artefact.py")
record = load_script("benchmarks/record_jobs.py")


@pytest.fixture(scope="module")
def tiny():
    return load(read_yaml(TINY), ROOT)


def edition(study, jobs: dict[str, float]):
    rows = [{"job": job, "seconds": seconds} for job, seconds in jobs.items()]
    frame = pd.DataFrame(rows, columns=["job", "seconds"]).assign(memory_mb=500.0, disk_mb=1500.0)
    return artefact.Edition(study, frame.set_index("job"))


def test_the_page_is_of_the_editions_and_the_record_as_they_are(monkeypatch):
    monkeypatch.setattr(artefact, "load", lambda config, root: study_of(config["edition"]))
    page = artefact.PAGE.read_text(encoding="utf-8")
    written = f"{artefact.BEGIN}\n{artefact.content()}\n{artefact.END}"
    assert written in page, "run `python docs/artefact.py`"


def test_every_claim_has_its_row():
    page = artefact.PAGE.read_text(encoding="utf-8")
    claims = published_claims()["claim"]
    assert [name for name in claims if f"\n| {name} | " not in page] == []
    assert len(claims) > 40


def test_a_time_is_predicted_unless_every_job_was_measured(tiny):
    part = edition(tiny, {}).part(list(tiny.products))
    whole = edition(tiny, dict.fromkeys(part, 60.0))
    assert artefact.costs(whole, whole.keys)[1:5] == [
        artefact.on_two_cores([60.0] * len(part)),
        "1 min",
        "0.5 GB",
        f"{1.5 * len(part):.1f} GB",
    ]
    lacking = edition(tiny, dict.fromkeys(sorted(part)[1:], 60.0))
    seconds = planned_seconds(tiny).values()
    assert artefact.costs(lacking, lacking.keys)[1:5] == [
        f"{artefact.on_two_cores(seconds)}, predicted",
        f"{artefact.on_two_cores([max(seconds)])}, predicted",
        *["not measured"] * 2,
    ]


def test_a_claim_without_its_runs_is_not_said_to_be_measured(tiny):
    claims = artefact.claims_of("bruch2019")
    made = edition(tiny, {})
    assert artefact.measurement(made, "bruch2019", claims["C04"]) == "–"  # without Figure 2
    shown = artefact.measurement(made, "bruch2019", claims["C02"])
    assert shown == "`table1` on web30k_standin, yahoo1_standin"
    assert artefact.measurement(made, "bruch2019", claims["D01"]) == "`figure1`, computed"


@pytest.mark.parametrize(
    ("seconds", "told"),
    [([1.0, 1.0], "1 s"), ([30, 90], "1.5 min"), ([60, 60], "1 min"), ([7200, 8000], "2.2 h")],
)
def test_two_cores_share_the_jobs_but_not_the_longest(seconds, told):
    assert artefact.on_two_cores(seconds) == told


def test_jobs_are_recorded_from_what_a_run_leaves(tiny, tmp_path):
    run, other = sorted(tiny.runs)[:2]
    log = tmp_path / f"logs/tiny/fit/{run}.benchmark.tsv"
    log.parent.mkdir(parents=True)
    log.write_text("s\th:m:s\tmax_rss\n12.34\t0:00:12\t456.7\n", encoding="utf-8")
    results = tmp_path / f"results/tiny/runs/{run}"
    results.mkdir(parents=True)
    machine = {"environment": {"processor": "P", "cores": 2}}
    (results / "run.json").write_text(json.dumps(machine), encoding="utf-8")
    (results / "model").write_bytes(bytes(2_000_000))
    (row,) = record.measured(tiny, tmp_path).to_dict("records")
    assert row == {
        "edition": "tiny",
        "job": f"fit/{run}",
        "seconds": 12.3,
        "memory_mb": 457,
        "disk_mb": 2.0,
        "processor": "P",
        "cores": 2,
    }
    for used, seconds in (("12.34\t456.7\t6.21", 6.2), ("12.34\t456.7\t24.0", 12.3)):
        log.write_text(f"s\tmax_rss\tcpu_time\n{used}\n", encoding="utf-8")
        assert record.measured(tiny, tmp_path)["seconds"].item() == seconds
    old = pd.DataFrame(
        [
            {**row, "seconds": 1.0},
            {**row, "job": f"fit/{other}"},
            {**row, "job": "fit/no-longer-planned"},
            {**row, "edition": "demo", "job": "fit/another"},
        ]
    )
    merged = record.merged(old, pd.DataFrame([row]), tiny)
    kept = dict(zip(merged["job"], merged["seconds"], strict=True))
    assert kept == {"fit/another": 12.3, f"fit/{run}": 12.3, f"fit/{other}": 12.3}


#: Pages that name commands and leave how long each takes to the pages that measure or predict it.
NAMING = ("README.md", "CONTRIBUTING.md", "config/README.md", "docs/index.md", "docs/start.md")


@pytest.mark.parametrize("name", NAMING)
def test_how_long_a_command_takes_stands_in_one_place(name):
    """A duration elsewhere is quoted from there, which a link to the table shows."""
    text = (ROOT / name).read_text(encoding="utf-8")
    text = re.sub(r"\[[^]]*\]\((?:\.\./)?(?:docs/)?(?:artefact|scale)\.md#[^)]*\)", "", text)
    found = re.findall(r"(?:\w+ ){3}(?:minutes|min|hours?|hours of one process)\b", text)
    said = [words for words in found if re.search(r"\d|quarter|thousand|weeks|half", words)]
    assert said == []
