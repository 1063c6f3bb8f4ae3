"""``directrank fit`` and ``directrank evaluate``: train runs, and print the metrics of one."""

from __future__ import annotations

import argparse
import os
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from directrank.system.errors import ConfigError, DirectrankError, TrainingError


def add_parsers(subparsers: argparse._SubParsersAction) -> None:
    """Add the commands of this module."""
    fit = subparsers.add_parser(
        "fit",
        help="train and evaluate one run, or several together",
        description=(
            "Train the run that RUN describes (a JSON or YAML file) and write its result files: "
            "per_query.parquet, history.csv, fits.csv, run.json and the trained models. Several "
            "runs of networks on the same lists are trained in as few passes as possible on a GPU; "
            "if one of them fails, the others go on."
        ),
        epilog="example: directrank fit run.json --data data/prepared/ohsumed --out results/mine",
    )
    fit.add_argument(
        "run_files", metavar="RUN", type=Path, nargs="+", help="the specification of a run"
    )
    fit.add_argument("--data", type=Path, required=True, help="the folder of the prepared data set")
    fit.add_argument(
        "--out",
        type=Path,
        nargs="+",
        required=True,
        metavar="OUT",
        help="the folder for the result files; of several runs, one for each in their order",
    )
    fit.add_argument("--threads", type=int, default=1, help="threads to use (default: 1)")
    fit.add_argument(
        "--device",
        default="auto",
        help="cpu, cuda or auto, which uses a GPU if one is available (default: auto)",
    )
    fit.add_argument(
        "--checkpoint-minutes",
        type=float,
        default=10.0,
        metavar="MINUTES",
        help=(
            "save a network's training this often (default: 10); a run that was killed resumes "
            "from OUT.checkpoint, and SIGTERM or SIGUSR1 makes a run save and stop at once"
        ),
    )
    fit.add_argument(
        "--stage",
        metavar="DIR",
        default=os.environ.get("DIRECTRANK_STAGE"),
        help=(
            "copy the data once into DIR, on a local disk of this node, and read them there; "
            "variables such as $TMPDIR are expanded (default: $DIRECTRANK_STAGE; nothing is "
            "copied if it is not set)"
        ),
    )
    fit.add_argument(
        "--fits-per-gpu",
        type=int,
        metavar="N",
        default=os.environ.get("DIRECTRANK_FITS_PER_GPU") or None,
        help=(
            "use a GPU that fewer than N other fits use, and wait until there is one "
            "(default: $DIRECTRANK_FITS_PER_GPU; other fits are ignored if it is not set)"
        ),
    )
    fit.add_argument(
        "--record-failure",
        action="store_true",
        default=bool(os.environ.get("DIRECTRANK_RECORD_FAILURE")),
        help=(
            "if the model cannot be trained, write the reason in the place of results and succeed, "
            "so that other runs are compared without this one (default: only if "
            "$DIRECTRANK_RECORD_FAILURE is set)"
        ),
    )
    fit.set_defaults(run=_fit)

    evaluate = subparsers.add_parser(
        "evaluate",
        help="print the mean metrics of a run",
        description=(
            "Print the mean metrics of a finished run, with confidence intervals over its trials."
        ),
    )
    evaluate.add_argument("folder", metavar="RESULTS", type=Path, help="the run's result folder")
    evaluate.add_argument("--split", choices=["vali", "test"], default="test")
    evaluate.add_argument(
        "--empty",
        choices=["exclude", "zero", "one"],
        default="exclude",
        help="how a query without a relevant document counts (default: exclude)",
    )
    evaluate.set_defaults(run=_evaluate)


def _fit(options: argparse.Namespace) -> None:
    from directrank.data.staging import stage_data
    from directrank.learners.neural.checkpoints import signalled
    from directrank.study.failures import write_failure
    from directrank.study.specification import validate
    from directrank.system import nodes
    from directrank.system.progress import Progress
    from directrank.system.schema import read_yaml

    if len(options.run_files) != len(options.out):
        raise ConfigError("there are not as many folders as runs", "give --out a folder for each")
    specs = [read_yaml(file) for file in options.run_files]  # JSON is YAML
    for spec in specs:
        validate(spec)
    data = options.data
    if options.fits_per_gpu and options.device != "cpu" and specs[0]["learner"] == "neural":
        nodes.take_gpu(options.fits_per_gpu)
    if options.stage:
        data = stage_data(data, os.path.expandvars(options.stage), specs[0])
    began = time.monotonic()
    title = options.out[0].name if len(specs) == 1 else f"{len(specs)} runs"
    with Progress(title) as progress, signalled() as stop:
        how = {
            "threads": options.threads,
            "device": options.device,
            "progress": progress,
            "checkpoint_minutes": options.checkpoint_minutes,
            "stop": stop,
        }
        errors = _executed(specs, data, options.out, how)
    left = {}
    for spec, out, error in zip(specs, options.out, errors, strict=True):
        if error is None:
            continue
        if not (options.record_failure and _is_final(error)):
            left[out.name] = error
            continue
        _print(error)
        write_failure(out, spec, data, error, time.monotonic() - began)
    if left and len(specs) == 1:
        raise next(iter(left.values()))
    for name, error in left.items():
        print(f"{name} failed:", file=sys.stderr)
        _print(error)
    if left:
        raise TrainingError(
            f"{len(left)} of {len(specs)} runs failed: {', '.join(left)}",
            "the messages above say why; started again, only these are trained again",
        )


def _executed(
    specs: Sequence[Mapping[str, Any]],
    data: Path,
    folders: Sequence[Path],
    how: Mapping[str, Any],
) -> list[Exception | None]:
    """Execute runs; why each failed, or None."""
    from directrank.learners.neural.checkpoints import StoppedError
    from directrank.study import run

    if len(specs) > 1:
        return run.execute_together(list(zip(specs, folders, strict=True)), data, **how)
    try:
        run.execute(specs[0], data, folders[0], **how)
    except StoppedError:
        raise
    except Exception as error:
        return [error]
    return [None]


def _is_final(error: Exception) -> bool:
    """Whether another try would not succeed: the method's fault.

    An error that names a file is about the prepared data, which other runs read as well.
    """
    if isinstance(error, OSError | MemoryError):
        return False
    return getattr(error, "file", None) is None


def _print(error: Exception) -> None:
    """Print a user's error as such, and any other with where it happened."""
    if isinstance(error, DirectrankError):
        print(f"error: {error}", file=sys.stderr)
    else:
        traceback.print_exception(error)


def _evaluate(options: argparse.Namespace) -> None:
    from directrank.stats.estimates import mean_interval
    from directrank.stats.means import mean_metric
    from directrank.study.failures import load_trained

    run = load_trained(options.folder)
    columns = list(run.per_query.columns[5:])
    print(f"{run.name}, {options.split}, empty queries: {options.empty}")
    for label in columns:
        means = mean_metric(run.per_query, label, empty=options.empty)
        trials = mean_interval(means.loc[means["split"] == options.split, "value"])
        print(f"  {label:24s} {trials.mean:.4f} ± {trials.half_width:.4f}  ({trials.n} trials)")
