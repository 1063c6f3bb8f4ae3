"""How much of what differs between trainings is the choice of their configurations.

    python benchmarks/choice_of_settings.py RUN [RUN ...]

RUN is a result folder of a run that tunes in each of several trials. Two trials of a run differ in
their random numbers, and some also in the configuration that they chose. The variance of a trial's
test metric is estimated from the pairs of trials that chose the same configuration, and from those
that did not: the excess of the latter is the choice's.
Writes benchmarks/results/choice_of_settings.csv.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from directrank import metrics
from directrank.study.results import load_run
from directrank.study.specification import trials_that_tune
from directrank.system.io import write_csv

OUT = Path(__file__).parent / "results/choice_of_settings.csv"


def pairs(folder: Path) -> Iterator[dict[str, object]]:
    """A row for each pair of a run's trials."""
    run = load_run(folder)
    if "tune" not in run.spec or trials_that_tune(run.spec) < run.spec["trials"]:
        return
    chosen = run.fits[run.fits["selected"]].set_index("trial")["candidate"]
    means = run.by_split["test"].groupby("trial")[metrics.label(run.spec["selection"])].mean()
    for one, other in itertools.combinations(means.index, 2):
        yield {
            "collection": run.spec["data"]["name"],
            "same_configuration": chosen[one] == chosen[other],
            "variance": (means[one] - means[other]) ** 2 / 2,
        }


def main(folders: Sequence[str]) -> None:
    """Write the table of some runs."""
    found = pd.DataFrame([row for folder in folders for row in pairs(Path(folder))])
    groups = found.groupby(["collection", "same_configuration"])["variance"]
    table = groups.agg(["size", "mean", "sem"]).reset_index()
    table["standard_deviation"] = np.sqrt(table["mean"]).round(5)
    table["its_standard_error"] = (table["sem"] / (2 * np.sqrt(table["mean"]))).round(5)
    write_csv(OUT, table.drop(columns=["mean", "sem"]).rename(columns={"size": "pairs"}))
    print(table.to_string(index=False))


if __name__ == "__main__":
    main(sys.argv[1:])
