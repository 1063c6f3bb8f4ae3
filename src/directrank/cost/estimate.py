"""Predict the cost of a study per run, product and paper and in total, and measure the error."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.optimize import lsq_linear

from directrank.cost.facts import facts
from directrank.cost.predict import PARTS, cost_of
from directrank.cost.rates import Rates
from directrank.edition.plan import Study, runs_behind
from directrank.study.results import FITS, RECORD
from directrank.study.specification import candidate_settings
from directrank.system.errors import DataError
from directrank.system.io import read_json
from directrank.system.usage import read_usage

#: Each factor of :func:`calibrated` is shrunk towards 1 with this share of a run's weight, and
#: bounded.
_HELD, _BOUNDS = 0.1, (0.1, 10.0)


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
    prepared_folder: str | Path = "data/prepared",
    progress: Callable[[int, int], None] = lambda done, of: None,
) -> Estimate:
    """Predict an upper bound of the study's cost; its data need not be prepared.

    Args:
        study: the plan.
        rates: of the machine.
        prepared_folder: data sets that are prepared in it are measured; the sizes of others follow
            from their settings or from the catalogue.
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
                **asdict(cost),
                "epochs": round(cost.epochs),
                "seconds": cost.seconds,
            }
        )
        progress(number + 1, len(study.runs))
    names = ["run", "data", "known_from", "learner", "fits", "epochs", *PARTS, "seconds"]
    runs = pd.DataFrame(rows, columns=names)
    return Estimate(rates, runs, _by_product(study, runs))


def runs_of_products(study: Study) -> dict[tuple[str, str], set[str]]:
    """The runs from which each product is drawn."""
    return {key: runs_behind([plan]) for key, plan in study.products.items()}


def runs_of_papers(study: Study) -> dict[str, set[str]]:
    """The runs of each paper; one that several papers share belongs to each of them."""
    papers: dict[str, set[str]] = {}
    for (paper, _), names in runs_of_products(study).items():
        papers[paper] = papers.get(paper, set()) | names
    return papers


def _by_product(study: Study, runs: pd.DataFrame) -> pd.DataFrame:
    runs = runs.set_index("run")
    needs, papers = runs_of_products(study), runs_of_papers(study)

    def row(paper: str, product: str, names: set[str], others: list[set[str]]) -> dict[str, object]:
        needed, own = runs.loc[sorted(names)], runs.loc[sorted(names.difference(*others))]
        return {
            "paper": paper,
            "product": product,
            "runs": len(names),
            "fits": needed["fits"].sum(),
            "hours": needed["seconds"].sum() / 3600,
            "hours_own": own["seconds"].sum() / 3600,
        }

    rows = []
    for paper, together in papers.items():
        for key, names in needs.items():
            if key[0] == paper:
                rows.append(row(*key, names, [needs[other] for other in needs if other != key]))
        others = [papers[other] for other in papers if other != paper]
        rows.append(row(paper, "all", together, others))
    rows.append(row("all", "all", set(runs.index), []))
    return pd.DataFrame(rows)


def against(prediction: Estimate, results: str | Path) -> pd.DataFrame:
    """Compare predicted with recorded seconds for every run that has been measured.

    It is :func:`compared` with :func:`recorded`, which say what is returned and raised.
    """
    return compared(prediction, recorded(prediction, results))


def recorded(prediction: Estimate, results: str | Path) -> pd.DataFrame:
    """What the measured runs of a study took.

    Args:
        prediction: the prediction.
        results: the edition's folder of results, such as ``results/demo``; the times of fits are in
            ``logs/demo/fit/<run>.benchmark.tsv`` beside ``results``.

    Returns:
        ``run``, ``recorded_s``, ``epochs_taken``, ``processor_s``, ``memory_mb`` (the job's peak).

    Raises:
        DataError: no run of the study has been measured.
    """
    results = Path(results)
    logs = results.parent.parent / "logs" / results.name / "fit"
    rows = []
    for run in prediction.runs["run"]:
        folder, used = results / "runs" / run, read_usage(logs / f"{run}.benchmark.tsv")
        if used is None or not (folder / RECORD).is_file():
            continue
        rows.append(
            {
                "run": run,
                "recorded_s": used["s"],
                "epochs_taken": _epochs_taken(folder),
                "processor_s": used["cpu_time"],
                "memory_mb": used["max_rss"],
            }
        )
    if not rows:
        raise DataError(
            "no run of this edition has been measured here",
            "name a folder of results that the workflow wrote, such as results/demo",
            file=results,
        )
    return pd.DataFrame(rows).astype({"epochs_taken": float})


def compared(prediction: Estimate, measured: pd.DataFrame) -> pd.DataFrame:
    """Compare predicted with recorded seconds.

    ``ratio`` is recorded ÷ predicted. Predictions assume every epoch that a run may take; if a run
    stopped early, ``ratio_at_epochs`` compares with ``predicted_at_epochs_s``, the prediction for
    the epochs that it took.

    Args:
        prediction: the prediction.
        measured: in the form of :func:`recorded`.

    Returns:
        In the order of the prediction ``run``, ``predicted_s``, ``recorded_s``, ``ratio``,
        ``epochs_planned``, ``epochs_taken``, ``predicted_at_epochs_s``, ``ratio_at_epochs``,
        ``processor_s``, ``memory_mb``, and any further columns of ``measured``.
    """
    planned = prediction.runs[["run", "start", "seconds", "epochs"]]
    runs = planned.merge(measured, on="run")
    taken, epochs = runs["epochs_taken"], runs["epochs"]
    share = (taken.where(taken > 0) / epochs.where(epochs > 0)).fillna(1.0)
    at_epochs = runs["start"] + share * (runs["seconds"] - runs["start"])
    frame = pd.DataFrame(
        {
            "run": runs["run"],
            "predicted_s": runs["seconds"],
            "recorded_s": runs["recorded_s"],
            "ratio": runs["recorded_s"] / runs["seconds"],
            "epochs_planned": epochs,
            "epochs_taken": taken,
            "predicted_at_epochs_s": at_epochs,
            "ratio_at_epochs": runs["recorded_s"] / at_epochs,
        }
    )
    return frame.join(runs.drop(columns=[*planned, "recorded_s", "epochs_taken"]))


def _epochs_taken(folder: Path) -> float | None:
    """Epochs (or trees) of all fits; of several restarts, only the chosen one is recorded."""
    fits = pd.read_csv(folder / FITS)
    if "epochs" in fits:
        spec = read_json(folder / RECORD)["spec"]
        return float(fits["epochs"].sum() * spec.get("training", {}).get("restarts", 1))
    history = folder / "history.csv"
    return float(len(pd.read_csv(history))) if history.is_file() else None


def calibrated(prediction: Estimate, measured: pd.DataFrame) -> Rates:
    """The prediction's rates, corrected by the times of runs on the same machine.

    There is one factor each for the start, networks with their evaluation, losses, steps, and every
    learner that does not train networks in batches. The factors minimise the squared relative error
    and stay at 1 where the runs give no information.

    Args:
        prediction: the prediction.
        measured: what :func:`against` returned for it.
    """
    runs = prediction.runs.set_index("run").loc[measured["run"]].reset_index()
    share = (measured["epochs_taken"] / runs["epochs"].replace(0, np.nan)).fillna(1.0)
    parts = runs[["start", "loss", "steps"]].copy()
    parts["network"] = runs["network"] + runs["evaluation"]
    for name in prediction.rates.learners:
        parts[name] = runs["other"].where(runs["learner"] == name, 0.0)
    parts[parts.columns[1:]] = parts[parts.columns[1:]].mul(share, axis=0)
    held = _HELD * np.eye(parts.shape[1])
    solution = lsq_linear(
        np.vstack([parts.div(measured["recorded_s"].to_numpy(), axis=0), held]),
        np.concatenate([np.ones(len(parts)), held.sum(axis=1)]),
        bounds=_BOUNDS,
    )
    factor = dict(zip(parts.columns, solution.x.tolist(), strict=True))
    old = prediction.rates
    return replace(
        old,
        note=f"{old.note}; corrected by {len(measured)} recorded runs",
        flops={name: value / factor["network"] for name, value in old.flops.items()},
        flops_in_loops={
            name: value / factor["network"] for name, value in old.flops_in_loops.items()
        },
        element_seconds=old.element_seconds * factor["network"],
        evaluation_seconds=old.evaluation_seconds * factor["network"],
        tensor_seconds=old.tensor_seconds * factor["steps"],
        calls={name: value * factor["steps"] for name, value in old.calls.items()},
        lists={
            name: [[x, y * factor["loss"]] for x, y in curve] for name, curve in old.lists.items()
        },
        learners={name: value * factor[name] for name, value in old.learners.items()},
        start_seconds=old.start_seconds * factor["start"],
    )
