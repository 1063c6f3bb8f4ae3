"""Execute runs: from prepared lists and specifications to tidy result files."""

from __future__ import annotations

import itertools
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import torch

from directrank import learners
from directrank.data import columns, normalised, prepared, sample
from directrank.learners.contract import FitJob, Fitted, Progress, Request, Splits, no_progress
from directrank.learners.devices import chosen_device
from directrank.learners.neural.checkpoints import Checkpoints, Saved, StoppedError
from directrank.learners.neural.failures import NotFiniteError, keep_freed_memory
from directrank.lists.packed import RankedLists
from directrank.metrics.packed import metrics_per_query
from directrank.study.growth import Grid, Settings
from directrank.study.provenance import environment, run_digest, versions
from directrank.study.results import MODELS, write_run
from directrank.study.specification import (
    candidate_settings,
    candidates,
    lists_of,
    n_fits,
    run_name,
    streams_of,
    trials_that_tune,
    validate,
    with_settings,
)
from directrank.system import blas
from directrank.system.errors import ConfigError, DirectrankError
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


@dataclass(frozen=True)
class _How:
    """How runs are executed; see :func:`execute`."""

    threads: int = 1
    device: str = "auto"
    progress: Progress = no_progress
    checkpoint_minutes: float = 10.0
    stop: Callable[[], str | None] = lambda: None


_Steps: TypeAlias = Generator[Request, list[Fitted], None]
"""A run under way: it asks for fits of networks, and is given them or an error."""

#: What a call of the neural learner gives for each request: its fits, or why there are none.
_Answer: TypeAlias = list[Fitted] | Exception


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
    fit = learners.get(spec["learner"]).load()

    def answers(splits: Splits, requests: Sequence[Request]) -> list[_Answer]:
        (request,) = requests
        try:
            return [fit(splits, request.settings, request.jobs, request.checkpoints)]
        except NotFiniteError as error:
            return [error]

    how = _How(threads, device, progress, checkpoint_minutes, stop)
    (error,) = _executed([(spec, Path(out))], data, how, answers)
    if error is not None:
        raise error


def execute_together(
    runs: Sequence[tuple[Mapping[str, Any], str | Path]],
    data: str | Path,
    *,
    threads: int = 1,
    device: str = "auto",
    progress: Progress = no_progress,
    checkpoint_minutes: float = 10.0,
    stop: Callable[[], str | None] = lambda: None,
) -> list[Exception | None]:
    """Execute runs of networks on the same lists, which a GPU trains in as few passes as possible.

    Each has its own results and checkpoints, from which it can also be resumed alone, and fails
    alone. On a CPU the results are the bytes that :func:`execute` gives.

    Args:
        runs: specification and result folder of each.
        data, threads, device, checkpoint_minutes, stop: see :func:`execute`.
        progress: that of all runs together.

    Returns:
        For each run why it failed, or None.

    Raises:
        ConfigError: there is no such device, or the runs cannot be trained together.
        DataError: the data cannot be read.
        TrainingError: ``stop`` asked for the end.
    """
    from directrank.learners.neural.fit import fit_together

    first = lists_of(runs[0][0])
    if any(spec["learner"] != "neural" or lists_of(spec) != first for spec, _ in runs):
        raise ConfigError("only networks on the same lists are trained together", "name one run")

    def answers(splits: Splits, requests: Sequence[Request]) -> list[_Answer]:
        try:
            return list(fit_together(splits, requests))
        except StoppedError:
            raise
        except Exception as error:
            if len(requests) == 1:
                return [_without_frames(error)]
            said = f"{type(error).__name__}: {error}"
            print(f"{said}\nEach run is now trained alone.", file=sys.stderr, flush=True)
        return [answer for request in requests for answer in answers(splits, [request])]

    how = _How(threads, device, progress, checkpoint_minutes, stop)
    return _executed([(spec, Path(out)) for spec, out in runs], data, how, answers)


def _executed(
    runs: Sequence[tuple[Mapping[str, Any], Path]],
    data: str | Path,
    how: _How,
    answers: Callable[[Splits, Sequence[Request]], Sequence[_Answer]],
) -> list[Exception | None]:
    """Execute runs on the same lists; why each failed, or None.

    Args:
        runs: specification and result folder of each.
        data: the prepared data set's folder.
        how: as :func:`execute` is told.
        answers: fits what runs ask for at a time.
    """
    for spec, _ in runs:
        validate(spec, by_library=True)
    torch.set_num_threads(how.threads)
    how = replace(how, device=chosen_device(how.device))
    splits, origin = load_splits(runs[0][0], data)
    keep_freed_memory()
    blas.libraries().limit(limits=how.threads)
    steps = [_steps(spec, splits, origin, out, how) for spec, out in runs]
    errors: list[Exception | None] = [None] * len(runs)
    asked: dict[int, Request] = {}

    def go_on(number: int, advance: Callable[[], Request]) -> None:
        try:
            asked[number] = advance()
        except StopIteration:
            pass
        except Exception as error:
            errors[number] = error

    for number, run in enumerate(steps):
        go_on(number, partial(next, run))
    while asked:
        now = dict(asked)
        asked.clear()
        for number, answer in zip(now, answers(splits, list(now.values())), strict=True):
            if isinstance(answer, Exception):
                go_on(number, partial(steps[number].throw, answer))
            else:
                go_on(number, partial(steps[number].send, answer))
    return errors


def _without_frames(error: Exception) -> Exception:
    """An error that a user can fix without the frames that it would keep, and with them a GPU's
    memory; where another happened must be known."""
    if isinstance(error, DirectrankError):
        error.__cause__ = error.__context__ = None
        return error.with_traceback(None)
    return error


def _steps(
    spec: Mapping[str, Any], splits: Splits, origin: Mapping[str, Any], out: Path, how: _How
) -> _Steps:
    """Execute a run; ``origin`` has the facts about the data for its record."""
    began = time.time()
    out.mkdir(parents=True, exist_ok=True)
    checkpoints = Checkpoints(
        out.with_name(out.name + ".checkpoint"),
        _checkpoint_key(spec, origin["digest"], how.threads, how.device),
        how.checkpoint_minutes,
        how.stop,
    )

    def job(trial: int, report: Progress) -> FitJob:
        return FitJob(streams_of(spec), trial, spec["selection"], how.threads, how.device, report)

    learner = learners.get(spec["learner"])
    try:
        if learner.neural:
            trials, grids = yield from _together(spec, splits, job, checkpoints, how.progress)
        else:
            fit, grids = learner.load(), {}
            trials = list(_trials(spec, splits, fit, job, checkpoints, how.progress))
    except NotFiniteError as error:
        raise error.written_to(out / "not_finite.safetensors") from error
    for number, trial in enumerate(trials):
        for suffix, content in trial.model.items():
            write_bytes(out / MODELS / f"{number}{suffix}", content)
    record = {
        "name": run_name(spec),
        "spec": dict(spec),
        "data": dict(origin),
        "code": run_digest(spec),
        "seeds": f"directrank.system.seeds.derive_seed of '{streams_of(spec)}', trial and purpose",
        "environment": environment(),
        "threads": how.threads,
        "device": how.device,
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
    _require_same_data(spec["data"], record, data)
    if "sample" in spec:
        splits = sample.draw(splits, record["name"], spec["fold"], **spec["sample"])
    splits = {
        split: sample.fewer(lists, (f"{split}_queries", record["name"], spec["fold"] or 0), queries)
        if (queries := spec.get(f"{split}_queries"))
        else lists
        for split, lists in splits.items()
    }
    if "without_features" in spec:
        places = columns.kept(record, splits["train"].n_features, spec["without_features"])
        splits = {split: columns.select(lists, places) for split, lists in splits.items()}
    sizes = {
        split: {"queries": lists.n_queries, "documents": lists.n_documents}
        for split, lists in splits.items()
    }
    origin = {key: record[key] for key in ("name", "title", "origin", "digest")}
    return Splits(**splits, label_levels=record["label_levels"]), {**origin, "splits": sizes}


def _require_same_data(
    wanted: Mapping[str, Any], record: Mapping[str, Any], folder: str | Path
) -> None:
    """Raise ConfigError if prepared data are not those that a specification names."""
    settings = record.get("source", {}).get("settings", wanted["settings"])  # of archives: none
    if (record["name"], settings) != (wanted["name"], wanted["settings"]):
        with_settings = f" with {wanted['settings']}" if wanted["settings"] else ""
        raise ConfigError(
            f"the specification is of the data set {wanted['name']}{with_settings}, but {folder} "
            f"has {record['name']}" + (f" with {settings}" if with_settings else ""),
            "name its prepared data with --data, or correct the specification",
        )


def _checkpoint_key(spec: Mapping[str, Any], data: str, threads: int, device: str) -> str:
    """A digest of everything that decides how a run's unfinished work continues."""
    return digest_of([spec, data, threads, device, versions(), run_digest(spec)])


def _together(
    spec: Mapping[str, Any],
    splits: Splits,
    job: Callable[[int, Progress], FitJob],
    checkpoints: Checkpoints,
    progress: Progress,
) -> Generator[Request, list[Fitted], tuple[list[Trial], dict[str, Any]]]:
    """Ask for all trials and candidates of the run at once, and for more each time a grid grows.

    If only the first trial tunes, the others are asked for when its choice is made.

    Returns:
        The trials, and of each setting that grows what the record has of its grid.
    """
    grid = Grid(spec.get("grow", {}), [])
    base = {key: spec[key] for key in ("model", "loss", "training")}
    tuning = trials_that_tune(spec)
    fitted: list[list[Fitted]] = [[] for _ in range(tuning)]
    on_vali: list[list[float]] = [[] for _ in range(tuning)]

    def train(
        some: Sequence[Settings], part: Checkpoints
    ) -> Generator[Request, list[Fitted], None]:
        jobs = [job(trial, progress) for trial in range(tuning) for _ in some]
        settings = [with_settings(base, own) for _ in range(tuning) for own in some]
        every = yield Request(settings, jobs, part)
        for trial in range(tuning):
            own = every[trial * len(some) : (trial + 1) * len(some)]
            fitted[trial] += own
            on_vali[trial] += [_vali_metric(spec, one, splits.vali) for one in own]
        grid.tried += some

    yield from train(candidate_settings(spec), checkpoints)
    for number in itertools.count(1):
        means = np.mean(on_vali, axis=0).tolist()
        further = grid.further(means)
        if not further:
            break
        try:
            yield from train(further, checkpoints.of(f"growth-{number:02d}"))
        except NotFiniteError as error:
            grid.close(means, further, error.what)
    tried = dict(enumerate(grid.tried))
    trials = [
        _evaluated(spec, splits, trial, fitted[trial], on_vali[trial], tried)
        for trial in range(tuning)
    ]
    others = range(tuning, spec["trials"])
    if others:
        chosen = _chosen(trials[0])
        jobs = [job(trial, progress) for trial in others]
        settings = [with_settings(base, tried[chosen]) for _ in others]
        every = yield Request(settings, jobs, checkpoints.of("other-trials"))
        for trial, fit in zip(others, every, strict=True):
            vali = _vali_metric(spec, fit, splits.vali)
            only = {chosen: tried[chosen]}
            trials.append(_evaluated(spec, splits, trial, [fit], [vali], only))
    if grid.limits:
        for row in (row for trial in trials for row in trial.rows):
            row["inside"] = grid.inside(tried[row["candidate"]])
    return trials, grid.record(means)


def _chosen(trial: Trial) -> int:
    """The number of the candidate that a trial chose."""
    return next(row["candidate"] for row in trial.rows if row["selected"])


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
    total, begun = n_fits(spec), 0
    tuned = dict(enumerate(candidate_settings(spec)))
    for trial in range(spec["trials"]):
        part = f"trial-{trial:03d}"
        saved = checkpoints.load(part)
        if saved is None:
            fitted = []
            for place, number in enumerate(tuned):

                def report(done: int, of: int, text: str, before: int = begun + place) -> None:
                    checkpoints.end_if_asked(f"in fit {before + 1} of {total}")
                    progress(before * of + done, total * of, text)

                fitted.append(fit(splits, plan[number]["model"], job(trial, report)))
            on_vali = [_vali_metric(spec, fit, splits.vali) for fit in fitted]
            saved = _to_saved(_evaluated(spec, splits, trial, fitted, on_vali, tuned))
            checkpoints.save(part, saved.tensors, saved.record)
            checkpoints.end_if_asked(f"after trial {trial + 1} of {spec['trials']}")
        begun += len(tuned)
        found = _from_saved(saved)
        yield found
        if trial + 1 == trials_that_tune(spec):
            chosen = _chosen(found)
            tuned = {chosen: tuned[chosen]}


def _evaluated(
    spec: Mapping[str, Any],
    splits: Splits,
    trial: int,
    fitted: Sequence[Fitted],
    on_vali: Sequence[float],
    tuned: Mapping[int, Settings],
) -> Trial:
    """Choose among the candidates of a trial by ``on_vali``, and evaluate the chosen one.

    Args:
        spec, splits, trial: the run, its lists, and the number of the trial.
        fitted, on_vali: of each candidate that the trial has.
        tuned: number and settings of each of these.
    """
    chosen = int(np.argmax(on_vali)) if len(fitted) > 1 else 0
    values, history, rows = {}, [], []
    for split in EVALUATED:
        lists = getattr(splits, split)
        values[split] = _metrics(fitted[chosen], lists, spec["evaluation"])
    for place, (number, settings) in enumerate(tuned.items()):
        fit = fitted[place]
        history += [{"trial": trial, "candidate": number, **row} for row in fit.history]
        rows.append(
            {
                "trial": trial,
                "candidate": number,
                **settings,
                "vali_metric": on_vali[place],
                "selected": place == chosen,
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
    if fit.vali_metric is not None:
        return fit.vali_metric
    values = _metrics(fit, vali, [spec["selection"]])
    return float(np.nanmean(next(iter(values.values()))))


def _metrics(
    fit: Fitted, lists: RankedLists, mappings: Sequence[Mapping[str, Any]]
) -> dict[str, np.ndarray]:
    """Metrics per query of the scores of a fit, on the device on which it computes them."""
    scores = torch.as_tensor(fit.predict(lists)).to(fit.device)
    return metrics_per_query(scores, lists, mappings)


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
