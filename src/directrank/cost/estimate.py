"""The cost of a study: per run, per figure and table, per paper and in total; and its error."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
import pandas as pd

from directrank.cost.facts import facts
from directrank.cost.predict import Cost, cost_of
from directrank.cost.rates import Rates
from directrank.papers.shared.evidence import PREPARED
from directrank.study.plan import Study
from directrank.study.results import FITS, RECORD
from directrank.study.specification import candidate_settings
from directrank.system.errors import DataError
from directrank.system.io import read_json

#: Parts of a run's seconds, in the order of :class:`directrank.cost.predict.Cost`.
PARTS = [field.name for field in fields(Cost) if field.name != "epochs"]


@dataclass(frozen=True)
class Estimate:
    """The predicted cost of a study on one machine.

    Attributes:
        rates: of the machine.
        runs: one row per run: ``run``, ``data``, ``known_from``, ``learner``, ``fits``, ``epochs``
            (of all fits), seconds by part, ``seconds``.
        products: one row per product, paper (``all``) and for the whole study (``all``, ``all``):
            ``paper``, ``product``, ``runs``, ``fits``, ``hours``, ``hours_own`` (of runs that
            nothing else needs). A run that several need is counted once in each sum.
    """

    rates: Rates
    runs: pd.DataFrame
    products: pd.DataFrame


def estimate(
    study: Study,
    rates: Rates,
    prepared_folder: str | Path = PREPARED,
    progress: Callable[[int, int], None] = lambda done, of: None,
) -> Estimate:
    """What the study will take at most, without any of its data being there.

    Args:
        study: the plan.
        rates: of the machine.
        prepared_folder: prepared data sets there are measured; for others their settings or the
            catalogue's counts say how large they are.
        progress: called as ``progress(done, of)``.

    Raises:
        ConfigError: the rates lack a loss or a learner that the study has.
    """
    rows = []
    for number, (run, spec) in enumerate(study.runs.items()):
        source = study.data[study.run_data[run]]
        size = facts(source, spec["fold"], prepared_folder)
        cost = cost_of(spec, size, rates)
        restarts = spec.get("training", {}).get("restarts", 1)
        rows.append(
            {
                "run": run,
                "data": source.name,
                "known_from": size.origin,
                "learner": spec["learner"],
                "fits": spec["trials"] * len(candidate_settings(spec)) * restarts,
                "epochs": round(cost.epochs),
                **{part: getattr(cost, part) for part in PARTS},
                "seconds": cost.seconds,
            }
        )
        progress(number + 1, len(study.runs))
    columns = ["run", "data", "known_from", "learner", "fits", "epochs", *PARTS, "seconds"]
    runs = pd.DataFrame(rows, columns=columns)
    return Estimate(rates, runs, _by_product(study, runs))


def _by_product(study: Study, runs: pd.DataFrame) -> pd.DataFrame:
    seconds = dict(zip(runs["run"], runs["seconds"], strict=True))
    fits = dict(zip(runs["run"], runs["fits"], strict=True))
    needs = {
        key: {cell["run"] for cells in plan["experiments"].values() for cell in cells}
        for key, plan in study.products.items()
    }
    papers: dict[str, set[str]] = {}
    for (paper, _), names in needs.items():
        papers.setdefault(paper, set()).update(names)

    def row(paper: str, product: str, names: set[str], others: list[set[str]]) -> dict[str, object]:
        own = names.difference(*others)
        return {
            "paper": paper,
            "product": product,
            "runs": len(names),
            "fits": sum(fits[name] for name in names),
            "hours": sum(seconds[name] for name in names) / 3600,
            "hours_own": sum(seconds[name] for name in own) / 3600,
        }

    rows = []
    for paper, together in papers.items():
        for key, names in needs.items():
            if key[0] == paper:
                others = [found for other, found in needs.items() if other != key]
                rows.append(row(*key, names, others))
        others = [found for other, found in papers.items() if other != paper]
        rows.append(row(paper, "all", together, others))
    rows.append(row("all", "all", set(seconds), []))
    return pd.DataFrame(rows)


def against(found: Estimate, results: str | Path) -> pd.DataFrame:
    """Predicted beside recorded seconds, for every run that has results.

    ``ratio`` is recorded ÷ predicted. Predictions take every epoch that a run may take; where a
    run stopped early, ``ratio_at_epochs`` compares with the prediction for the epochs it took.

    Args:
        found: the prediction.
        results: the edition's folder of results, with ``runs/<run>/run.json`` in it.

    Returns:
        ``run``, ``predicted_s``, ``recorded_s``, ``ratio``, ``epochs_planned``, ``epochs_taken``,
        ``ratio_at_epochs``.

    Raises:
        DataError: no run of the study has results there.
    """
    rows = []
    for run in found.runs.itertuples():
        folder = Path(results) / "runs" / run.run
        if not (folder / RECORD).is_file():
            continue
        recorded = read_json(folder / RECORD)["seconds"]
        # The record's clock starts when the process has started.
        predicted = run.seconds - run.start
        taken = _epochs_taken(folder)
        at_epochs = predicted * (taken / run.epochs if taken and run.epochs else 1.0)
        rows.append(
            {
                "run": run.run,
                "predicted_s": predicted,
                "recorded_s": recorded,
                "ratio": recorded / predicted,
                "epochs_planned": run.epochs,
                "epochs_taken": taken,
                "ratio_at_epochs": recorded / at_epochs,
            }
        )
    if not rows:
        raise DataError(
            "no run of this edition has results here",
            "name the folder that holds 'runs', such as results/demo",
            file=results,
        )
    return pd.DataFrame(rows)


def _epochs_taken(folder: Path) -> float | None:
    """Epochs (or trees) of all fits; of restarts only the chosen one is on record."""
    fits = pd.read_csv(folder / FITS)
    if "epochs" in fits:
        spec = read_json(folder / RECORD)["spec"]
        return float(fits["epochs"].sum() * spec.get("training", {}).get("restarts", 1))
    history = folder / "history.csv"
    return float(len(pd.read_csv(history))) if history.is_file() else None


def geometric_mean(values: pd.Series) -> float:
    """The geometric mean: a ratio of 2 and one of 1/2 even out."""
    return float(np.exp(np.log(values).mean()))
