"""Train a random sample of the comparison's published runs again, and compare their values.

    python benchmarks/retrain_sample.py FOLDER COLLECTION [COLLECTION ...] [--share 0.05]

The committed results of `real` were trained over weeks, by the code of several commits. Of each
scorer and the trees of a collection, and of the controls, a random share of the runs is trained
with the code of today, in FOLDER, where an interrupted sample continues. The values per query of
each training, fold and metric are compared with those in
paper_tables/real/one_protocol/per_query_<collection>.parquet.
Writes benchmarks/results/retrained.csv, in which it leaves the rows of other collections as they
are.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from directrank import metrics
from directrank.edition.plan import Study, load
from directrank.papers.one_protocol.methods import SCORERS
from directrank.study import provenance
from directrank.study.batch import PlannedRun, plan_text
from directrank.study.published import open_results
from directrank.study.results import load_run
from directrank.system import arithmetic
from directrank.system.io import write_csv, write_text
from directrank.system.schema import read_yaml

ROOT = Path(__file__).resolve().parents[1]
TABLES = ROOT / "paper_tables/real/one_protocol"
OUT = Path(__file__).parent / "results/retrained.csv"

#: The digits of published values, which are single precision.
PRECISION = 1e-6


def sample(study: Study, collection: str, share: float) -> Iterator[tuple[str, str, str]]:
    """The run, the method and the scorer of some of a collection's cells, drawn per scorer."""
    plan = study.products["one_protocol", f"table_{collection}"]
    stream = random.Random(f"retrain {collection}")
    for experiment, cells in sorted(plan["experiments"].items()):
        part = experiment.removeprefix(f"{collection}_")
        for cell in stream.sample(cells, math.ceil(share * len(cells))):
            yield cell["run"], cell["settings"]["method"], SCORERS.get(part, part)


def train(study: Study, runs: list[str], folder: Path, collection: str) -> None:
    """Train runs that are not trained yet, on data that are prepared if need be."""
    data = folder / f"data/{collection}"
    # The instructions that the workflow allows decide the last bits, and so how training goes on.
    environment = os.environ | arithmetic.variables(study.config["arithmetic"])

    def directrank(*arguments: str | Path) -> None:
        words = [sys.executable, "-m", "directrank", *map(str, arguments)]
        subprocess.run(words, check=True, env=environment)

    if not (data / "prepared.json").is_file():
        directrank("prepare", collection, "--out", data)
    specs = [study.runs[run] for run in runs]
    planned = map(PlannedRun, runs, specs, map(provenance.run_digest, specs))
    plan = folder / f"{collection}.json"
    write_text(plan, plan_text(planned))
    directrank("train", plan, "--data", data, "--results", folder, "--logs", folder / "logs")


def compared(folder: Path, run: str, published: pd.DataFrame) -> dict[str, object]:
    """How far the values of a run are from those that were published."""
    result = load_run(folder / "runs" / run)
    keys = ["trial", "query_id"]
    values = result.by_split["test"].set_index(keys).sort_index()
    published = published.set_index(keys).sort_index()
    names = [metrics.label(metric) for metric in result.spec["evaluation"]]
    away = (values[names] - published[names]).abs()
    missing = values[names].isna() != published[names].isna()
    means = values["ndcg@10"].mean() - published["ndcg@10"].mean()
    return {
        "queries": len(values),
        "values_that_differ": int((missing | (away > PRECISION)).any(axis=1).sum()),
        "largest_difference": round(float(np.nanmax(away)), 6),
        "difference_of_mean_ndcg": round(float(means), 6),
        "processor": result.record["environment"]["processor"],
    }


def main() -> None:
    """Write the comparison of samples."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("collections", nargs="+")
    parser.add_argument("--share", type=float, default=0.05, help="share of the runs (0.05)")
    options = parser.parse_args()
    study = load(read_yaml(ROOT / "config/real.yaml"), ROOT)
    rows = []
    for collection in options.collections:
        drawn = list(sample(study, collection, options.share))
        train(study, [run for run, _, _ in drawn], options.folder, collection)
        published = open_results(TABLES / f"per_query_{collection}.parquet")
        for run, method, scorer in drawn:
            fold = study.runs[run]["fold"]
            mine = (published["method"] == method) & (published["scorer"] == scorer)
            found = compared(options.folder, run, published[mine & (published["fold"] == fold)])
            rows.append(
                {
                    "collection": collection,
                    "method": method,
                    "scorer": scorer,
                    "fold": fold,
                    **found,
                }
            )
    table = pd.DataFrame(rows)
    if OUT.is_file():
        old = pd.read_csv(OUT)
        table = pd.concat([old[~old["collection"].isin(options.collections)], table])
    write_csv(OUT, table.sort_values(["collection", "scorer", "method", "fold"]))
    print(table.to_string(index=False))


if __name__ == "__main__":
    main()
