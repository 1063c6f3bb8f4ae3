"""Predict the cost of a study per run, product and paper and in total, and measure the error."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from directrank.cost.facts import Facts, facts
from directrank.cost.features import features_of, models_of
from directrank.cost.machine import REFERENCE, Machine
from directrank.cost.memory import room_of
from directrank.cost.predict import predicted, recorded
from directrank.edition.plan import Study, runs_of_papers, runs_of_products
from directrank.study.results import FITS, RECORD
from directrank.study.specification import in_passes
from directrank.system.errors import ConfigError, DataError
from directrank.system.io import digest_of, read_json
from directrank.system.usage import read_usage


@dataclass(frozen=True)
class CostEstimate:
    """The predicted cost of a study.

    Attributes:
        cpu, gpu: the machines.
        runs: one row per run: ``run``, ``data``, ``known_from`` (the source of its size),
            ``learner``, ``fits``, ``epochs`` (of all fits), ``seconds`` on the CPU, ``start``
            (those that do not grow with epochs), ``like`` (the nearest recorded run),
            ``ended_early`` (whether that may have ended before its last epoch), ``gpu_seconds``,
            ``gpu_like``.
        products: one row per product, paper (``all``) and for the whole study (``all``, ``all``):
            ``paper``, ``product``, ``runs``, ``fits``, ``cpu_hours``, ``cpu_hours_own`` (of runs
            that nothing else needs), ``gpu_hours``, ``gpu_hours_own``. A run that several need is
            counted once in each sum.
    """

    cpu: Machine
    gpu: Machine
    runs: pd.DataFrame
    products: pd.DataFrame


def estimate(
    study: Study,
    cpu: Machine = REFERENCE["cpu"],
    gpu: Machine = REFERENCE["cuda"],
    prepared_folder: str | Path = "data/prepared",
) -> CostEstimate:
    """Predict what a study costs; its data need not be prepared.

    Args:
        study: the plan.
        cpu: the machine whose CPU trains.
        gpu: a GPU that trains networks instead.
        prepared_folder: data sets that are prepared in it are measured; the sizes of others follow
            from their settings or from the catalogue.

    Raises:
        ConfigError: of a learner that the study has, no run was recorded.
    """
    sizes = {
        run: facts(study.data[study.run_data[run]], spec["fold"], prepared_folder)
        for run, spec in study.runs.items()
    }
    on_cpu = {run: features_of(spec, sizes[run]) for run, spec in study.runs.items()}
    together = _together(study, sizes)
    on_gpu = {
        run: features_of(study.runs[run], sizes[run], "cuda", models)
        for run, models in together.items()
    }
    times = predicted(on_cpu, recorded())
    unknown = sorted({on_cpu[run].learner for run in times.index[times["seconds"].isna()]})
    if unknown:
        raise ConfigError(
            f"no run of {', '.join(unknown)} was recorded",
            "record one: python benchmarks/record_costs.py",
        )
    runs = pd.DataFrame(
        {
            "run": list(study.runs),
            "data": [study.data[study.run_data[run]].name for run in study.runs],
            "known_from": [size.origin for size in sizes.values()],
            "learner": [features.learner for features in on_cpu.values()],
            "fits": [features.fits for features in on_cpu.values()],
            "epochs": [features.epochs for features in on_cpu.values()],
        }
    ).join(times, on="run")
    runs[["seconds", "start"]] *= cpu.slowness
    on_gpus = predicted(on_gpu, recorded("cuda")).reindex(runs["run"]).reset_index()
    # What is no network stays on the CPU.
    runs["gpu_seconds"] = (on_gpus["seconds"] * gpu.slowness).fillna(runs["seconds"])
    runs["gpu_like"] = on_gpus["like"].fillna("on the CPU")
    return CostEstimate(cpu, gpu, runs, _by_product(study, runs))


def _together(study: Study, sizes: Mapping[str, Facts]) -> dict[str, int]:
    """How many models a GPU trains in one pass with those of each run of networks.

    They are those of the runs on the same lists whose scorers have the same settings, as many as
    have room.
    """
    networks = {run: spec for run, spec in study.runs.items() if spec["learner"] == "neural"}
    shapes: dict[str, list[str]] = {}
    for group in in_passes(networks):
        for run in group:
            shape = digest_of([group[0], networks[run]["model"]])
            shapes.setdefault(shape, []).append(run)
    return {
        run: min(
            sum(models_of(networks[other]) for other in runs), room_of(networks[run], sizes[run])
        )
        for runs in shapes.values()
        for run in runs
    }


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
            "cpu_hours": needed["seconds"].sum() / 3600,
            "cpu_hours_own": own["seconds"].sum() / 3600,
            "gpu_hours": needed["gpu_seconds"].sum() / 3600,
            "gpu_hours_own": own["gpu_seconds"].sum() / 3600,
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


def against(prediction: CostEstimate, results: str | Path) -> pd.DataFrame:
    """Compare predicted with measured seconds for every run that has been measured.

    It is :func:`compared` with :func:`measured_runs`, which say what is returned and raised.
    """
    return compared(prediction, measured_runs(prediction, results))


def measured_runs(prediction: CostEstimate, results: str | Path) -> pd.DataFrame:
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


def compared(prediction: CostEstimate, measured: pd.DataFrame) -> pd.DataFrame:
    """Compare predicted seconds on the CPU with measured ones.

    ``ratio`` is measured ÷ predicted. ``ratio_at_epochs`` compares with ``predicted_at_epochs_s``,
    the prediction for the epochs that a run took, where it stopped before its last; a run that is
    predicted from one that may have stopped early is predicted to stop as early.

    Args:
        prediction: the prediction.
        measured: in the form of :func:`measured_runs`.

    Returns:
        In the order of the prediction ``run``, ``predicted_s``, ``recorded_s``, ``ratio``,
        ``epochs_planned``, ``epochs_taken``, ``predicted_at_epochs_s``, ``ratio_at_epochs``,
        ``processor_s``, ``memory_mb``, and any further columns of ``measured``.
    """
    planned = prediction.runs[["run", "start", "seconds", "epochs", "ended_early"]]
    runs = planned.merge(measured, on="run")
    taken, epochs = runs["epochs_taken"], runs["epochs"]
    share = (taken.where(taken > 0) / epochs.where(epochs > 0)).fillna(1.0)
    share = share.where(~runs["ended_early"].astype(bool), 1.0)
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


def calibrated(machine: Machine, measured: pd.DataFrame) -> Machine:
    """A machine whose slowness is corrected by the times of its own runs: their median ratio.

    Args:
        machine: the CPU of the prediction.
        measured: what :func:`against` returned for it.
    """
    return replace(
        machine,
        slowness=machine.slowness * float(measured["ratio_at_epochs"].median()),
        note=f"{machine.note}; corrected by {len(measured)} recorded runs",
    )
