"""Executing a run: prepared lists and a specification in, tidy result files out."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from directrank import learners, losses, metrics, models
from directrank.data import filters, normalise, prepared
from directrank.errors import ConfigError, DataError
from directrank.evaluation import metrics_per_query
from directrank.learning import FitJob, Fitted, Progress, Splits, no_progress
from directrank.lists import RankedLists
from directrank.provenance import environment
from directrank.results import write_run
from directrank.spec import candidate_settings, candidates, run_name, validate

EVALUATED = ("vali", "test")


def execute(
    spec: Mapping[str, Any],
    data: str | Path,
    out: str | Path,
    *,
    threads: int = 1,
    device: str = "auto",
    progress: Progress = no_progress,
) -> None:
    """Train and evaluate the run ``spec`` and write its result files into ``out``.

    Args:
        spec: the run's specification; see ``schemas/run.schema.yaml``.
        data: the prepared data set's folder (of all folds).
        out: the run's result folder; files appear in it one by one, ``run.json`` last.
        threads: how many threads may be used; results may depend on it in the last digits.
        device: ``cpu``, ``cuda`` or ``auto``, which takes a GPU where there is one.
        progress: called as ``progress(done, total, text)``.

    Raises:
        ConfigError, DataError, TrainingError: with what to do about it.
    """
    validate(spec)
    began = time.time()
    out = Path(out)
    out.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(threads)
    device = _device(device)
    name = run_name(spec)
    splits, origin = load_splits(spec, data)
    plan = list(candidates(spec))
    fits = _fit_all(spec, plan, splits, name, threads, device, progress)

    per_query, history, rows = [], [], []
    for trial, fitted in enumerate(fits):
        chosen = _best_candidate(spec, fitted, splits.vali)
        for split in EVALUATED:
            per_query.append(_per_query(spec, fitted[chosen], getattr(splits, split), split, trial))
        for number, fit in enumerate(fitted):
            history += [{"trial": trial, "candidate": number, **row} for row in fit.history]
            rows.append(_fit_row(spec, trial, number, fit, splits.vali, number == chosen))
        fitted[chosen].save(out / f"model-{trial}")
    record = {
        "name": name,
        "spec": dict(spec),
        "data": origin,
        "seeds": "directrank.seeds.derive_seed of the run's name, the trial and the purpose",
        "environment": environment(),
        "threads": threads,
        "device": device,
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(began)),
        "seconds": time.time() - began,
    }
    write_run(
        out,
        pd.concat(per_query, ignore_index=True),
        pd.DataFrame(history),
        pd.DataFrame(rows),
        record,
    )


def load_splits(spec: Mapping[str, Any], data: str | Path) -> tuple[Splits, dict[str, Any]]:
    """The run's filtered and normalised splits, and what is on record of the data set."""
    record = prepared.read_record(data)
    parts = {}
    for split in ("train", *EVALUATED):
        folder = prepared.split_folder(data, spec["fold"], split)
        if not folder.is_dir():
            raise DataError(
                f"the prepared data set has no split '{folder.relative_to(data)}'",
                "check the run's 'fold', or prepare the data set again",
                file=data,
            )
        parts[split] = prepared.open_dataset(folder)
    parts = normalise.apply(spec["normalisation"], filters.apply(spec["filter"], parts))
    sizes = {
        split: {"queries": part.n_queries, "documents": part.n_documents}
        for split, part in parts.items()
    }
    origin = {key: record[key] for key in ("name", "title", "origin", "digest")}
    return Splits(**parts, label_levels=record["label_levels"]), {**origin, "splits": sizes}


def modules_of(spec: Mapping[str, Any]) -> list[str]:
    """The modules whose code decides the run's results, beyond what they import themselves."""
    modules = [__name__, learners.get(spec["learner"]).target.split(":")[0]]
    modules.append("directrank.metrics._evaluation")
    for mapping in [spec["selection"], *spec["evaluation"]]:
        modules += metrics.modules_of(mapping["name"])
    if "loss" in spec:
        modules += losses.modules_of(spec["loss"]["name"])
        modules.append(models.REGISTRY[spec["model"]["name"]].split(":")[0])
    return modules


def _fit_all(
    spec: Mapping[str, Any],
    plan: Sequence[Mapping[str, Any]],
    splits: Splits,
    name: str,
    threads: int,
    device: str,
    progress: Progress,
) -> list[list[Fitted]]:
    """One list of fitted candidates per trial."""
    learner = learners.get(spec["learner"])
    fit = learner.load()
    total = spec["trials"] * len(plan)

    def job(trial: int, report: Progress) -> FitJob:
        return FitJob(name, trial, spec["selection"], threads, device, report)

    if learner.neural:
        jobs = [job(trial, progress) for trial in range(spec["trials"]) for _ in plan]
        settings = [
            {key: candidate[key] for key in ("model", "loss", "training")}
            for _ in range(spec["trials"])
            for candidate in plan
        ]
        flat = fit(splits, settings, jobs)
    else:
        flat = []
        for number in range(total):

            def part(done: int, of: int, text: str, number: int = number) -> None:
                progress(number * of + done, total * of, text)

            trial, candidate = divmod(number, len(plan))
            flat.append(fit(splits, plan[candidate]["model"], job(trial, part)))
    return [flat[i : i + len(plan)] for i in range(0, total, len(plan))]


def _best_candidate(spec: Mapping[str, Any], fitted: Sequence[Fitted], vali: RankedLists) -> int:
    if len(fitted) == 1:
        return 0
    return int(np.argmax([_vali_metric(spec, fit, vali) for fit in fitted]))


def _vali_metric(spec: Mapping[str, Any], fit: Fitted, vali: RankedLists) -> float:
    values = metrics_per_query(fit.predict(vali), vali, [spec["selection"]])
    return float(np.nanmean(next(iter(values.values()))))


def _per_query(
    spec: Mapping[str, Any], fit: Fitted, lists: RankedLists, split: str, trial: int
) -> pd.DataFrame:
    values = metrics_per_query(fit.predict(lists), lists, spec["evaluation"])
    return pd.DataFrame(
        {
            "trial": np.int32(trial),
            "split": split,
            "query_id": np.asarray(lists.query_ids),
            "n_documents": np.asarray(lists.lengths, dtype=np.int32),
            "n_relevant": lists.relevant_counts().astype(np.int32),
            **values,
        }
    )


def _fit_row(
    spec: Mapping[str, Any],
    trial: int,
    number: int,
    fit: Fitted,
    vali: RankedLists,
    selected: bool,
) -> dict[str, Any]:
    return {
        "trial": trial,
        "candidate": number,
        **candidate_settings(spec)[number],
        "vali_metric": _vali_metric(spec, fit, vali),
        "selected": selected,
        **fit.info,
    }


def _device(device: str) -> str:
    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if device.startswith("cuda") and not torch.cuda.is_available():
        hidden = os.environ.get("CUDA_VISIBLE_DEVICES")
        raise ConfigError(
            "device 'cuda' was asked for, but PyTorch sees no GPU",
            "use --device cpu"
            + (f", or check CUDA_VISIBLE_DEVICES={hidden!r}" if hidden is not None else ""),
        )
    return device
