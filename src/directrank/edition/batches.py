"""Divide an edition's runs into batches: runs that share data and are trained by one process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from directrank.edition.plan import Study, runs_behind


@dataclass(frozen=True)
class RunBatch:
    """Runs that one process trains.

    Attributes:
        data: the key of the data set that they read.
        runs: their names.
        is_long: whether it is a single run that is longer than a batch should be.
    """

    data: str
    runs: tuple[str, ...]
    is_long: bool = False


def gpus(study: Study, run: str) -> int:
    """The number of GPUs that a run uses: one if networks are trained on GPUs."""
    neural = study.runs[run]["learner"] == "neural"
    return int(study.config["device"] == "cuda" and neural)


def batches(study: Study, seconds: Mapping[str, float], most: float) -> dict[str, RunBatch]:
    """The batches of a study by name, such as ``qin2010-ohsumed-f1-2``.

    The runs of a batch belong to the same papers and read the same fold, and either all use a GPU
    or none does. They are taken in the order of the plan, so that a changed run takes the place of
    the old one and leaves the other batches as they are.

    Args:
        study: the plan.
        seconds: the predicted seconds of each run.
        most: the most seconds of a batch of several runs.
    """
    groups: dict[str, list[str]] = {}
    papers = _papers(study)
    for run, spec in study.runs.items():
        fold = "" if spec["fold"] is None else f"-f{spec['fold']}"
        device = "-gpu" if gpus(study, run) else ""
        group = f"{'_'.join(papers[run])}-{study.run_data[run]}{fold}{device}"
        groups.setdefault(group, []).append(run)
    result = {}
    for group, runs in groups.items():
        for number, part in enumerate(_parts(runs, seconds, most), start=1):
            is_long = seconds[part[0]] > most
            result[f"{group}-{number}"] = RunBatch(study.run_data[part[0]], tuple(part), is_long)
    return result


def _parts(runs: Sequence[str], seconds: Mapping[str, float], most: float) -> list[list[str]]:
    """Runs in parts of at most ``most`` seconds; a longer run is a part of its own."""
    parts: list[list[str]] = []
    current: list[str] = []
    room = 0.0
    for run in runs:
        if seconds[run] > most:
            parts.append([run])
            continue
        if seconds[run] > room:
            current, room = [], most
            parts.append(current)
        current.append(run)
        room -= seconds[run]
    return parts


def _papers(study: Study) -> dict[str, list[str]]:
    """The papers that need each run."""
    papers: dict[str, list[str]] = {run: [] for run in study.runs}
    for (paper, _), plan in study.products.items():
        for run in runs_behind([plan]):
            if paper not in papers[run]:
                papers[run].append(paper)
    return papers
