"""Divide an edition's runs into batches: runs that share data and are trained by one process."""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from directrank.edition.plan import Study, owners_of_runs
from directrank.study.specification import in_passes


@dataclass(frozen=True)
class RunBatch:
    """Runs that one process trains.

    Attributes:
        data: the key of the data set that they read.
        runs: their names.
        is_long: whether it is longer than a batch should be: a single run, or those of a pass.
    """

    data: str
    runs: tuple[str, ...]
    is_long: bool = False


def gpus(study: Study, run: str) -> int:
    """The number of GPUs that a run uses: one for networks with ``device: cuda``, or for trees
    whose own settings say so."""
    spec = study.runs[run]
    of_networks = spec["learner"] == "neural" and study.config["device"] == "cuda"
    return int(of_networks or spec["model"].get("device") == "cuda")


def processes(study: Study, runs: Sequence[str]) -> list[list[str]]:
    """The runs that each process of a batch trains: on a GPU those of a pass, otherwise one."""
    if not any(gpus(study, run) for run in runs):
        return [[run] for run in runs]
    return in_passes({run: study.runs[run] for run in runs})


def batches(study: Study, seconds: Mapping[str, float], most: float) -> dict[str, RunBatch]:
    """The batches of a study by name, such as ``qin2010-ohsumed-f1-2``.

    The runs of a batch belong to the same papers, or parts of them, and read the same fold, and
    either all use a GPU or none does. A changed run that is predicted to take as long as the old
    one takes its place and leaves the other batches as they are. What a GPU trains in one pass
    stays together, however long it takes.

    Args:
        study: the plan.
        seconds: the predicted seconds of each run.
        most: the most seconds of a batch of several processes.
    """
    groups: dict[str, list[str]] = {}
    owners = owners_of_runs(study)
    for run, spec in study.runs.items():
        fold = "" if spec["fold"] is None else f"-f{spec['fold']}"
        device = "-gpu" if gpus(study, run) else ""
        group = f"{'_'.join(owners.get(run, ()))}-{study.run_data[run]}{fold}{device}"
        groups.setdefault(group, []).append(run)
    result = {}
    for group, runs in groups.items():
        together = processes(study, runs)
        for number, part in enumerate(_parts(together, seconds, most), start=1):
            is_long = sum(seconds[run] for run in part) > most
            result[f"{group}-{number}"] = RunBatch(study.run_data[part[0]], tuple(part), is_long)
    return result


def _parts(
    together: Sequence[Sequence[str]], seconds: Mapping[str, float], most: float
) -> list[list[str]]:
    """Runs, those of a process ``together``, in parts of at most ``most`` seconds.

    A longer process is a part of its own. The others are dealt out, the longest first, each to the
    part that has the fewest seconds so far. So every part has a share of the slow and of the fast
    ones, and the first parts to end tell how long the rest will take.
    """
    needed = [sum(seconds[run] for run in runs) for runs in together]
    long = [number for number, time in enumerate(needed) if time > most]
    dealt = sorted(set(range(len(together))) - set(long), key=lambda number: -needed[number])
    count = math.ceil(sum(needed[number] for number in dealt) / most)
    while True:
        parts: list[tuple[float, int, list[int]]] = [(0.0, part, []) for part in range(count)]
        for number in dealt:
            time, part, numbers = parts[0]
            heapq.heapreplace(parts, (time + needed[number], part, [*numbers, number]))
        if all(time <= most for time, _, _ in parts):
            break
        count += 1
    in_order = sorted([*([number] for number in long), *(sorted(part[2]) for part in parts)])
    return [[run for number in part for run in together[number]] for part in in_order]
