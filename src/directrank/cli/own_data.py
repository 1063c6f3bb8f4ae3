"""``directrank compare DATA``: compare every loss and tree ensemble on your own data."""

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
    """Add the options of a comparison on the user's own data."""
    own = compare.add_argument_group("your own data")
    own.add_argument(
        "--budget",
        choices=["quick", "standard", "full"],
        default="standard",
        help="quick: a first look, 300 training queries and one seed; standard: up to 2000 "
        "training queries and three seeds; full: all queries (default: %(default)s)",
    )
    own.add_argument(
        "--losses", metavar="NAME", nargs="+", default=[], help="such as RankNet (default: all)"
    )
    own.add_argument(
        "--scorers",
        nargs="+",
        choices=["linear", "tower", "context", "trees"],
        default=[],
        help="the scorers to train (default: linear and tower if quick, otherwise all)",
    )
    own.add_argument(
        "--folds",
        type=int,
        metavar="N",
        help="the number of folds into which the queries of a single file are divided "
        "(default: 3 if quick, otherwise 5)",
    )
    for what, usual in (
        ("query", "query, query_id or qid"),
        ("label", "label, relevance, rel or grade"),
        ("group", "none"),
    ):
        own.add_argument(
            f"--{what}-column", metavar="NAME", help=f"the column of the {what} (default: {usual})"
        )
    own.add_argument(
        "--grades",
        type=int,
        default=5,
        metavar="N",
        help="the number of grades into which labels that are not whole numbers are cut "
        "(default: %(default)s)",
    )
    own.add_argument("--name", help="a name for the data (default: the name of the file)")
    own.add_argument(
        "--cores", type=int, default=os.cpu_count() or 1, help="cores to use (default: all)"
    )
    own.add_argument(
        "--dry-run",
        action="store_true",
        help="only read the data and print what would be run and how long it would take",
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
        f"The {runs} runs take at most about {_duration(seconds / options.cores)} on "
        f"{options.cores} cores. Everything is kept in {folder}; to resume after an interruption, "
        "give the same command again.",
        flush=True,
    )
    command = [
        *(sys.executable, "-m", "snakemake", "--snakefile", str(repository / "workflow/Snakefile")),
        *("--directory", str(folder), "--configfile", str(folder / "edition.yaml")),
        *("--cores", str(options.cores)),
    ]
    if options.dry_run:
        print(f"Nothing was run. Without --dry-run, this is run: {' '.join(command)}")
        return
    if subprocess.run(command).returncode:
        raise DirectrankError(
            "the comparison was not completed",
            f"see the output above and {folder}/logs, then give the same command again",
        )
    for what, path in _results(request.name).items():
        print(f"{what}: {folder / path}")


def _results(name: str) -> Mapping[str, str]:
    """The files that the comparison produces, by their descriptions."""
    tables = f"paper_tables/{name}/one_protocol"
    return {
        "Report": f"report/{name}/report.html",
        "Table": f"{tables}/table_{name}.md",
        "Values per query": f"{tables}/per_query_{name}.parquet",
    }


def _repository() -> Path:
    """The clone of the repository to which this package belongs.

    Raises:
        ConfigError: the package was installed without one.
    """
    from directrank.system.errors import ConfigError

    root = Path(__file__).resolve().parents[3]
    if not (root / "workflow/Snakefile").is_file():
        raise ConfigError(
            "the installed package does not include the workflow",
            "clone the repository, run `make setup` there, and use its .venv/bin/directrank",
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
    """The number of runs of the working folder's edition, and their seconds in a single process."""
    from directrank.cli.cost import own_rates
    from directrank.cost.estimate import estimate
    from directrank.edition.plan import load
    from directrank.system.schema import read_yaml

    plan = load(read_yaml("edition.yaml"), repository)
    runs = estimate(plan, own_rates(1, plan.config["arithmetic"])).runs
    return len(runs), float(runs["seconds"].sum())


def _duration(seconds: float) -> str:
    minutes = seconds / 60
    if minutes < 1:
        return "a minute"
    return f"{minutes:.0f} min" if minutes < 90 else f"{minutes / 60:.1f} h"
