"""``directrank train``: train the runs of a batch, in processes of their own."""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from directrank.cli.forked import imported, run_all
from directrank.system.processes import Command

if TYPE_CHECKING:
    from directrank.study.batch import PlannedRun

#: Modules whose libraries start threads when they are imported, which do not survive a fork.
THREADED = ("directrank.learners.trees.catboost",)


def add_parsers(subparsers: argparse._SubParsersAction) -> None:
    """Add the command of this module."""
    train = subparsers.add_parser(
        "train",
        help="train the runs of a batch",
        description=(
            "Train the runs of a batch one after another, each with `directrank fit` in a process "
            "of its own, so that a crash ends one run only. On a GPU, networks on the same lists "
            "are trained together by one process. Runs that are current are skipped, and others "
            "resume from their checkpoints."
        ),
        epilog=(
            "example: directrank train results/demo/batches/plan/qin2010-ohsumed-1.json "
            "--data data/prepared/ohsumed --results results/demo --logs logs/demo/fit"
        ),
    )
    train.add_argument("batch", metavar="BATCH", type=Path, help="the batch (JSON)")
    train.add_argument("--data", type=Path, required=True, help="the folder of the prepared data")
    train.add_argument(
        "--results", type=Path, required=True, help="the edition's results, such as results/demo"
    )
    train.add_argument(
        "--logs", type=Path, required=True, help="the folder for each run's log and usage"
    )
    train.add_argument("--record", type=Path, help="the file to write when all runs are current")
    train.add_argument("--threads", type=int, default=1, help="threads of a run (default: 1)")
    train.add_argument("--at-once", type=int, default=1, help="processes at a time (default: 1)")
    train.add_argument("--device", default="auto", help="cpu, cuda or auto (default: auto)")
    train.add_argument(
        "--requeue",
        action="store_true",
        help=(
            "if a Slurm job is about to be ended (SIGTERM), save the fits and put the job back "
            "into the queue"
        ),
    )
    train.set_defaults(run=_train, forks=True)


def _train(options: argparse.Namespace) -> None:
    with imported():
        from directrank.data.prepared import read_record, verify
        from directrank.study.batch import read_plan
        from directrank.system.io import write_json

    verify(options.data, arrays=False)
    runs, data = read_plan(options.batch), read_record(options.data)["digest"]
    stale = [run for run in runs if not run.is_current(options.results / "runs" / run.name, data)]
    print(f"{len(stale)} of {len(runs)} runs are to be trained", file=sys.stderr, flush=True)
    if stale:
        _prepare_for(stale)
        together = _together(stale, options.device)
        run_all(_fits(together, options), len(together), options.at_once, options.requeue)
    if options.record:
        write_json(options.record, {run.name: run.digest(data) for run in runs})


def _together(runs: Sequence[PlannedRun], device: str) -> list[list[PlannedRun]]:
    """What a process trains: on a GPU the runs of a pass, otherwise a single run."""
    from directrank.study.specification import in_passes
    from directrank.system.nodes import visible_gpus

    # PyTorch is not asked, as no fork could use a GPU after that.
    if not (device.startswith("cuda") or (device == "auto" and visible_gpus())):
        return [[run] for run in runs]
    named = {run.name: run for run in runs}
    groups = in_passes({run.name: run.spec for run in runs})
    return [[named[name] for name in group] for group in groups]


def _fits(groups: Iterable[Sequence[PlannedRun]], options: argparse.Namespace) -> Iterator[Command]:
    """The command of each group of runs; what is left of their older versions is removed first."""
    from directrank.study.results import SPECIFICATION
    from directrank.system.io import write_json

    for runs in groups:
        folders = [options.results / "runs" / run.name for run in runs]
        for run, folder in zip(runs, folders, strict=True):
            if folder.exists():
                shutil.rmtree(folder)
            write_json(folder / SPECIFICATION, run.spec)
        fit = ["fit", *(folder / SPECIFICATION for folder in folders)]
        fit += ["--data", options.data, "--out", *folders]
        fit += ["--threads", options.threads, "--device", options.device]
        name = runs[0].name if len(runs) == 1 else f"{runs[0].name}-and-{len(runs) - 1}-others"
        yield Command(name, fit, options.logs / f"{name}.log")


def _prepare_for(runs: Iterable[PlannedRun]) -> None:
    """Do once what every fit would otherwise do first."""
    from directrank.study.provenance import modules_of, versions

    named = set[str]().union(*(modules_of(run.spec) for run in runs))
    modules = {name.partition(":")[0] for name in named} - set(THREADED)
    with imported(*sorted(modules), "directrank.data.staging", "directrank.learners.neural.fit"):
        import torch

        from directrank import losses
        from directrank.system import blas

        # The first compiled loop of a process sets up the compiler.
        losses.listnet(torch.zeros(1, 2), torch.ones(1, 2))
        # What a run's record says of versions and libraries.
        versions()
        blas.libraries()
