"""``directrank train``: train the runs of a batch, each in a process of its own."""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Iterable, Iterator
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
            "of its own, so that a crash ends one run only. Runs that are current are skipped, and "
            "others resume from their checkpoints."
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
    train.add_argument(
        "--at-once", type=int, default=1, help="runs to train at a time (default: 1)"
    )
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
        run_all(_fits(stale, options), len(stale), options.at_once, options.requeue)
    if options.record:
        write_json(options.record, {run.name: run.digest(data) for run in runs})


def _fits(runs: Iterable[PlannedRun], options: argparse.Namespace) -> Iterator[Command]:
    """The command of each run; what is left of an older version of a run is removed first."""
    from directrank.study.results import SPECIFICATION
    from directrank.system.io import write_json

    for run in runs:
        folder = options.results / "runs" / run.name
        if folder.exists():
            shutil.rmtree(folder)
        write_json(folder / SPECIFICATION, run.spec)
        fit = ["fit", folder / SPECIFICATION, "--data", options.data, "--out", folder]
        fit += ["--threads", options.threads, "--device", options.device]
        yield Command(run.name, fit, options.logs / f"{run.name}.log")


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
