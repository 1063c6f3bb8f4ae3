"""Execute a run: from prepared lists and a specification to tidy result files."""

from __future__ import annotations

import itertools
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from directrank import learners
from directrank.data import normalised, prepared, sample
from directrank.learners.contract import FitJob, Fitted, Progress, Splits, no_progress
from directrank.learners.devices import chosen_device
from directrank.learners.neural.checkpoints import Checkpoints, Saved
from directrank.learners.neural.failures import NotFiniteError, keep_freed_memory
from directrank.lists.packed import RankedLists
from directrank.metrics.packed import metrics_per_query
from directrank.study.growth import Grid, Settings
from directrank.study.provenance import environment, run_digest, versions
from directrank.study.results import MODELS, write_run
from directrank.study.specification import (
    candidate_settings,
    candidates,
    run_name,
    streams_of,
    validate,
    with_settings,
)
from directrank.system import blas
from directrank.system.io import digest_of, write_bytes

EVALUATED = ("vali", "test")


@dataclass(frozen=True)
class Trial:
    """The results of a finished trial.

    Attributes:
        values: per split and metric, its value per query, float64 ``[Q]``.
        history: rows of the history, of all candidates.
        rows: one per candidate.
        model: content of the chosen model's files by their suffix.
    """

    values: dict[str, dict[str, np.ndarray]]
    history: list[dict[str, Any]]
    rows: list[dict[str, Any]]
    model: dict[str, bytes]


def execute(
    spec: Mapping[str, Any],
    data: str | Path,
    out: str | Path,
    *,
    threads: int = 1,
    device: str = "auto",
    progress: Progress = no_progress,
    checkpoint_minutes: float = 10.0,
    stop: Callable[[], str | None] = lambda: None,
) -> None:
    """Train and evaluate the run ``spec`` and write its result files into ``out``.

    Unfinished work is kept in ``<out>.checkpoint``, from which a killed run resumes and reaches the
    same result. The folder is removed when the run is complete.

    Args:
        spec: the run's specification; see ``schemas/run.schema.yaml``.
        data: the prepared data set's folder (of all folds).
        out: the run's result folder; files appear in it one by one, ``run.json`` last.
        threads: the number of threads; the last digits of results may depend on it.
        device: ``cpu``, ``cuda`` or ``auto``, which uses a GPU if one is available.
        progress: called as ``progress(done, total, text)``.
        checkpoint_minutes: the longest time for which the training of a network may remain unsaved.
        stop: called regularly; if it returns the name of a signal, the run saves its work and ends.

    Raises:
        ConfigError, DataError, TrainingError: the message says what to do about it.
    """
    validate(spec, by_library=True)
    began = time.time()
    out = Path(out)
    out.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(threads)
    device = chosen_device(device)
    name = run_name(spec)
    splits, origin = load_splits(spec, data)
    keep_freed_memory()
    checkpoints = Checkpoints(
        out.with_name(out.name + ".checkpoint"),
        _checkpoint_key(spec, origin["digest"], threads, device),
        checkpoint_minutes,
        stop,
    )

    def job(trial: int, report: Progress) -> FitJob:
        return FitJob(streams_of(spec), trial, spec["selection"], threads, device, report)

    learner = learners.get(spec["learner"])
    fit = learner.load()
    blas.libraries().limit(limits=threads)
    try:
        if learner.neural:
            trials, grids = _together(spec, splits, fit, job, checkpoints, progress)
        else:
            trials, grids = list(_trials(spec, splits, fit, job, checkpoints, progress)), {}
    except NotFiniteError as error:
        raise error.written_to(out / "not_finite.safetensors") from error
    for number, trial in enumerate(trials):
        for suffix, content in trial.model.items():
            write_bytes(out / MODELS / f"{number}{suffix}", content)
    record = {
        "name": name,
        "spec": dict(spec),
        "data": origin,
        "code": run_digest(spec),
        "seeds": f"directrank.system.seeds.derive_seed of '{streams_of(spec)}', trial and purpose",
        "environment": environment(),
        "threads": threads,
        "device": device,
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(began)),
        "seconds": time.time() - began,
    }
    if grids:
        record["grids"] = grids
    if spec.get("training", {}).get("patience") is not None:
        chosen = [row for trial in trials for row in trial.rows if row["selected"]]
        record["at_max_epochs"] = sum(not row["stopped_early"] for row in chosen)
    per_query = [
        _per_query(trial.values[split], getattr(splits, split), split, number)
        for number, trial in enumerate(trials)
        for split in EVALUATED
    ]
    write_run(
        out,
        pd.concat(per_query, ignore_index=True),
        pd.DataFrame([row for trial in trials for row in trial.history]),
        pd.DataFrame([row for trial in trials for row in trial.rows]),
        record,
    )
    checkpoints.clear()


def load_splits(spec: Mapping[str, Any], data: str | Path) -> tuple[Splits, dict[str, Any]]:
    """The run's filtered and normalised splits, and the facts about the data for its record."""
    splits = normalised.open_splits(
        data,
        spec["fold"],
        spec["filter"],
        spec["normalisation"],
        spec.get("train_on", "train"),
    )
    record = prepared.read_record(data)
    if "sample" in spec:
        splits = sample.draw(splits, record["name"], spec["fold"], **spec["sample"])
    splits = {
        split: sample.fewer(lists, (f"{split}_queries", record["name"], spec["fold"] or 0), queries)
        if (queries := spec.get(f"{split}_queries"))
        else lists
        for split, lists in splits.items()
    }
    sizes = {
        split: {"queries": lists.n_queries, "documents": lists.n_documents}
        for split, lists in splits.items()
    }
    origin = {key: record[key] for key in ("name", "title", "origin", "digest")}
    return Splits(**splits, label_levels=record["label_levels"]), {**origin, "splits": sizes}


def _checkpoint_key(spec: Mapping[str, Any], data: str, threads: int, device: str) -> str:
    """A digest of everything that decides how a run's unfinished work continues."""
    return digest_of([spec, data, threads, device, versions(), run_digest(spec)])


def _together(
    spec: Mapping[str, Any],
    splits: Splits,
    fit: Callable[..., list[Fitted]],
    job: Callable[[int, Progress], FitJob],
    checkpoints: Checkpoints,
    progress: Progress,
) -> tuple[list[Trial], dict[str, Any]]:
    """Fit all trials and candidates of the run in one call, and one more each time a grid grows.

    Returns:
        The trials, and of each setting that grows what the record has of its grid.
    """
    grid = Grid(spec.get("grow", {}), [])
    base = {key: spec[key] for key in ("model", "loss", "training")}
    fitted: list[list[Fitted]] = [[] for _ in range(spec["trials"])]
    on_vali: list[list[float]] = [[] for _ in range(spec["trials"])]

    def train(some: Sequence[Settings], part: Checkpoints) -> None:
        jobs = [job(trial, progress) for trial in range(spec["trials"]) for _ in some]
        settings = [with_settings(base, own) for _ in range(spec["trials"]) for own in some]
        every = fit(splits, settings, jobs, part)
        for trial in range(spec["trials"]):
            own = every[trial * len(some) : (trial + 1) * len(some)]
            fitted[trial] += own
            on_vali[trial] += [_vali_metric(spec, one, splits.vali) for one in own]
        grid.tried += some

    train(candidate_settings(spec), checkpoints)
    for number in itertools.count(1):
        means = np.mean(on_vali, axis=0).tolist()
        further = grid.further(means)
        if not further:
            break
        try:
            train(further, checkpoints.of(f"growth-{number:02d}"))
        except NotFiniteError as error:
            grid.close(means, further, error.what)
    trials = [
        _evaluated(spec, splits, trial, fitted[trial], on_vali[trial], grid.tried)
        for trial in range(spec["trials"])
    ]
    if grid.limits:
        for trial in trials:
            for row, settings in zip(trial.rows, grid.tried, strict=True):
                row["inside"] = grid.inside(settings)
    return trials, grid.record(means)


def _trials(
    spec: Mapping[str, Any],
    splits: Splits,
    fit: Callable[..., Fitted],
    job: Callable[[int, Progress], FitJob],
    checkpoints: Checkpoints,
    progress: Progress,
) -> Iterator[Trial]:
    """Fit and evaluate every trial of the run, one candidate after the other."""
    plan = list(candidates(spec))
    total = spec["trials"] * len(plan)
    for trial in range(spec["trials"]):
        part = f"trial-{trial:03d}"
        saved = checkpoints.load(part)
        if saved is None:
            fitted = []
            for number, candidate in enumerate(plan):

                def report(
                    done: int, of: int, text: str, number: int = trial * len(plan) + number
                ) -> None:
                    checkpoints.end_if_asked(f"in fit {number + 1} of {total}")
                    progress(number * of + done, total * of, text)

                fitted.append(fit(splits, candidate["model"], job(trial, report)))
            on_vali = [_vali_metric(spec, fit, splits.vali) for fit in fitted]
            tuned = candidate_settings(spec)
            saved = _to_saved(_evaluated(spec, splits, trial, fitted, on_vali, tuned))
            checkpoints.save(part, saved.tensors, saved.record)
            checkpoints.end_if_asked(f"after trial {trial + 1} of {spec['trials']}")
        yield _from_saved(saved)


def _evaluated(
    spec: Mapping[str, Any],
    splits: Splits,
    trial: int,
    fitted: Sequence[Fitted],
    on_vali: Sequence[float],
    tuned: Sequence[Settings],
) -> Trial:
    """Choose among the candidates of a trial by ``on_vali``, and evaluate the chosen one."""
    chosen = int(np.argmax(on_vali)) if len(fitted) > 1 else 0
    values, history, rows = {}, [], []
    for split in EVALUATED:
        lists = getattr(splits, split)
        values[split] = metrics_per_query(fitted[chosen].predict(lists), lists, spec["evaluation"])
    for number, fit in enumerate(fitted):
        history += [{"trial": trial, "candidate": number, **row} for row in fit.history]
        rows.append(
            {
                "trial": trial,
                "candidate": number,
                **tuned[number],
                "vali_metric": on_vali[number],
                "selected": number == chosen,
                **fit.info,
            }
        )
    with tempfile.TemporaryDirectory() as folder:
        fitted[chosen].save(Path(folder) / "model")
        model = {
            path.name.removeprefix("model"): path.read_bytes()
            for path in sorted(Path(folder).iterdir())
        }
    return Trial(values, history, rows, model)


def _to_saved(trial: Trial) -> Saved:
    tensors = {f"model{suffix}": _bytes_tensor(data) for suffix, data in trial.model.items()}
    for split, values in trial.values.items():
        tensors |= {f"{split}/{name}": torch.from_numpy(v) for name, v in values.items()}
    return Saved(tensors, {"history": trial.history, "rows": trial.rows})


def _from_saved(saved: Saved) -> Trial:
    values: dict[str, dict[str, np.ndarray]] = {split: {} for split in EVALUATED}
    model = {}
    for key, value in saved.tensors.items():
        split, _, name = key.partition("/")
        if split in values:
            values[split][name] = value.numpy()
        else:
            model[key.removeprefix("model")] = value.numpy().tobytes()
    return Trial(values, saved.record["history"], saved.record["rows"], model)


def _bytes_tensor(content: bytes) -> torch.Tensor:
    return torch.from_numpy(np.frombuffer(content, dtype=np.uint8).copy())


def _vali_metric(spec: Mapping[str, Any], fit: Fitted, vali: RankedLists) -> float:
    values = metrics_per_query(fit.predict(vali), vali, [spec["selection"]])
    return float(np.nanmean(next(iter(values.values()))))


def _per_query(
    values: Mapping[str, np.ndarray], lists: RankedLists, split: str, trial: int
) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "trial": np.int32(trial),
            "split": split,
            "query_id": np.asarray(lists.query_ids),
            "group": np.asarray(lists.query_ids if lists.groups is None else lists.groups),
            "n_documents": np.asarray(lists.lengths, dtype=np.int32),
            "n_relevant": lists.relevant_counts().astype(np.int32),
            **values,
        }
    )
