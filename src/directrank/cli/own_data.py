"""``directrank compare DATA``: compare every loss and tree ensemble on your own data."""

from __future__ import annotations

import argparse
import contextlib
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from directrank.edition.plan import Study
    from directrank.edition.workspace import ComparisonRequest
    from directrank.papers.shared.evidence import FailedMethod

#: Seconds of the command besides fits: before the first of them and after the last; per run and per
#: product, with what Snakemake does for a job; and per pair of methods, for tests and drawing.
START, RUN, PRODUCT, PAIR = 20.0, 0.15, 1.0, 0.012


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
        choices=["linear", "network", "context", "trees"],
        default=[],
        help="the scorers to train (default: linear and network if quick, otherwise all)",
    )
    own.add_argument(
        "--ensembles",
        metavar="NAME",
        nargs="+",
        default=[],
        help="the tree ensembles to train, such as LambdaMART (default: all, unless quick or "
        "standard, which leave out the two slowest)",
    )
    own.add_argument(
        "--without", metavar="NAME", nargs="+", default=[], help="losses and ensembles to leave out"
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
        "--leave-out", metavar="NAME", nargs="+", default=[], help="columns that are no features"
    )
    own.add_argument(
        "--grades",
        type=_grades,
        metavar="N|CUT,CUT,…",
        help="the number of grades into which labels that are not whole numbers from 0 to 15 are "
        "cut, or the labels at which grades 1, 2, … begin (default: each of up to 16 different "
        "labels is a grade, and more are cut into 5)",
    )
    own.add_argument("--name", help="a name for the data (default: the name of the file)")
    own.add_argument(
        "--cores", type=_cores, default=os.cpu_count() or 1, help="cores to use (default: all)"
    )
    own.add_argument(
        "--dry-run",
        action="store_true",
        help="only read the data and print what would be run and how long it would take",
    )


def _cores(text: str) -> int:
    """A number of cores."""
    with contextlib.suppress(ValueError):
        if int(text) >= 1:
            return int(text)
    raise argparse.ArgumentTypeError(f"'{text}' is no whole number, 1 or more")


def _grades(text: str) -> int | tuple[float, ...]:
    """A number of grades, or cut points: ``5``, ``0.07,0.14``."""
    with contextlib.suppress(ValueError):
        return int(text)
    try:
        return tuple(map(float, text.split(",")))
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"'{text}' is neither a number of grades nor labels such as 0.07,0.14,0.41"
        ) from None


def compare(options: argparse.Namespace) -> None:
    """Write the workspace, predict the time, and run the workflow in it."""
    request = _request(options)
    folder = Path(options.out or f"compare_{request.name}").resolve()
    with contextlib.ExitStack() as held:
        _compare(options, request, folder, held)


def _compare(
    options: argparse.Namespace,
    request: ComparisonRequest,
    folder: Path,
    held: contextlib.ExitStack,
) -> None:
    from directrank.edition.compared import LIBRARIES
    from directrank.edition.configuration import repository
    from directrank.edition.plan import load
    from directrank.edition.progress import duration
    from directrank.edition.workspace import make
    from directrank.system.errors import DirectrankError
    from directrank.system.locks import HeldLocks
    from directrank.system.schema import read_yaml

    def claim() -> None:
        claims = folder / ".snakemake/claims"
        held.callback(HeldLocks(claims, [f"comparison-{request.name}"]).release)
        # A workflow may have been started by hand, or have outlived its command.
        HeldLocks(claims, [f"edition-{request.name}"]).release()

    root = repository()
    for sentence in make(request, folder, claim):
        print(f"{sentence}.", flush=True)
    _provide_cache(folder)
    with contextlib.chdir(folder):
        plan = load(read_yaml("edition.yaml"), root)
        seconds = _predicted(plan, options.cores)
    print(
        f"The {len(plan.runs)} runs, their tables and figures take {duration(seconds)} on "
        f"{options.cores} core{'s' * (options.cores > 1)}. Everything is kept in {folder}; to "
        "resume after an interruption, give the same command again.",
        flush=True,
    )
    if not any(run["learner"] in LIBRARIES for run in plan.runs.values()):
        print("No boosted trees are trained; --scorers linear network trees adds them.", flush=True)
    command = [
        *(sys.executable, "-m", "snakemake", "--snakefile", str(root / "workflow/Snakefile")),
        *("--directory", str(folder), "--configfile", str(folder / "edition.yaml")),
        *("--cores", str(options.cores)),
    ]
    if options.dry_run:
        print(f"Nothing was trained. Without --dry-run, this is run: {shlex.join(command)}")
        return
    completed = _complete(command)
    failed, trained = _outcome(plan, request.name, folder)
    logs = folder / "logs" / plan.edition / "fit"
    if failed and not trained:
        raise DirectrankError(
            f"none of the {len(failed)} methods could be trained:\n{_reasons(failed, logs)}",
            "name others with --losses, --scorers or --ensembles, or give more queries",
        )
    if not completed:
        raise DirectrankError(
            "the comparison was not completed",
            f"see the output above and {folder}/logs, then give the same command again",
        )
    for what, path in _results(plan.edition, request.name).items():
        print(f"{what}: {folder / path}")
    if failed:
        raise DirectrankError(
            f"{len(failed)} of {len(failed) + trained} methods could not be trained, and the "
            f"report compares the others:\n{_reasons(failed, logs)}",
            "leave them out with --without NAME …, or give more queries",
        )


def _complete(command: Sequence[str]) -> bool:
    """Run the workflow; whether it was completed. A SIGTERM kills it, and its jobs end as orphans.

    Snakemake would finish running jobs after a SIGTERM, and ignores SIGINT below a shell's ``&``.
    """
    process = subprocess.Popen(command)
    before = signal.signal(signal.SIGTERM, lambda *_: process.kill())
    try:
        return process.wait() == 0
    finally:
        signal.signal(signal.SIGTERM, before)


def _provide_cache(folder: Path) -> None:
    """Let this process and the workflow keep their caches in ``folder`` if the user's cache, which
    Snakemake and Matplotlib need, cannot be written."""
    from directrank.cli.cost import user_cache

    cache = user_cache()
    with contextlib.suppress(OSError):
        cache.mkdir(parents=True, exist_ok=True)
    if not os.access(cache, os.W_OK):
        os.environ["XDG_CACHE_HOME"] = os.environ["MPLCONFIGDIR"] = str(folder / ".cache")


def _outcome(plan: Study, name: str, folder: Path) -> tuple[Sequence[FailedMethod], int]:
    """The methods that could not be trained, and the number of the others; none if runs are
    missing."""
    from directrank.edition.workspace import PAPER
    from directrank.papers.shared.evidence import gather
    from directrank.system.errors import DataError

    values = plan.products.get((PAPER, f"per_query_{name}"))
    if values is None:  # the edition was changed by hand
        return [], len(plan.runs)
    try:
        evidence = gather(values, folder / "results" / plan.edition / "runs")
    except DataError:
        return [], 0
    return evidence.failed, evidence.n_methods


def _reasons(failed: Sequence[FailedMethod], logs: Path) -> str:
    """A line for each method that could not be trained."""
    return "\n".join(
        f"  {method.name} ({method.experiment.rpartition('_')[2]}): {method.reason}\n"
        f"    log: {logs}/{method.run}.log"
        for method in failed
    )


def _results(edition: str, name: str) -> Mapping[str, str]:
    """The files that the comparison produces, by their descriptions."""
    tables = f"paper_tables/{edition}/one_protocol"
    return {
        "Report": f"report/{edition}/report.html",
        "Table": f"{tables}/table_{name}.md",
        "Values per query": f"{tables}/per_query_{name}.parquet",
    }


def _request(options: argparse.Namespace) -> Any:
    from directrank.data.tables import Columns
    from directrank.edition.workspace import ComparisonRequest, name_of
    from directrank.papers.one_protocol.methods import SCORERS

    experiments = {in_print: name for name, in_print in SCORERS.items()}
    return ComparisonRequest(
        data=options.data,
        name=name_of(Path(options.name) if options.name else options.data),
        columns=Columns(
            options.query_column,
            options.label_column,
            options.group_column,
            tuple(options.leave_out),
        ),
        grades=options.grades,
        budget=options.budget,
        folds=options.folds,
        scorers=[experiments.get(name, name) for name in options.scorers],
        losses=options.losses,
        ensembles=options.ensembles,
        without=options.without,
    )


def _predicted(plan: Study, cores: int) -> float:
    """The seconds that the command takes on ``cores`` cores, at most."""
    from directrank.cli.cost import own_machine
    from directrank.cost.estimate import estimate

    runs = estimate(plan, own_machine(1)).runs
    products = [product["experiments"].items() for product in plan.products.values()]
    methods = max(
        len({(name, cell["settings"].get("method")) for name, cells in shown for cell in cells})
        for shown in products
    )
    work = float(runs["seconds"].sum()) + len(runs) * RUN
    work += len(products) * PRODUCT + methods * (methods - 1) / 2 * PAIR
    return START + work / cores
