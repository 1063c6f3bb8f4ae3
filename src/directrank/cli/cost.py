"""``directrank cost``: predicted hours per figure and table."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

    from directrank.cost.estimate import CostEstimate
    from directrank.cost.machine import Machine

EPILOG = """\
examples:
  directrank cost config/paper.yaml
      predict hours on this machine's CPU, whose speed is measured once, and on an NVIDIA H200
  directrank cost --measure gpu.json --device cuda
      measure a GPU's speed; then: directrank cost config/paper.yaml --gpu-rates gpu.json
  directrank cost config/paper.yaml --cluster cluster.yaml
      predict wall time and queue slots; cluster.yaml contains, for example,
        {name: ours, nodes: 8, cores_per_node: 32, time_limit_hours: 12, group_minutes: 30}
  directrank cost config/demo.yaml --against results/demo
      compare the recorded times of fits with the predicted ones
  directrank cost config/demo.yaml --against results/demo --calibrate rates.json
      correct the speed by those runs; then: directrank cost config/paper.yaml --rates rates.json
  directrank cost config/paper.yaml --out cost
      write cost/products.csv and cost/runs.csv, and cluster.csv and against.csv if requested

Hours follow from recorded runs: each run takes the time of those that are nearest to it, times the
ratio of their work and of the speed of this machine. Runs that may stop early are taken to stop as
early as those.
"""


def add_parsers(subparsers: argparse._SubParsersAction) -> None:
    """Add the commands of this module."""
    cost = subparsers.add_parser(
        "cost",
        help="predict the hours of an edition, per figure and table",
        description=(
            "Predict how long an edition takes, per figure and table, per paper and in total, from "
            "its configuration, recorded runs and the measured speed of a machine. The data need "
            "not be prepared."
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
        help="measure nothing: if this machine's speed is unknown, give the hours of the machine "
        "of the recorded runs",
    )
    for name, metavar, text in (
        (
            "measure",
            "FILE",
            "measure this machine and write its speed to FILE (with the processor "
            "instructions that the environment allows: native arithmetic, unless it is restricted)",
        ),
        ("rates", "FILE", "a CPU's speed (default: this machine's, kept in the user's cache)"),
        ("gpu-rates", "FILE", "a GPU's speed (default: that of an NVIDIA H200)"),
        ("cluster", "FILE", "a description of a cluster (YAML)"),
        ("against", "RESULTS", "compare with recorded runs, e.g. results/demo"),
        ("calibrate", "FILE", "with --against: write the CPU's speed, corrected by those runs"),
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
        _measured(options.device, options.threads).write(options.measure)
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
    from directrank.cost.machine import REFERENCE, Machine
    from directrank.edition.plan import load
    from directrank.system.io import write_csv
    from directrank.system.schema import read_yaml

    plan = load(read_yaml(options.config))
    # Before anything is measured, so that a mistake in the file is reported at once.
    cluster = None if options.cluster is None else clusters.Cluster.read(options.cluster)
    if options.rates:
        cpu = Machine.read(options.rates)
    else:
        cpu = own_machine(options.threads, measuring=not options.quick)
    gpu = Machine.read(options.gpu_rates) if options.gpu_rates else REFERENCE["cuda"]
    prediction = estimate(plan, cpu, gpu)
    runs = prediction.runs.sort_values("seconds", ascending=False, kind="stable")
    products = prediction.products.assign(gpu_rates="measured" if gpu.measured else "assumed")
    frames = {"products": products, "runs": runs}
    _print_products(plan.edition, prediction)
    if options.runs:
        _table("Runs", runs)
    if cluster is not None:
        on_gpus = cluster.device == "cuda"
        course = clusters.queue(runs["gpu_seconds" if on_gpus else "seconds"].tolist(), cluster)
        frames["cluster"] = pd.DataFrame([asdict(course)])
        _table(f"On the cluster '{cluster.name}'", frames["cluster"])
        if not on_gpus and cluster.cores_per_job != cpu.threads:
            print(
                f"Jobs on this cluster use {cluster.cores_per_job} cores, but the hours are for "
                f"{cpu.threads} threads. Measure with --threads {cluster.cores_per_job}."
            )
    if options.against is not None:
        frames["against"] = against(prediction, options.against)
        _print_against(frames["against"])
        if options.calibrate is not None:
            calibrated(cpu, frames["against"]).write(options.calibrate)
            print(options.calibrate)
    for name, frame in frames.items() if options.out is not None else ():
        write_csv(options.out / f"{name}.csv", frame)
        print(options.out / f"{name}.csv")


def own_machine(threads: int, measuring: bool = True) -> Machine:
    """This machine's CPU, measured once and kept in the user's cache.

    Args:
        threads: of a fit.
        measuring: False for the machine of the recorded runs if this one is not in the cache.
    """
    from directrank.cost.machine import REFERENCE, Machine, name_of
    from directrank.system.errors import ConfigError

    path = user_cache() / "directrank" / f"machine-cpu-{threads}.json"
    if path.is_file():
        with contextlib.suppress(ConfigError):  # written by another version
            known = Machine.read(path)
            if known.name == name_of("cpu"):
                return known
    if not measuring:
        return REFERENCE["cpu"]
    machine = _measured("cpu", threads)
    with contextlib.suppress(OSError):  # without a cache, the next call measures again
        machine.write(path)
    return machine


def user_cache() -> Path:
    """The user's cache folder, which may not be writable; below /dev/null without a home."""
    home = os.path.expanduser("~")
    return Path(os.environ.get("XDG_CACHE_HOME") or f"{os.devnull if home == '~' else home}/.cache")


def _measured(device: str, threads: int) -> Machine:
    import torch

    from directrank.cost.machine import measure
    from directrank.system.errors import ConfigError

    if device == "cuda" and not torch.cuda.is_available():
        raise ConfigError("PyTorch finds no GPU to measure", "measure the CPU with --device cpu")
    print("measuring this machine, which takes a few seconds", file=sys.stderr, flush=True)
    return measure(device, threads)


def _print_products(edition: str, prediction: CostEstimate) -> None:
    cpu, gpu = prediction.cpu, prediction.gpu
    assumed = "" if gpu.measured else "ASSUMED, not measured here; "
    print(f"CPU: {cpu.name}, {cpu.threads} thread(s) per fit; {_speed(cpu)}")
    print(f"GPU: {gpu.name}; {assumed}{_speed(gpu)}")
    _table(f"Cost of edition '{edition}'", prediction.products)
    print("A run that several products need is counted in each of them, but once in each sum")
    print("('all'). The hours in the 'own' columns are those of runs that nothing else needs.")
    print("All hours are for one process at a time, also on the GPU, which several processes of")
    print("small networks can share. Few runs were recorded on a GPU, so that its hours are")
    print("extrapolated. The sizes of the data sets come from:")
    for name, origin in prediction.runs.groupby("data")["known_from"].first().items():
        print(f"  {name}: {origin}")


def _speed(machine: Machine) -> str:
    return f"{machine.slowness:.3g} times the recorded seconds; {machine.note}"


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
