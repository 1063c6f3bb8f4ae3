"""``directrank compare DATA``: every loss and tree ensemble on one's own data."""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def add_options(compare: argparse.ArgumentParser) -> None:
    """Add what only a comparison on one's own data takes."""
    own = compare.add_argument_group("your own data")
    own.add_argument(
        "--budget",
        choices=["quick", "standard", "full"],
        default="standard",
        help="quick: a first look, 300 training queries and one seed; standard: up to 2000 "
        "training queries and three seeds; full: all queries (default: %(default)s)",
    )
    own.add_argument(
        "--losses", metavar="NAME", nargs="+", default=[], help="as RankNet (default: all)"
    )
    own.add_argument(
        "--scorers",
        nargs="+",
        choices=["linear", "tower", "context", "trees"],
        default=[],
        help="what ranks (default: linear and tower in quick, else all)",
    )
    own.add_argument(
        "--folds",
        type=int,
        metavar="N",
        help="parts into which the queries of one file are dealt (default: 3 in quick, else 5)",
    )
    for what, usual in (
        ("query", "query, query_id or qid"),
        ("label", "label, relevance, rel or grade"),
        ("group", "none"),
    ):
        own.add_argument(
            f"--{what}-column", metavar="NAME", help=f"the {what}'s column (default: {usual})"
        )
    own.add_argument(
        "--grades",
        type=int,
        default=5,
        metavar="N",
        help="grades into which labels are cut that are no whole numbers (default: %(default)s)",
    )
    own.add_argument("--name", help="what to call the data (default: as the file)")
    own.add_argument(
        "--cores", type=int, default=os.cpu_count() or 1, help="cores to use (default: all)"
    )
    own.add_argument(
        "--dry-run",
        action="store_true",
        help="read the data, say what would be run and how long it takes, and stop",
    )


def compare(options: argparse.Namespace) -> None:
    """Write the workspace, predict the time, and run the workflow in it."""
    from directrank.edition.workspace import make
    from directrank.system.errors import DirectrankError

    repository = _repository()
    request = _request(options)
    folder = Path(options.out or f"compare_{request.name}").resolve()
    for sentence in make(request, folder):
        print(f"{sentence}.", flush=True)
    with contextlib.chdir(folder):
        runs, seconds = _predicted(repository)
    print(
        f"{runs} runs, about {_duration(seconds / options.cores)} at most on {options.cores} "
        f"cores. Everything is kept in {folder}: the same command goes on where it was stopped.",
        flush=True,
    )
    command = [
        *(sys.executable, "-m", "snakemake", "--snakefile", str(repository / "workflow/Snakefile")),
        *("--directory", str(folder), "--configfile", str(folder / "edition.yaml")),
        *("--cores", str(options.cores)),
    ]
    if options.dry_run:
        print(f"Nothing was run. The same without --dry-run does: {' '.join(command)}")
        return
    if subprocess.run(command).returncode:
        raise DirectrankError(
            "the comparison did not come to its end",
            f"see what is printed above and {folder}/logs, then give the same command again",
        )
    for what, path in _results(request.name).items():
        print(f"{what}: {folder / path}")


def _results(name: str) -> Mapping[str, str]:
    """What the comparison leaves, by what it is."""
    tables = f"paper_tables/{name}/one_protocol"
    return {
        "Report": f"report/{name}/report.html",
        "Table": f"{tables}/table_{name}.md",
        "Values per query": f"{tables}/per_query_{name}.parquet",
    }


def _repository() -> Path:
    """The clone that this package is part of.

    Raises:
        ConfigError: the package is installed without one.
    """
    from directrank.system.errors import ConfigError

    root = Path(__file__).resolve().parents[3]
    if not (root / "workflow/Snakefile").is_file():
        raise ConfigError(
            "the workflow is not part of an installed package",
            "run this in a clone of the repository, after `make setup`: .venv/bin/directrank",
        )
    return root


def _request(options: argparse.Namespace) -> Any:
    from directrank.data.tables import Columns
    from directrank.edition.workspace import Request, name_of

    return Request(
        data=options.data,
        name=name_of(Path(options.name) if options.name else options.data),
        columns=Columns(options.query_column, options.label_column, options.group_column),
        levels=options.grades,
        budget=options.budget,
        folds=options.folds,
        scorers=options.scorers,
        losses=options.losses,
    )


def _predicted(repository: Path) -> tuple[int, float]:
    """Number of runs of the edition in the working folder, and seconds of one process for all."""
    from directrank.cli.cost import own_rates
    from directrank.cost.estimate import estimate
    from directrank.edition.plan import load
    from directrank.system.schema import read_yaml

    plan = load(read_yaml("edition.yaml"), repository)
    runs = estimate(plan, own_rates(threads=1)).runs
    return len(runs), float(runs["seconds"].sum())


def _duration(seconds: float) -> str:
    minutes = seconds / 60
    if minutes < 1:
        return "a minute"
    return f"{minutes:.0f} min" if minutes < 90 else f"{minutes / 60:.1f} h"
