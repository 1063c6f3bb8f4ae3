"""How well the training engine uses a GPU, on data of the size of Web30K.

    python benchmarks/bench_gpu.py                     everything; about five minutes
    python benchmarks/bench_gpu.py steps together      only these parts

Parts:

steps     B1024 and R5 with ApproxNDCG, 128 queries a step, and Pobrotyn2021's transformer with
          ApproxNDCG and NeuralNDCG, 64 queries a step and lists cut to 240 documents (a tenth of
          the queries): documents per second, seconds of an epoch of Web30K's fold 1 (generated at
          full size: 18 919 queries and 2.27 million documents, 6 306 queries to validate on), in
          float32, TF32 and bfloat16; the share of the GPU's matrix-product rate; the same step
          written the usual way (torch.nn modules on padded lists, autograd loss); the same with
          features that stay in the host's memory; the GPU's memory.
queries   Yu2020's network with one query a step, as one model and as stacks of models that share
          their queries.
together  Ten trials of a small network in one pass, and one after another.
sharing   The same small fit in one, two, four and eight concurrent processes on one GPU.
stacked   Small fits of eight and of 24 losses, each as a run of its own, in one process that trains
          them together, and in a process each, one after another.
losses    Every loss beside allRank's on the same tensors: see ``gpu_losses.py``.

Writes ``results/gpu.csv``, ``gpu_losses.csv`` and ``gpu.md``.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import gpu_losses
import numpy as np
import torch
from bench_training import (
    ADAM,
    APPROX_NDCG,
    FEATURES,
    NETWORKS,
    QUERIES,
    YU2020,
    epoch_seconds,
    fit,
    flops_per_document,
    together,
    usual_epoch,
)
from training_commands import command, prepare, run_directrank, small_run
from training_lists import lists_of, splits_of, web30k_lengths
from training_rows import Row, parsed, parser, row, write

from directrank import learners
from directrank.learners.contract import FitJob, Splits, no_progress
from directrank.learners.neural.batches import Feeder
from directrank.system.io import write_json

THREADS = 4

#: Training queries of Web30K's fold 1.
WEB30K = 18_919

#: How many models see one query a step, in so many steps, and what is measured of them.
MODELS, STEPS, MODEL_AND_STEP = (1, 18, 72), 640, "µs of a model and step"

#: Training of a stack whose models see the same query in each step.
ONE_QUERY = {"batch_queries": 1, "max_epochs": 3, "stack": 0}

CONTEXT = {"name": "context", "width": 96, "blocks": 2, "heads": 1, "inner": 384, "dropout": 0.1}
CUT = {"batch_queries": 64, "max_documents": 240, "cut": "random_relevant"}

#: Name → scorer, loss and settings of training.
CASES: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    **{
        name: (model, APPROX_NDCG, {"batch_queries": QUERIES})
        for name, (model, _, _) in NETWORKS.items()
    },
    "transformer, ApproxNDCG": (CONTEXT, {"name": "approx_ndcg", "alpha": 1.0}, CUT),
    "transformer, NeuralNDCG": (CONTEXT, {"name": "neural_ndcg"}, CUT),
}


def steps() -> list[Row]:
    """Whole steps and epochs at Web30K's size."""
    rates = {kind: product_rate(kind) for kind in (torch.float32, torch.bfloat16)}
    rows = [
        row("product rate", str(kind).removeprefix("torch."), rate / 1e12, "Tflop/s")
        for kind, rate in rates.items()
    ]
    train = lists_of(web30k_lengths(WEB30K), FEATURES)
    whole = Splits(train, lists_of(web30k_lengths(6_306), FEATURES), splits_of(train).test, 5)
    few = train.select(np.arange(10 * QUERIES))
    tenth = splits_of(train.select(np.arange(train.n_queries // 10)))
    for name, (model, loss, training) in CASES.items():
        data = whole if name in NETWORKS else tenth
        for precision in ("float32", "tf32", "bfloat16"):
            rows += of_steps(f"{name} {precision}", data, model, loss, training, precision)
        if name in NETWORKS:
            rows += validated(f"{name} float32", whole, model, loss, training)
            speed = found(rows, "documents per second", f"{name} float32")
            share = speed * flops_per_document(name) / rates[torch.float32]
            rows.append(row("share of the GPU's product rate", f"{name} float32", share, ""))
            usual = usual_epoch(name, few, "cuda")
            slow = few.n_documents / min(usual() for _ in range(3))
            rows.append(row("documents per second", f"{name} usual way", slow, "1/s"))
            rows.append(row("times the usual way on a GPU", f"{name} float32", speed / slow, "×"))
    resident, Feeder.RESIDENT = Feeder.RESIDENT, 0.0
    model, loss, training = CASES["B1024"]
    seconds = epoch_seconds(timed(splits_of(train), model, loss, training, "float32"))
    Feeder.RESIDENT = resident
    speed = train.n_documents / seconds
    rows.append(row("documents per second", "B1024 float32, features on the host", speed, "1/s"))
    return rows


def found(rows: list[Row], measure: str, configuration: str) -> float:
    """A value that was measured before."""
    return next(
        r["value"] for r in rows if (r["measure"], r["configuration"]) == (measure, configuration)
    )


def timed(
    data: Splits, model: dict, loss: dict, training: dict, precision: str, epochs: int = 4
) -> list:
    """A fit of some epochs on the GPU."""
    settings = {**training, "max_epochs": epochs, "precision": precision}
    return fit(data, model, THREADS, device="cuda", loss=loss, **settings)


def of_steps(
    name: str, data: Splits, model: dict, loss: dict, training: dict, precision: str
) -> list[Row]:
    """Speed, time of an epoch and memory of one configuration."""
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    seconds = epoch_seconds(timed(splits_of(data.train), model, loss, training, precision))
    taken = torch.cuda.max_memory_allocated() / 1e9
    lengths = np.minimum(data.train.lengths, training.get("max_documents", np.inf))
    part = data.train.n_queries / WEB30K
    return [
        row("documents per second", name, lengths.sum() / seconds, "1/s"),
        row(
            "seconds of an epoch",
            name + ("" if part == 1 else ", from a tenth"),
            seconds / part,
            "s",
        ),
        row("GB on the GPU, features included", name, taken, "GB"),
    ]


def validated(name: str, data: Splits, model: dict, loss: dict, training: dict) -> list[Row]:
    """The time of an epoch with validation."""
    seconds = epoch_seconds(timed(data, model, loss, training, "float32", 2))
    return [row("seconds of an epoch with validation", name, seconds, "s")]


def queries() -> list[Row]:
    """Models that see one query a step; 72 are those of a fold of Yu2020."""
    data = splits_of(lists_of(web30k_lengths(STEPS), FEATURES))
    rows = []
    for models in MODELS:
        settings = [
            {
                "model": YU2020,
                "loss": APPROX_NDCG,
                "training": {**ONE_QUERY, "optimizer": {**ADAM, "lr": 0.001 + number * 1e-5}},
            }
            for number in range(models)
        ]
        job = FitJob("bench", 0, {"name": "ndcg", "k": 5}, THREADS, "cuda", no_progress)
        fitted = learners.get("neural").load()(data, settings, [job] * models)
        seconds = epoch_seconds(fitted) / (STEPS * models)
        name = f"{models} models, one query a step"
        rows.append(row(MODEL_AND_STEP, name, 1e6 * seconds, "µs"))
    return rows


def product_rate(kind: torch.dtype) -> float:
    """Flops per second of a large matrix product."""
    a, b = (torch.randn(8192, 8192, device="cuda").to(kind) for _ in range(2))
    best = float("inf")
    for _ in range(8):
        torch.cuda.synchronize()
        began = time.perf_counter()
        a @ b
        torch.cuda.synchronize()
        best = min(best, time.perf_counter() - began)
    return 2 * 8192**3 / best


def sharing() -> list[Row]:
    """Fits of a small network in processes side by side."""
    rows, alone = [], 0.0
    with tempfile.TemporaryDirectory() as folder:
        prepared, run = prepare(Path(folder)), Path(folder, "run.json")
        write_json(run, small_run(max_epochs=60))
        for side_by_side in (1, 2, 4, 8):
            began = time.perf_counter()
            shared = ["--data", prepared, "--device", "cuda", "--fits-per-gpu", side_by_side]
            processes = [
                subprocess.Popen(
                    command("fit", run, *shared, "--out", f"{folder}/{side_by_side}-{number}"),
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
                for number in range(side_by_side)
            ]
            assert [process.wait() for process in processes] == [0] * side_by_side
            seconds = (time.perf_counter() - began) / side_by_side
            alone = alone or seconds
            name = f"{side_by_side} processes on one GPU"
            rows.append(row("seconds of a fit", name, seconds, "s"))
            rows.append(row("fits per hour, times one process", name, alone / seconds, "×"))
    return rows


#: Losses with which runs of a small network differ; the first eight are also trained by themselves.
OF_RUNS = (
    "approx_ndcg", "ranknet", "lambdarank", "listnet", "listmle", "twin_ndcg", "lambda_loss",
    "neural_ndcg", "approx_ap", "fast_soft_ndcg", "twin_precision", "twin_ap", "twin_nerr",
    "rmse", "xe_ndcg", "gumbel_approx_ndcg", "pl_rank", "lapsum_ndcg", "blackbox_ndcg", "pirank",
    "k_song", "yeti_loss", "stochastic_rank", "neural_ndcg_transposed",
)  # fmt: skip


def stacked() -> list[Row]:
    """Runs of a small network with several losses, together and one after another."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        prepared = prepare(Path(folder))
        runs = [Path(folder, f"{loss}.json") for loss in OF_RUNS]
        for run, loss in zip(runs, OF_RUNS, strict=True):
            write_json(run, {**small_run(max_epochs=60), "loss": {"name": loss}})

        def seconds(some: list[Path], name: str) -> float:
            """The seconds of a fit in one process that trains these runs."""
            began = time.perf_counter()
            out = [f"{folder}/{name}-{run.stem}" for run in some]
            run_directrank("fit", *some, "--data", prepared, "--device", "cuda", "--out", *out)
            return (time.perf_counter() - began) / len(some)

        for losses in (8, len(OF_RUNS)):
            seconds(runs[:losses], f"first-{losses}")  # compiles what is compiled once
            together = seconds(runs[:losses], f"together-{losses}")
            if not rows:
                alone = np.mean([seconds([run], "alone") for run in runs[:4]])
                rows.append(row("seconds of a fit", "1 loss in a process", alone, "s"))
            name = f"{losses} losses in a process"
            rows.append(row("seconds of a fit", name, together, "s"))
            rows.append(row("fits per hour, times one process", name, alone / together, "×"))
    return rows


#: The part that is a table of its own.
LOSSES = "losses"

PARTS: dict[str, Callable[[], list[Row]]] = {
    "steps": steps,
    "queries": queries,
    "together": partial(together, THREADS, "cuda", turns=1),
    "sharing": sharing,
    "stacked": stacked,
}


def main() -> None:
    """Measure what the command line asks for."""
    names = [*PARTS, LOSSES]
    options = parser(__doc__, names)
    chosen = parsed(options, names)
    if not torch.cuda.is_available():
        options.error("PyTorch sees no GPU here")
    torch.set_num_threads(min(THREADS, os.cpu_count() or 1))
    rows = [found for name in chosen.parts if name in PARTS for found in PARTS[name]()]
    if LOSSES in chosen.parts:
        gpu_losses.measure(chosen.out)
    machine = torch.cuda.get_device_name()
    write(rows, chosen.out, "gpu", machine, "On a GPU", gpu_losses.page(chosen.out))


if __name__ == "__main__":
    main()
