"""Make the table of recorded runs from which `directrank cost` predicts.

    python benchmarks/record_costs.py

reads what jobs of the editions ``demo`` and ``real`` took from benchmarks/results/jobs.csv (see
``record_jobs.py``), what fits of ``rehearsal`` took from rehearsal.csv (see
``rehearsal_report.py``), and epochs on a GPU from gpu.csv (see ``bench_gpu.py``); derives the
features of each run from the editions' files; and writes src/directrank/cost/recorded.csv. It is
run again after any of them, or directrank.cost.features, has changed.

Times are those of a processor of 2024 (AMD EPYC, family 26); those of another are divided by how
much longer the same runs took there. 54 fits of the rehearsal ran on one of 2021, and are left out.
The GPU is an NVIDIA H200.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from bench_gpu import CASES, MODEL_AND_STEP, MODELS, STEPS
from bench_training import APPROX_NDCG, FEATURES, NETWORKS, YU2020
from training_commands import SMALL, TRIALS
from training_lists import web30k_lengths

from directrank.cost.facts import Facts, facts
from directrank.cost.features import NAMES, SIZES, Features, features_of
from directrank.cost.machine import as_recorded
from directrank.edition.plan import DataSource, load
from directrank.system.io import write_csv
from directrank.system.schema import read_yaml

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks/results"
TABLE = ROOT / "src/directrank/cost/recorded.csv"

#: Significant digits of sizes, which need not be more precise.
DIGITS = 3


def measured() -> pd.DataFrame:
    """``edition``, ``run``, ``seconds`` and ``peak_mb`` of each run on a CPU."""
    jobs = pd.read_csv(RESULTS / "jobs.csv").rename(columns={"memory_mb": "peak_mb"})
    fits = jobs[jobs["job"].str.startswith("fit/")]
    seconds = as_recorded(fits["seconds"], fits["processor"])
    fits = fits.assign(run=fits["job"].str.removeprefix("fit/"), seconds=seconds)
    rehearsal = pd.read_csv(RESULTS / "rehearsal.csv").rename(columns={"measured_s": "seconds"})
    rehearsal = rehearsal[rehearsal["earlier"]].assign(edition="rehearsal")
    names = ["edition", "run", "seconds", "peak_mb"]
    return pd.concat([fits[names], rehearsal[names]])


def on_a_cpu() -> Iterator[dict[str, Any]]:
    """A row for each recorded run; that of a run which its edition no longer has stays as it is."""
    earlier = {line["run"]: line for line in pd.read_csv(TABLE).to_dict("records")}
    for edition, runs in measured().groupby("edition"):
        study = load(read_yaml(ROOT / f"config/{edition}.yaml"), ROOT)
        for run in runs.itertuples():
            if run.run not in study.runs:
                if run.run in earlier:
                    yield earlier[run.run]
                continue
            spec, source = study.runs[run.run], study.data[study.run_data[run.run]]
            size = facts(source, spec["fold"], "/dev/null")
            yield row(run.run, "cpu", features_of(spec, size), run.seconds, round(run.peak_mb))


def on_a_gpu() -> Iterator[dict[str, Any]]:
    """A row for each network of which an epoch was timed, on the lists of bench_gpu.py."""
    web30k = facts(DataSource("web30k", "web30k", {}, "archive"), 1, "/dev/null").lengths["train"]
    for name, (model, loss, training) in CASES.items():
        part = "" if name in NETWORKS else ", from a tenth"
        for precision in ("float32", "bfloat16"):
            settings = {**training, "precision": precision}
            yield epoch(f"{name} {precision}{part}", "", model, loss, settings, web30k)
    for queries in (1, 16):
        step = "1 query a step" if queries == 1 else f"{queries} queries a step"
        name = f"10 trials of {SMALL['hidden']}, {step}"
        for how, together in ((", together", TRIALS), (", one by one", 1)):
            settings = {"batch_queries": queries}
            lengths = np.full(240, 24)
            yield epoch(name, how, SMALL, APPROX_NDCG, settings, lengths, TRIALS, together)
    for models in MODELS:
        name, lengths = f"{models} models, one query a step", web30k_lengths(STEPS)
        settings = {"batch_queries": 1}
        yield epoch(name, "", YU2020, APPROX_NDCG, settings, lengths, models, models)


def epoch(
    name: str,
    how: str,
    model: dict[str, Any],
    loss: dict[str, Any],
    training: dict[str, Any],
    lengths: np.ndarray,
    trials: int = 1,
    together: int = 1,
) -> dict[str, Any]:
    """A row for an epoch on a GPU, which needs neither a process of its own nor its evaluation."""
    none = np.empty(0, dtype=int)
    spec = {
        "filter": {},
        "learner": "neural",
        "model": model,
        "loss": loss,
        "training": {"optimizer": {"name": "adagrad", "lr": 0.005}, "max_epochs": 1, **training},
        "trials": trials,
    }
    size = Facts({"train": lengths, "vali": none, "test": none}, FEATURES, "")
    features = features_of(spec, size, "cuda", together)
    timed = pd.read_csv(RESULTS / "gpu.csv").set_index(["measure", "configuration"])["value"]
    if (MODEL_AND_STEP, name) in timed:
        seconds = 1e-6 * timed[MODEL_AND_STEP, name] * trials * len(lengths)
    else:
        seconds = timed[f"seconds of an epoch{how}", name]
    work = features.work - features.fixed
    return row(f"{name}{how}", "cuda", replace(features, work=work), seconds)


def row(
    run: str, device: str, features: Features, seconds: float, peak: int | None = None
) -> dict[str, Any]:
    """A row of the table."""
    values = asdict(features)
    compared = {name: values[name] for name in ("learner", *NAMES, *SIZES)}
    return {"run": run, "device": device, **compared, "seconds": seconds, "peak_mb": peak}


def main() -> None:
    """Write the table."""
    rows = [*on_a_cpu(), *on_a_gpu()]
    table = pd.DataFrame(rows).drop_duplicates("run").sort_values(["device", "run"])
    write_csv(TABLE, table, digits=DIGITS)
    print(f"{len(table)} runs: {TABLE.relative_to(ROOT)}, {TABLE.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
