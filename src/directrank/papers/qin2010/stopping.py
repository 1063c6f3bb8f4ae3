"""When Algorithm 1 stopped, and what it would have come to under other caps on epochs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from directrank.papers.qin2010.comparisons import OWN, SMALL_START, TABLE4_METRICS, folds_mean
from directrank.papers.shared.evidence import Evidence, FinishedRun
from directrank.papers.shared.format import count, listed, number, spread
from directrank.papers.shared.leads import lead
from directrank.papers.shared.methods import Method, by_method
from directrank.papers.shared.product import TableResult
from directrank.papers.shared.tables import Cells, TableLayout, sections_of
from directrank.system.errors import DataError

#: The learner that is Algorithm 1 with its stopping rule.
LEARNER = "linear_ascent"

#: Its losses → their names in print.
NAMES = {"approx_ndcg": "ApproxNDCG", "approx_ap": "ApproxAP"}

#: Caps on epochs that tables compare with the stopping rule.
CAPS = (100, 500, 2000)

#: What tells the random starts of a run apart.
START = ["trial", "candidate", "restart"]

#: Training metrics in the history → their names in print.
TRAINING_METRICS = {
    "train_ndcg/letor": "training NDCG@n",
    "train_ndcg@5/letor": "training NDCG@5",
    "train_ndcg": "training NDCG@n",
    "train_ap": "training AP",
}

#: The end of training: so many of the epochs up to the cap are looked at where δ was not met.
LAST_PART = 0.2


def by_algorithm_1(runs: Sequence[FinishedRun]) -> list[FinishedRun]:
    """Those of the runs that are Algorithm 1 with its stopping rule."""
    return [run for run in runs if run.result.spec.get("learner") == LEARNER]


def starts_at(history: pd.DataFrame, cap: int | None = None) -> pd.DataFrame:
    """Where every random start was after ``cap`` epochs, or where it had stopped before.

    Args:
        history: of a run of Algorithm 1.
        cap: an epoch that the history has rows of; None for the end.

    Returns:
        One row of the history per trial, candidate and restart.
    """
    if cap is not None:
        history = history[history["epoch"] <= cap]
    return history.sort_values([*START, "epoch"]).groupby(START, as_index=False).last()


def chosen_at(history: pd.DataFrame, cap: int | None = None) -> pd.DataFrame:
    """The row of :func:`starts_at` that each trial would report.

    Of a candidate's starts that is the one with the best training objective (Algorithm 1), of the
    candidates the one that is best on validation (section 5.3).
    """
    starts = starts_at(history, cap)
    best = starts.loc[starts.groupby(["trial", "candidate"])["train_objective"].idxmin()]
    return best.loc[best.groupby("trial")["vali_metric"].idxmax()]


@dataclass(frozen=True)
class Ending:
    """How the random starts of some runs ended.

    Attributes:
        tolerance, cap: what was to stop them: δ, and a number of epochs.
        starts: how many there were.
        met: how many met the tolerance.
        median: the median of the epochs after which they ended.
        moves: what the history says of training → by how much it moved, at the most, over the last
            fifth of the epochs of a start that did not meet the tolerance; empty where all met it.
    """

    tolerance: float
    cap: int
    starts: int
    met: int
    median: float
    moves: Mapping[str, float]

    def __str__(self) -> str:
        text = (
            f"{count(self.met)} of {count(self.starts)} random starts met δ = {self.tolerance:g} "
            f"within the cap of {count(self.cap)} epochs, and half of all ended within "
            f"{count(round(self.median))}"
        )
        if self.moves:
            moved = listed([f"{what} by {move:.4f}" for what, move in self.moves.items()])
            text += f"; over the last fifth the others moved at most in {moved}"
        return text


def ending(runs: Sequence[FinishedRun]) -> Ending:
    """How the random starts of these runs of Algorithm 1 ended; they share δ and the cap."""
    training = runs[0].result.spec["training"]
    ends, moves = [], []
    for run in runs:
        history = run.result.history
        last = starts_at(history)
        ends.append(last[["epoch", "met"]].astype(float))
        moves.append(_moves(history, last, training["max_epochs"]))
    every = pd.concat(ends)
    return Ending(
        tolerance=training["tolerance"],
        cap=training["max_epochs"],
        starts=len(every),
        met=int(every["met"].sum()),
        median=float(every["epoch"].median()),
        moves=pd.concat(moves, axis=1).max(axis=1).dropna().to_dict(),
    )


def _moves(history: pd.DataFrame, last: pd.DataFrame, cap: int) -> pd.Series:
    """Per quantity the widest range over the last part of any start that the cap ended."""
    names = {"train_objective": "the objective", **TRAINING_METRICS}
    columns = [column for column in names if column in history]
    unmet = last.loc[~last["met"].astype(bool), START]
    late = history[history["epoch"] >= (1 - LAST_PART) * cap].merge(unmet, on=START)
    groups = late.groupby(START)[columns]
    moved = (groups.max() - groups.min())[groups.size() > 1].max()
    return moved.rename(names)


def ending_sentence(runs: Sequence[FinishedRun]) -> str:
    """What a caption says of training by Algorithm 1; empty where none of the runs is."""
    runs = by_algorithm_1(runs)
    if not runs:
        return ""
    spec = runs[0].result.spec
    name, dtype = NAMES[spec["loss"]["name"]], spec["training"]["dtype"]
    return f"{name} is Algorithm 1 in {dtype}: {ending(runs)}. "


def how_trained(methods: Mapping[str, Method]) -> str:
    """What a caption says of the training of a table's methods: epochs, cap and precision."""
    text = ending_sentence(methods[OWN].runs) if OWN in methods else ""
    others = [
        method.runs[0].result.spec["training"]
        for method in methods.values()
        if "training" in method.runs[0].result.spec and not by_algorithm_1(method.runs)
    ]
    epochs = [training["max_epochs"] for training in others if "max_epochs" in training]
    if not epochs:
        return text
    types = sorted({training.get("dtype", "float32") for training in others})
    what = "Other methods" if text else "Methods"
    return (
        f"{text}{what} that are trained by gradients have at most {spread(epochs, 'epoch')} in "
        f"{listed(types)}, and the best epoch on the validation set is kept. "
    )


def caps_of(runs: Sequence[FinishedRun]) -> list[int]:
    """The caps below their own that the histories of these runs have rows of."""
    training = runs[0].result.spec["training"]
    marks = (training.get("monitor") or {}).get("at", [])
    return [cap for cap in CAPS if cap in marks and cap < training["max_epochs"]]


def value_at(method: Method, column: str, cap: int | None) -> float:
    """The mean over folds and trials of a column of the history, under a cap on epochs."""
    return float(
        np.mean([chosen_at(run.result.history, cap)[column].mean() for run in method.runs])
    )


def _mean(heading: str, row: Mapping[str, Any]) -> str:
    return number(row[heading])


STOPPING: Cells = {
    "Cap on epochs": lambda row: count(row["cap"]),
    "met δ": lambda row: f"{count(row['met'])} of {count(row['starts'])}",
    "median epochs": lambda row: count(round(row["median_epochs"])),
    **{heading: partial(_mean, heading) for heading in TABLE4_METRICS},
}


def stopping(evidence: Evidence) -> TableResult:
    """Table 4's rows of Algorithm 1, had a cap on epochs stopped it before its rule."""
    runs = by_algorithm_1(evidence.runs("ohsumed_methods"))
    if not runs:
        raise DataError("Algorithm 1 was not run", "add ApproxNDCG to ohsumed_methods")
    methods = by_method(runs, "zero", order=(OWN, SMALL_START))
    rows = []
    for name, method in methods.items():
        training = method.runs[0].result.spec["training"]
        for cap in [*caps_of(method.runs), training["max_epochs"]]:
            starts = pd.concat([starts_at(run.result.history, cap) for run in method.runs])
            rows.append(
                evidence.about(method.dataset)
                | {
                    "method": name,
                    "cap": cap,
                    "starts": len(starts),
                    "met": int(starts["met"].sum()),
                    "median_epochs": float(starts["epoch"].median()),
                    "trials": method.runs[0].n_trials,
                    "folds": len(method.runs),
                }
                | {
                    heading: value_at(method, f"test_{letor}", cap)
                    for heading, (letor, _) in TABLE4_METRICS.items()
                }
            )
    data = pd.DataFrame(rows)
    first = next(iter(methods.values()))
    caption = (
        f"{OWN} of Table 4 under other caps on epochs, with the weights that the same random "
        "starts had at the cap: of a candidate's starts, the one with the best training objective "
        "at that point, and of the candidates, the one that is best on the validation set. Values "
        f"are NDCG with LETOR's discount on the test sets, {folds_mean(first)} and trials; queries "
        "without a relevant document count as 0. The last row of each is that of Table 4. "
        f"{ending_sentence(first.runs)}{evidence.sources(first.runs, 'test sets')}"
    )
    sections = sections_of(data, STOPPING, "method")
    return TableResult(data, TableLayout(_lead(data), caption, [*STOPPING], sections))


def _lead(data: pd.DataFrame) -> str:
    """How much of NDCG@n the smallest cap would have cost."""
    parts = []
    for name, group in data.groupby("method", sort=False):
        first, last = group.iloc[0], group.iloc[-1]
        parts.append(
            f"with a cap of {count(last['cap'])} epochs, {name} reaches NDCG@n "
            f"{number(last['NDCG@n'])}; "
            f"with one of {count(first['cap'])}, {number(first['NDCG@n'])}"
            if len(group) > 1
            else f"no smaller cap of {name} was recorded"
        )
    return lead(*parts)
