"""``directrank cost``: hours per figure and table, before anyone starts."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

    from directrank.cost.estimate import Estimate
    from directrank.cost.rates import Rates

EPILOG = """\
examples:
  directrank cost config/paper.yaml
      hours on this machine's CPU (measured now, if it was not before) and on a GPU (assumed)
  directrank cost --measure gpu.json --device cuda
      measure a GPU (half a minute); then: directrank cost config/paper.yaml --gpu-rates gpu.json
  directrank cost config/paper.yaml --cluster cluster.yaml
      wall time and queue slots; cluster.yaml says for example
        {name: ours, nodes: 8, cores_per_node: 32, time_limit_hours: 12, group_minutes: 30}
  directrank cost config/demo.yaml --against results/demo
      the prediction's error: recorded seconds beside predicted ones
  directrank cost config/paper.yaml --out cost
      cost/products.csv, cost/runs.csv, and cluster.csv and against.csv where they were asked for

Hours are upper bounds: every epoch and tree that a run is allowed. Fits that stop early take less.
"""


def add_parsers(subparsers: argparse._SubParsersAction) -> None:
    """Add the commands of this module."""
    cost = subparsers.add_parser(
        "cost",
        help="predict the hours of an edition, per figure and table",
        description=(
            "Predict how long an edition takes, per figure and table, per paper and in total, from "
            "its configuration and the measured speed of a machine. No data need be there."
        ),
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    cost.add_argument(
        "config", metavar="CONFIG", type=Path, nargs="?", help="an edition: config/paper.yaml"
    )
    cost.add_argument(
        "--measure",
        metavar="FILE",
        type=Path,
        help="measure this machine and write its rates to FILE",
    )
    cost.add_argument(
        "--device", choices=["cpu", "cuda"], default="cpu", help="what --measure measures"
    )
    cost.add_argument(
        "--threads", type=int, default=1, help="threads of a fit, for --measure (default: 1)"
    )
    cost.add_argument(
        "--rates",
        metavar="FILE",
        type=Path,
        help="a CPU's rates (default: this machine's, measured once and kept in the user's cache)",
    )
    cost.add_argument(
        "--gpu-rates", metavar="FILE", type=Path, help="a GPU's rates (default: assumed ones)"
    )
    cost.add_argument(
        "--cluster", metavar="FILE", type=Path, help="description of a cluster (YAML)"
    )
    cost.add_argument(
        "--against", metavar="RESULTS", type=Path, help="compare with results, e.g. results/demo"
    )
    cost.add_argument("--runs", action="store_true", help="also print one line per run")
    cost.add_argument("--out", metavar="DIR", type=Path, help="folder for CSV files")
    cost.set_defaults(run=_cost)


def _cost(options: argparse.Namespace) -> None:
    from directrank.system.errors import ConfigError

    if options.measure is not None:
        _measured(options.measure, options.device, options.threads)
        print(options.measure)
    elif options.config is None:
        raise ConfigError(
            "no edition was named", "directrank cost config/paper.yaml, or --measure FILE"
        )
    if options.config is not None:
        _report(options)


def _report(options: argparse.Namespace) -> None:
    from directrank.cost import cluster as clusters
    from directrank.cost.estimate import against, estimate
    from directrank.cost.rates import Rates, assumed_gpu
    from directrank.study.plan import load
    from directrank.system.schema import read_yaml

    plan = load(read_yaml(options.config))
    # Before anything is measured: mistakes in small files are told at once.
    cluster = None if options.cluster is None else clusters.Cluster.read(options.cluster)
    cpu = Rates.read(options.rates) if options.rates else _own_rates(options.threads)
    gpu = Rates.read(options.gpu_rates) if options.gpu_rates else assumed_gpu(cpu)
    found = {"cpu": estimate(plan, cpu), "gpu": estimate(plan, gpu)}
    frames = {"products": _products(found), "runs": _runs(found)}
    _print_products(plan.edition, found, frames["products"])
    if options.runs:
        _table("Runs", frames["runs"])
    if cluster is not None:
        chosen = found["gpu" if cluster.device == "cuda" else "cpu"]
        frames["cluster"] = _queue(cluster, chosen)
        _table(f"On the cluster '{cluster.name}'", frames["cluster"])
        if cluster.device == "cpu" and cluster.cores_per_job != chosen.rates.threads:
            print(
                f"Jobs there take {cluster.cores_per_job} cores, the rates are those of "
                f"{chosen.rates.threads} threads: measure with --threads {cluster.cores_per_job}."
            )
    if options.against is not None:
        frames["against"] = against(found["cpu"], options.against)
        _print_against(frames["against"])
    if options.out is not None:
        _write(frames, options.out)


def _own_rates(threads: int) -> Rates:
    """This machine's rates, measured once and kept in the user's cache."""
    from directrank.cost.measure import machine
    from directrank.cost.rates import Rates
    from directrank.system.errors import ConfigError

    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    path = cache / "directrank" / f"rates-cpu-{threads}.json"
    if path.is_file():
        try:
            rates = Rates.read(path)
        except ConfigError:
            rates = None  # of an older version
        if rates is not None and rates.machine == machine("cpu"):
            return rates
    return _measured(path, "cpu", threads)


def _measured(path: Path, device: str, threads: int) -> Rates:
    import torch

    from directrank.cost.measure import measure
    from directrank.system.errors import ConfigError

    if device == "cuda" and not torch.cuda.is_available():
        raise ConfigError("PyTorch sees no GPU to measure", "measure --device cpu")

    def note(text: str) -> None:
        print(f"measuring this machine, half a minute: {text}", file=sys.stderr, flush=True)

    rates = measure(device, threads, note)
    rates.write(path)
    return rates


def _products(found: dict[str, Estimate]) -> pd.DataFrame:
    frame = found["cpu"].products.rename(
        columns={"hours": "cpu_hours", "hours_own": "cpu_hours_own"}
    )
    frame["gpu_hours"] = found["gpu"].products["hours"]
    frame["gpu_hours_own"] = found["gpu"].products["hours_own"]
    frame["gpu_rates"] = "measured" if found["gpu"].rates.measured else "assumed"
    return frame


def _runs(found: dict[str, Estimate]) -> pd.DataFrame:
    frame = found["cpu"].runs.copy()
    frame["gpu_seconds"] = found["gpu"].runs["seconds"]
    return frame.sort_values("seconds", ascending=False, kind="stable")


def _queue(cluster: object, found: Estimate) -> pd.DataFrame:
    from dataclasses import asdict

    import pandas as pd

    from directrank.cost.cluster import queue

    return pd.DataFrame([asdict(queue(found.runs["seconds"].tolist(), cluster))])


def _print_products(edition: str, found: dict[str, Estimate], frame: pd.DataFrame) -> None:
    cpu, gpu = found["cpu"].rates, found["gpu"].rates
    known = found["cpu"].runs.groupby("data")["known_from"].first()
    kind = "measured" if gpu.measured else "ASSUMED, not measured"
    print(f"CPU: {cpu.machine}, {cpu.threads} thread(s) a fit; {cpu.note}")
    print(f"GPU: {gpu.machine}; {kind}: {gpu.note}")
    _table(f"Cost of edition '{edition}', at most", frame.drop(columns="gpu_rates"))
    print("A run that several products need is counted in each and once in every sum ('all');")
    print("'own' is what a product adds. Hours of one process after the other.")
    for name, origin in known.items():
        print(f"  {name}: {origin}")


def _print_against(frame: pd.DataFrame) -> None:
    from directrank.cost.estimate import geometric_mean

    _table("Recorded ÷ predicted seconds", frame)
    total = frame["recorded_s"].sum() / frame["predicted_s"].sum()
    print(
        f"all {len(frame)} runs together: recorded ÷ predicted {total:.2f}; of single runs, at the "
        f"epochs they took: geometric mean {geometric_mean(frame['ratio_at_epochs']):.2f}, from "
        f"{frame['ratio_at_epochs'].min():.2f} to {frame['ratio_at_epochs'].max():.2f}"
    )


def _table(title: str, frame: pd.DataFrame) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title)
    for column in frame.columns:
        right = frame[column].dtype.kind in "if"
        table.add_column(column.replace("_", " "), justify="right" if right else "left")
    for row in frame.itertuples(index=False):
        bold = "bold" if "all" in row[:2] else None
        table.add_row(*(_cell(value) for value in row), style=bold)
    # In a file or a pipe, lines are as long as they need to be.
    Console(width=None if sys.stdout.isatty() else 200).print(table)


def _cell(value: object) -> str:
    if not isinstance(value, float):
        return str(value)
    return f"{value:,.1f}" if abs(value) >= 100 else f"{value:.3g}"


def _write(frames: dict[str, pd.DataFrame], out: Path) -> None:
    from directrank.system.io import write_csv

    for name, frame in frames.items():
        write_csv(out / f"{name}.csv", frame)
        print(out / f"{name}.csv")
