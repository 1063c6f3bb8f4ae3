"""Predict the seconds of runs from the recorded time of the run that is nearest to each.

``recorded.csv`` beside this module has the runs of the editions ``demo``, ``real`` and
``rehearsal``, and what was measured on a GPU; benchmarks/record_costs.py writes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from functools import cache
from importlib.resources import files

import numpy as np
import pandas as pd

from directrank.cost.facts import facts
from directrank.cost.features import NAMES, SIZES, Features, features_of
from directrank.edition.plan import Study

#: So many recorded runs give the time of another, so that none that was disturbed or had to compile
#: loops decides alone.
NEAREST = 3

#: What is predicted of a run: its seconds, those of them that do not grow with epochs or trees, the
#: nearest recorded run, and whether that one may have ended before its last epoch.
PREDICTED = ("seconds", "start", "like", "ended_early")


@cache
def recorded(device: str = "cpu") -> pd.DataFrame:
    """The recorded runs on a ``cpu`` or with ``cuda``: a row per run.

    Its columns are ``run``, ``device``, those of :class:`directrank.cost.features.Features` but
    ``fixed``, ``seconds`` of a clock and ``peak_mb``.
    """
    with (files("directrank.cost") / "recorded.csv").open(encoding="utf-8") as file:
        table = pd.read_csv(file, keep_default_na=False, na_values={"peak_mb": [""]})
    return table[table["device"] == device].reset_index(drop=True)


def predicted(
    runs: Mapping[str, Features], table: pd.DataFrame, leave_out: bool = False
) -> pd.DataFrame:
    """What runs take on the machine of the recorded ones.

    A run that was recorded itself takes what it took. Any other takes the median of what the
    :data:`NEAREST` recorded runs of its learner took, each times the ratio of their work. The
    distance of two runs is the sum of the logarithms of the ratios of their sizes
    (:data:`directrank.cost.features.SIZES`), plus one for each name in which they differ
    (:data:`~directrank.cost.features.NAMES`).

    Args:
        runs: run → features, on the device of the table.
        table: what :func:`recorded` returned.
        leave_out: predict recorded runs as if they had not been recorded, from the nearest other.

    Returns:
        A row of :data:`PREDICTED` per run, in the order and with the names of ``runs``. ``seconds``
        is not a number if no run of its learner was recorded.
    """
    own = {run: number for number, run in enumerate(table["run"])}
    names = table[list(NAMES)].to_numpy()
    sizes = np.log(np.maximum(table[list(SIZES)].to_numpy(float), 1.0))
    taken, work = (table[name].to_numpy(float) for name in ("seconds", "work"))
    places = {name: rows.index.to_numpy() for name, rows in table.groupby("learner")}
    told = []
    for run, features in runs.items():
        near = places.get(features.learner, np.empty(0, int))
        if leave_out and run in own:
            near = near[near != own[run]]
        if not len(near):
            told.append((np.nan, np.nan, "", False))
            continue
        if run in own and not leave_out:
            found = np.array([own[run]])
        else:
            distances = _distances(features, names[near], sizes[near])
            found = near[distances.argsort(kind="stable")[:NEAREST]]
        seconds = float(np.median(taken[found] / work[found])) * features.work
        start = seconds * features.fixed / features.work
        told.append((seconds, start, table.at[found[0], "run"], table.at[found[0], "ends_early"]))
    return pd.DataFrame(told, index=list(runs), columns=list(PREDICTED))


def _distances(features: Features, names: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """The distance of a run to each recorded one, of which there are names and logarithms."""
    values = asdict(features)
    differ = names != np.array([values[name] for name in NAMES], dtype=object)
    size = np.log(np.maximum([values[name] for name in SIZES], 1.0))
    return differ.sum(axis=1) + np.abs(sizes - size).sum(axis=1)


def planned_seconds(study: Study) -> dict[str, float]:
    """The seconds of each run of a plan on the machine of the recorded runs.

    They are the same on every machine and whatever is prepared, and PyTorch is not imported, so
    that every Snakemake process can divide the work in the same way. A run of a learner of which no
    run was recorded takes a minute.
    """
    nowhere, table = "/dev/null", recorded()  # prepared data would be measured
    known = dict(zip(table["run"], table["seconds"], strict=True))
    features = {
        run: features_of(spec, facts(study.data[study.run_data[run]], spec["fold"], nowhere))
        for run, spec in study.runs.items()
        if run not in known
    }
    others = predicted(features, table)["seconds"].fillna(60.0).to_dict()
    return {run: float((known if run in known else others)[run]) for run in study.runs}
