"""``directrank cost``: predicted hours per figure and table."""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

    from directrank.cost.estimate import Estimate
    from directrank.cost.rates import Rates

EPILOG = """\
examples:
  directrank cost config/paper.yaml
      predict hours on this machine's CPU, which is measured once, and on an NVIDIA H200
  directrank cost --measure gpu.json --device cuda
      measure a GPU in a few seconds; then: directrank cost config/paper.yaml --gpu-rates gpu.json
  directrank cost config/paper.yaml --cluster cluster.yaml
      predict wall time and queue slots; cluster.yaml contains, for example,
        {name: ours, nodes: 8, cores_per_node: 32, time_limit_hours: 12, group_minutes: 30}
  directrank cost config/demo.yaml --against results/demo
      compare the recorded times of fits with the predicted ones
  directrank cost config/demo.yaml --against results/demo --calibrate rates.json
      correct the rates by those runs; then: directrank cost config/paper.yaml --rates rates.json
  directrank cost config/paper.yaml --out cost
      write cost/products.csv and cost/runs.csv, and cluster.csv and against.csv if requested

Hours are upper bounds: they assume that each run uses every epoch and tree that it is allowed. Fits
that stop early take less time.
"""


def add_parsers(subparsers: argparse._SubParsersAction) -> None:
    """Add the commands of this module."""
    cost = subparsers.add_parser(
        "cost",
        help="predict the hours of an edition, per figure and table",
        description=(
            "Predict how long an edition takes, per figure and table, per paper and in total, from "
            "its configuration and the measured speed of a machine. The data need not be prepared."
        ),
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    cost.add_argument(
        "config", metavar="CONFIG", type=Path, nargs="?", help="an edition, e.g. config/paper.yaml"
    )
    cost.add_argument(
        "--device", choices=["cpu", "cuda"], default="cpu", help="the device to measure"
    )
    cost.add_argument(
        "--threads", type=int, default=1, help="measure with this many threads (default: 1)"
    )
    cost.add_argument("--runs", action="store_true", help="also print one line per run")
    cost.add_argument(
        "--quick",
        action="store_true",
        help="measure nothing: if this machine's rates are unknown, use those of another machine, "
        "which show how runs compare but not how many hours they take",
    )
    for name, metavar, text in (
        (
            "measure",
            "FILE",
            "measure this machine and write its rates to FILE (with the processor "
            "instructions that the environment allows: native arithmetic, unless it is restricted)",
        ),
        ("rates", "FILE", "a CPU's rates (default: this machine's, kept in the user's cache)"),
        ("gpu-rates", "FILE", "a GPU's rates (default: those of an NVIDIA H200)"),
        ("cluster", "FILE", "a description of a cluster (YAML)"),
        ("against", "RESULTS", "compare with recorded runs, e.g. results/demo"),
        ("calibrate", "FILE", "with --against: write the CPU's rates, corrected by those runs"),
        ("out", "DIR", "write CSV files into this folder"),
    ):
        cost.add_argument(f"--{name}", metavar=metavar, type=Path, help=text)
    cost.set_defaults(run=_cost)


def _cost(options: argparse.Namespace) -> None:
    from directrank.system.errors import ConfigError

    if options.calibrate is not None and options.against is None:
        raise ConfigError(
            "--calibrate needs recorded runs", "name them with --against results/<edition>"
        )
    if options.measure is not None:
        _measured(options.measure, options.device, options.threads)
        print(options.measure)
    elif options.config is None:
        raise ConfigError(
            "no edition was named",
            "name one, such as config/paper.yaml, or measure this machine with --measure FILE",
        )
    if options.config is not None:
        _report(options)


def _report(options: argparse.Namespace) -> None:
    from dataclasses import asdict

    import pandas as pd

    from directrank.cost import cluster as clusters
    from directrank.cost.estimate import against, calibrated, estimate
    from directrank.cost.rates import Rates, assumed_gpu
    from directrank.edition.plan import load
    from directrank.system.io import write_csv
    from directrank.system.schema import read_yaml

    plan = load(read_yaml(options.config))
    # Before anything is measured, so that a mistake in the file is reported at once.
    cluster = None if options.cluster is None else clusters.Cluster.read(options.cluster)
    if options.rates:
        cpu = Rates.read(options.rates)
    else:
        arithmetic = plan.config["arithmetic"]
        cpu = own_rates(options.threads, arithmetic, measuring=not options.quick)
    gpu = Rates.read(options.gpu_rates) if options.gpu_rates else assumed_gpu(cpu)
    estimates = {"cpu": estimate(plan, cpu), "gpu": estimate(plan, gpu)}
    runs = estimates["cpu"].runs.assign(gpu_seconds=estimates["gpu"].runs["seconds"])
    runs = runs.sort_values("seconds", ascending=False, kind="stable")
    frames = {"products": _products(estimates), "runs": runs}
    _print_products(plan.edition, estimates, frames["products"])
    if options.runs:
        _table("Runs", runs)
    if cluster is not None:
        chosen = estimates["gpu" if cluster.device == "cuda" else "cpu"]
        course = clusters.queue(chosen.runs["seconds"].tolist(), cluster)
        frames["cluster"] = pd.DataFrame([asdict(course)])
        _table(f"On the cluster '{cluster.name}'", frames["cluster"])
        if cluster.device == "cpu" and cluster.cores_per_job != chosen.rates.threads:
            print(
                f"Jobs on this cluster use {cluster.cores_per_job} cores, but the rates are for "
                f"{chosen.rates.threads} threads. Measure with --threads {cluster.cores_per_job}."
            )
    if options.against is not None:
        frames["against"] = against(estimates["cpu"], options.against)
        _print_against(frames["against"])
        if options.calibrate is not None:
            calibrated(estimates["cpu"], frames["against"]).write(options.calibrate)
            print(options.calibrate)
    for name, frame in frames.items() if options.out is not None else ():
        write_csv(options.out / f"{name}.csv", frame)
        print(options.out / f"{name}.csv")


def own_rates(threads: int, arithmetic: str, measuring: bool = True) -> Rates:
    """This machine's rates, measured once and kept in the user's cache.

    Args:
        threads: of a fit.
        arithmetic: of the edition; the fastest instructions may take half the time of others.
        measuring: False for the rates of another machine if those of this one are not in the cache.
    """
    from directrank.cost.measure import covers_everything, machine, of_another_machine
    from directrank.cost.rates import Rates
    from directrank.system.arithmetic import environment, of_this_process
    from directrank.system.errors import ConfigError

    path = user_cache() / "directrank" / f"rates-cpu-{threads}-{arithmetic}.json"
    if path.is_file():
        try:
            rates = Rates.read(path)
        except ConfigError:
            rates = None  # written by an older version
        if rates is not None and rates.machine == machine("cpu") and covers_everything(rates):
            return rates
    if not measuring:
        return of_another_machine()
    with tempfile.TemporaryDirectory() as folder:
        measured = Path(folder) / path.name
        if arithmetic == of_this_process():
            _measured(measured, "cpu", threads)
        else:
            # Libraries choose their instructions when they are loaded, so another process measures.
            command = [sys.executable, "-m", "directrank", "cost", "--measure", str(measured)]
            subprocess.run(
                [*command, "--threads", str(threads)],
                env=environment(arithmetic),
                stdout=subprocess.DEVNULL,
                check=True,
            )
        rates = Rates.read(measured)
    with contextlib.suppress(OSError):  # without a cache, the next call measures again
        rates.write(path)
    return rates


def user_cache() -> Path:
    """The user's cache folder, which may not be writable; below /dev/null without a home."""
    home = os.path.expanduser("~")
    return Path(os.environ.get("XDG_CACHE_HOME") or f"{os.devnull if home == '~' else home}/.cache")


def _measured(path: Path, device: str, threads: int) -> Rates:
    import torch

    from directrank.cost.measure import measure
    from directrank.system.errors import ConfigError

    if device == "cuda" and not torch.cuda.is_available():
        raise ConfigError("PyTorch finds no GPU to measure", "measure the CPU with --device cpu")
    print("measuring this machine, which takes a few seconds", file=sys.stderr, flush=True)
    rates = measure(device, threads)
    rates.write(path)
    return rates


def _products(estimates: dict[str, Estimate]) -> pd.DataFrame:
    frame = estimates["cpu"].products.rename(
        columns={"hours": "cpu_hours", "hours_own": "cpu_hours_own"}
    )
    frame["gpu_hours"] = estimates["gpu"].products["hours"]
    frame["gpu_hours_own"] = estimates["gpu"].products["hours_own"]
    frame["gpu_rates"] = "measured" if estimates["gpu"].rates.measured else "assumed"
    return frame


def _print_products(edition: str, estimates: dict[str, Estimate], frame: pd.DataFrame) -> None:
    cpu, gpu = estimates["cpu"].rates, estimates["gpu"].rates
    kind = "measured" if gpu.measured else "ASSUMED, not measured here"
    print(f"CPU: {cpu.machine}, {cpu.threads} thread(s) per fit; {cpu.note}")
    print(f"GPU: {gpu.machine}; {kind}: {gpu.note}")
    _table(f"Cost of edition '{edition}' (upper bounds)", frame.drop(columns="gpu_rates"))
    print("A run that several products need is counted in each of them, but once in each sum")
    print("('all'). The hours in the 'own' columns are those of runs that nothing else needs.")
    print("All hours are for one process at a time, also on the GPU, which several processes of")
    print("small networks can share. The sizes of the data sets come from:")
    for name, origin in estimates["cpu"].runs.groupby("data")["known_from"].first().items():
        print(f"  {name}: {origin}")


def _print_against(frame: pd.DataFrame) -> None:
    import numpy as np

    _table("Recorded ÷ predicted seconds", frame)
    total, ratios = frame["recorded_s"].sum() / frame["predicted_s"].sum(), frame["ratio_at_epochs"]
    print(
        f"Recorded ÷ predicted time is {total:.2f} for all {len(frame)} runs together. For single "
        f"runs, at the epochs that they took, its geometric mean is "
        f"{np.exp(np.log(ratios).mean()):.2f}, and it ranges from {ratios.min():.2f} to "
        f"{ratios.max():.2f}."
    )


def _table(title: str, frame: pd.DataFrame) -> None:
    def number(value: float) -> str:
        return f"{value:,.1f}" if abs(value) >= 100 else f"{value:.3g}"

    named = frame.rename(columns=lambda name: name.replace("_", " "))
    print(f"\n{title}\n{named.to_string(index=False, float_format=number)}\n")
