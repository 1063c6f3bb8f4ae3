"""Record the seconds, memory and disk of each job of a finished edition.

    python benchmarks/record_jobs.py config/real.yaml [--folder CLONE]

reads the resources that jobs used from ``CLONE/logs`` (``….benchmark.tsv``) and the sizes of their
files from ``CLONE/results`` and ``CLONE/data/prepared``, and writes both to
benchmarks/results/jobs.csv. Rows of jobs that the edition no longer has are dropped; rows of jobs
that were not run this time are kept, so that the parts of an edition can be recorded one after
another. A fit that was killed counts from the moment at which it resumed. ``python
docs/artefact.py`` writes the page that shows these records.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import pandas as pd

from directrank.edition.plan import Study, load
from directrank.papers.shared import product as papers
from directrank.papers.shared.claims import claims_of
from directrank.system.io import write_csv
from directrank.system.schema import read_yaml
from directrank.system.usage import read_usage

ROOT = Path(__file__).resolve().parents[1]
FACTS = ROOT / "benchmarks/results/jobs.csv"
COLUMNS = ["edition", "job", "seconds", "memory_mb", "disk_mb", "processor", "cores"]


def jobs_of(study: Study) -> dict[str, Path]:
    """Every job of an edition, such as ``fit/<run>``, and its measurement below ``logs``."""
    names = [f"fit/{run}" for run in study.runs]
    for paper, product in study.products:
        kind = papers.product(paper, product).kind
        names.append(f"{kind}/{paper}/{product}")
    with_claims = {paper for paper, _ in study.products if claims_of(paper)}
    names += [f"claims/{paper}" for paper in with_claims]
    files = {name: Path(study.edition) / f"{name}.benchmark.tsv" for name in sorted(names)}
    return files | {f"prepare/{key}": Path(f"prepare/{key}.benchmark.tsv") for key in study.data}


def measured(study: Study, folder: Path) -> pd.DataFrame:
    """A row of :data:`COLUMNS` for each job that was run in ``folder``.

    Seconds are those of a clock, or of CPU time where that is less, because the machine had other
    work beside. Disk is what the job left: the result files of a run, a prepared data set with its
    scaled copies; none is given for products.
    """
    rows = []
    for job, file in jobs_of(study).items():
        used = read_usage(folder / "logs" / file)
        if used is None:  # not begun, or killed
            continue
        kind, _, name = job.partition("/")
        left = {
            "fit": folder / f"results/{study.edition}/runs/{name}",
            "prepare": folder / f"data/prepared/{name}",
        }.get(kind)
        rows.append(
            {
                "edition": study.edition,
                "job": job,
                "seconds": round(float(np.fmin(used["s"], used["cpu_time"])), 1),
                "memory_mb": round(used["max_rss"]),
                "disk_mb": None if left is None else round(megabytes(left), 1),
                **machine(folder / f"results/{study.edition}/runs"),
            }
        )
    return pd.DataFrame(rows, columns=COLUMNS)


def megabytes(folder: Path) -> float:
    """The size of all files below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6


def machine(runs: Path) -> dict[str, object]:
    """Processor and cores, as the record of any run has them."""
    record = next(runs.glob("*/run.json"), None)
    environment = json.loads(record.read_text(encoding="utf-8"))["environment"] if record else {}
    return {"processor": environment.get("processor"), "cores": environment.get("cores")}


def merged(old: pd.DataFrame, new: pd.DataFrame, study: Study) -> pd.DataFrame:
    """``old`` with the rows of ``new`` in the place of its own; jobs no longer planned go."""
    others = old[old["edition"] != study.edition]
    kept = old[(old["edition"] == study.edition) & old["job"].isin(jobs_of(study))]
    kept = kept[~kept["job"].isin(new["job"])]
    parts = [part for part in (others, kept, new) if not part.empty]
    rows = pd.concat(parts) if parts else old
    return rows.sort_values(["edition", "job"], ignore_index=True)


def main() -> None:
    """Record one edition."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("config", type=Path, help="the edition's file")
    parser.add_argument("--folder", type=Path, default=ROOT, help="where it ran (default: here)")
    options = parser.parse_args()
    study = load(read_yaml(options.config), ROOT)
    old = pd.read_csv(FACTS) if FACTS.is_file() else pd.DataFrame(columns=COLUMNS)
    new = measured(study, options.folder)
    write_csv(FACTS, merged(old, new, study))
    print(f"{len(new)} of {len(jobs_of(study))} jobs of {study.edition} were measured")


if __name__ == "__main__":
    main()
