"""How much of what differs between trainings is the choice of their configurations.

    python benchmarks/choice_of_settings.py RUN [RUN ...]

RUN is a result folder of a run that tunes in each of several trials. Two trials of a run differ in
their random numbers, and some also in the configuration that they chose. The variance of a trial's
test metric is estimated from the pairs of trials that chose the same configuration, and from those
that did not: the excess of the latter is the choice's. It is also estimated without the losses some
of whose trainings fail on few queries (``ERRATIC``).
Writes benchmarks/results/choice_of_settings.csv, in which it leaves the rows of other collections
as they are.
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

#: Losses some of whose trainings fail on few queries, and which then vary most.
ERRATIC = ("sl_at_k", "twin_nerr")

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
            "loss": run.spec["loss"]["name"] if run.spec.get("loss") else run.spec["learner"],
            "same_configuration": chosen[one] == chosen[other],
            "variance": (means[one] - means[other]) ** 2 / 2,
        }


def main(folders: Sequence[str]) -> None:
    """Write the table of some runs."""
    found = pd.DataFrame([row for folder in folders for row in pairs(Path(folder))])
    steady = found[~found["loss"].isin(ERRATIC)]
    every = {"all": found, f"all but {' and '.join(ERRATIC)}": steady}
    table = pd.concat([estimates(some).assign(losses=name) for name, some in every.items()])
    old = pd.read_csv(OUT)
    old = old[~old["collection"].isin(found["collection"])]
    table = pd.concat([old, table]).sort_values(["collection", "losses", "same_configuration"])
    write_csv(OUT, table)
    print(table.to_string(index=False))


def estimates(found: pd.DataFrame) -> pd.DataFrame:
    """The standard deviation of a training's metric, where trials chose alike and where not."""
    groups = found.groupby(["collection", "same_configuration"])["variance"]
    table = groups.agg(["size", "mean", "sem"]).reset_index()
    table["standard_deviation"] = np.sqrt(table["mean"]).round(5)
    table["its_standard_error"] = (table["sem"] / (2 * np.sqrt(table["mean"]))).round(5)
    return table.drop(columns=["mean", "sem"]).rename(columns={"size": "pairs"})


if __name__ == "__main__":
    main(sys.argv[1:])
