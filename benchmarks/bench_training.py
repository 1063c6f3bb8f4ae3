"""How well the training engine uses the machine, compared with the same steps in plain PyTorch.

    python benchmarks/bench_training.py                      everything, on 2 threads
    python benchmarks/bench_training.py steps linear         only these parts
    python benchmarks/bench_training.py --threads 1

Parts:

steps     B1024 and R5 with ApproxNDCG, 128 queries a step, lists as long as Web30K's (mean 120,
          longest 1251): the share of PyTorch's rate of matrix products that whole steps reach, in
          float32 and bfloat16; documents per second beside torch.nn modules on lists padded to the
          longest of the batch with an autograd loss (without the batch that has the longest list
          of all, which would take 10 GB); the share that the network's products reach when nothing
          else is done; the loader's share; wasted pairs.
queries   Yu2020's networks with one query a step and lists as long as Web30K's: a step, beside one
          of torch.nn modules with the same loss (ListNet).
together  Ten trials of a small network in one pass, and one after the other: seconds of an epoch in
          one process, where steps are short (one query, as Burges2006 and Yu2020 train) and where
          arithmetic decides (16 queries).
commands  The same on the command line: the wall time of one command ``directrank fit`` with ten
          trials, and of ten commands with one trial each, one after another.
linear    60 linear ApproxNDCG models (6 alphas × 10 starts) for 100 epochs on data of OHSUMED's
          size, on one core, beside a plain version that trains all of them at once, too.
evaluation
          NDCG@5 of full lists beside the forward pass that scores them.
memory    Web30K's fold 1 at full size, generated once into benchmarks/scratch: resident memory
          beyond the mapped file while a small network makes an epoch and B1024 a few steps.

Contestants take turns and the least time of each counts, so that a busy machine meets all of them;
the rate of products, which is PyTorch's, is measured in between. Freed memory is kept, as in every
run, which all contestants gain by. The BLAS of compiled loops is measured as it is; with
``OPENBLAS_CORETYPE=Haswell`` it is limited to AVX2, as portable arithmetic limits it. Writes
``results/training.csv`` and ``training.md``, in which the rows of other parts stay as they were.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from torch import Tensor, nn
from training_commands import SMALL, TRIALS, commands
from training_evaluation import evaluation
from training_lists import LABEL_SHARES, lists_of, splits_of, web30k_lengths
from training_memory import features_file, peak_memory
from training_rows import Row, parsed, parser, row, write

from directrank import learners
from directrank.learners.contract import FitJob, Fitted, Splits, no_progress
from directrank.learners.neural import stacking
from directrank.learners.neural.batches import Feeder
from directrank.learners.neural.failures import keep_freed_memory
from directrank.lists.packed import RankedLists, concatenated_ranges
from directrank.lists.padding import pad, padded_positions
from directrank.study.provenance import environment
from directrank.system import blas
from directrank.system.errors import ConfigError
from directrank.system.seeds import numpy_stream

HERE = Path(__file__).resolve().parent

QUERIES = 128
FEATURES = 136
TOWER = [1024, 512, 256, 128, 64, 32, 16]
R5 = [100, 100, 100, 100]
APPROX_NDCG = {"name": "approx_ndcg", "alpha": 10.0}

#: Name → the scorer, its widths, and whether the gradient of its input is needed (for the affine
#: parameters of a norm of the input).
NETWORKS: dict[str, tuple[dict[str, Any], list[int], bool]] = {
    "B1024": ({"name": "tower", "hidden": TOWER}, [FEATURES, *TOWER, 1], True),
    "R5": (
        {
            "name": "feed_forward",
            "activation": "relu",
            "output_activation": True,
            "hidden": R5,
            "norm": "batch",
            "dropout": 0.0,
        },
        [FEATURES, *R5, 1],
        False,
    ),
}

#: Yu2020's network without its activation, its optimiser, and a loss that takes little of a step.
YU2020 = {**NETWORKS["R5"][0], "norm": "query", "dropout": 0.01}
ADAM = {"name": "adam", "lr": 0.001, "weight_decay": 0.001}
LISTNET = {"name": "listnet"}

#: What the BLAS of compiled loops is limited to with portable arithmetic. Rows that were measured
#: with another say so.
AVX2 = ("Haswell", "Zen", "")

#: How often each is timed, for the least of all: an epoch of R5 takes a tenth of one of B1024.
TURNS = {"B1024": 4, "R5": 12}


# ------------------------------------------------------------------------------------- contestants


def fit(
    data: Splits,
    model: Mapping[str, Any],
    threads: int,
    jobs: int = 1,
    device: str = "cpu",
    loss: Mapping[str, Any] = APPROX_NDCG,
    **training: Any,
) -> list[Fitted]:
    """Models trained by the library; their histories say how long an epoch took."""
    settings = {
        "model": model,
        "loss": loss,
        "training": {"optimizer": {"name": "adagrad", "lr": 0.005}, **training},
    }
    told = [
        FitJob("bench", trial, {"name": "ndcg", "k": 5}, threads, device, no_progress)
        for trial in range(jobs)
    ]
    return learners.get("neural").load()(data, [settings] * jobs, told)


def epoch_seconds(fitted: Sequence[Fitted]) -> float:
    """The fastest epoch of models that were trained together."""
    epochs = zip(*([row["seconds"] for row in fit.history] for fit in fitted), strict=True)
    return min(sum(seconds) for seconds in epochs)


def usual_network(name: str) -> nn.Sequential:
    """A network as torch.nn has it."""
    _, widths, input_norm = NETWORKS[name]
    layers: list[nn.Module] = [nn.BatchNorm1d(widths[0])] if input_norm else []
    last = len(widths) - 2
    for number, (fan_in, fan_out) in enumerate(pairwise(widths)):
        layers.append(nn.Linear(fan_in, fan_out))
        if number < last or name == "R5":
            layers += [nn.BatchNorm1d(fan_out), nn.ReLU()]
    return nn.Sequential(*layers)


def usual_loss(scores: Tensor, labels: Tensor, mask: Tensor, alpha: Any = 10.0) -> Tensor:
    """ApproxNDCG by autograd, with a [B, L, L] tensor for each operation."""
    pairs = torch.sigmoid(alpha * (scores.unsqueeze(1) - scores.unsqueeze(2)))
    ranks = 0.5 + (pairs * mask.unsqueeze(1)).sum(2)
    gains = (2**labels - 1) * mask
    best = gains.sort(1, descending=True).values
    ideal = (
        (best / torch.log2(torch.arange(2.0, best.shape[1] + 2, device=best.device)))
        .sum(1)
        .clamp_min(1e-9)
    )
    return -(gains / torch.log2(1 + ranks)).sum(1) / ideal


def usual_epoch(name: str, lists: RankedLists, device: str = "cpu") -> Callable[[], float]:
    """An epoch of the usual way as a function that returns its seconds."""
    torch.manual_seed(0)
    network = usual_network(name).to(device)
    optimiser = torch.optim.Adagrad(network.parameters(), lr=0.005)
    features = torch.from_numpy(lists.features).to(device)
    labels = torch.from_numpy(lists.labels).to(device)

    def epoch() -> float:
        wait(device)
        began = time.perf_counter()
        for first in range(0, lists.n_queries, QUERIES):
            lengths = lists.lengths[first : first + QUERIES]
            rows = torch.from_numpy(
                concatenated_ranges(lists.offsets[first : first + QUERIES], lengths)
            ).to(device)
            mask, index = padded_positions(torch.from_numpy(lengths).to(device))
            padded = features.new_zeros(mask.numel(), FEATURES).index_copy_(
                0, index, features[rows]
            )
            scores = network(padded).view(mask.shape)
            loss = usual_loss(scores, pad(labels[rows], mask, index), mask.float()).mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        wait(device)
        return time.perf_counter() - began

    return epoch


def on(device: str) -> str:
    """What a measure's name says of the device."""
    return "" if device == "cpu" else " on a GPU"


def wait(device: str) -> None:
    """Until a GPU has done what it was asked for."""
    if device != "cpu":
        torch.cuda.synchronize()


def product_rate() -> float:
    """Flops per second of large matrix products in float32, seven in a row.

    They take about as long as an epoch of R5, so that what else the machine does meets both alike.
    """
    a, b, products = torch.randn(2048, 1024), torch.randn(1024, 1024), 7
    best = float("inf")
    for _ in range(3):
        began = time.perf_counter()
        for _ in range(products):
            a @ b
        best = min(best, time.perf_counter() - began)
    return products * 2 * 2048 * 1024 * 1024 / best


def flops_per_document(name: str) -> float:
    """Of a network's products, forwards and backwards; of its input's gradient where it is used."""
    _, widths, input_norm = NETWORKS[name]
    products = [2.0 * fan_in * fan_out for fan_in, fan_out in pairwise(widths)]
    return 3 * sum(products) - (0 if input_norm else products[0])


def products_alone(name: str, lists: RankedLists, kind: torch.dtype) -> float:
    """Seconds of the products of an epoch, forwards and backwards, and of nothing else."""
    _, widths, input_norm = NETWORKS[name]
    seconds = 0.0
    for first in range(0, lists.n_queries, QUERIES):
        documents = int(lists.lengths[first : first + QUERIES].sum())
        for number, (fan_in, fan_out) in enumerate(pairwise(widths)):
            sizes = (documents, fan_in), (fan_in, fan_out), (documents, fan_out)
            x, weight, slopes = (torch.randn(size).to(kind) for size in sizes)
            began = time.perf_counter()
            x @ weight
            x.T @ slopes
            if number or input_norm:
                slopes @ weight.T
            seconds += time.perf_counter() - began
    return seconds


# ------------------------------------------------------------------------------------------- parts


def steps(threads: int) -> list[Row]:
    """Whole steps on Web30K-like lists."""
    torch.set_num_threads(threads)
    lists = lists_of(web30k_lengths(8 * QUERIES), FEATURES)
    data, documents = splits_of(lists), lists.n_documents
    rows, rate, flops_per_second = [], 0.0, {}
    for name, (model, _, _) in NETWORKS.items():
        best: dict[str, float] = {}
        kinds = ["float32", "bfloat16"]
        easier = lists.select(np.arange(QUERIES))  # without the longest list
        usual = usual_epoch(name, easier)
        fitted = None
        for turn in range(TURNS[name]):
            rate = max(rate, product_rate())
            for kind in tuple(kinds):
                try:
                    fitted = fit(
                        data, model, threads, batch_queries=QUERIES, max_epochs=2, precision=kind
                    )
                except ConfigError as error:
                    print(f"{kind} is not measured: {error.what}", flush=True)
                    kinds.remove(kind)
                    continue
                best[kind] = min(best.get(kind, np.inf), epoch_seconds(fitted))
            if turn < 2:  # it takes long
                best["usual"] = min(best.get("usual", np.inf), usual())
            for kind in kinds:
                seconds = products_alone(name, lists, getattr(torch, kind))
                best[f"{kind} alone"] = min(best.get(f"{kind} alone", np.inf), seconds)
        slow = easier.n_documents / best["usual"]
        flops = documents * flops_per_document(name)
        flops_per_second[f"{name} float32"] = flops / best["float32"]
        flops_per_second[f"{name}, products alone"] = flops / best["float32 alone"]
        for kind in kinds:
            full = f"{name} {kind}"
            rows.append(row("documents per second", full, documents / best[kind], "1/s"))
            rows.append(row("times the usual way", full, documents / best[kind] / slow, "×"))
        rows.append(row("documents per second", f"{name} usual way", slow, "1/s"))
        if "bfloat16" in best:
            ratio = best["float32"] / best["bfloat16"]
            rows.append(row("bfloat16 over float32", name, ratio, "×"))
            ratio = best["float32 alone"] / best["bfloat16 alone"]
            rows.append(row("bfloat16 over float32", f"{name}, products alone", ratio, "×"))
            share = best["bfloat16 alone"] / best["bfloat16"]
            rows.append(row("share of its products alone", f"{name} bfloat16", share, ""))
        share = loader_seconds(lists) / best["float32"]
        rows.append(row("loader's share of a step", f"{name} float32", share, ""))
    rows = [
        row("product rate", f"float32, {threads} threads", rate / 1e9, "Gflop/s"),
        *(
            row("share of the product rate", what, reached / rate, "")
            for what, reached in flops_per_second.items()
        ),
        *rows,
    ]
    assert fitted is not None
    wasted = fitted[0].info["wasted_pairs"]
    rows.append(row("wasted pairs", "in groups of like length", wasted, ""))
    batches = [lists.lengths[i : i + QUERIES] for i in range(0, lists.n_queries, QUERIES)]
    padded = sum(len(batch) * batch.max() ** 2 for batch in batches)
    waste = 1 - sum((batch**2).sum() for batch in batches) / padded
    rows.append(row("wasted pairs", "padded to the longest", waste, ""))
    return rows


def loader_seconds(lists: RankedLists) -> float:
    """Seconds in which all batches of an epoch are drawn and copied."""
    feeder = Feeder(lists, torch.float32, torch.device("cpu"))
    order = np.arange(lists.n_queries).reshape(-1, 1, QUERIES)
    found = []
    for _ in range(5):
        began = time.perf_counter()
        for queries in order:
            # Copying is the loader's as well where layers in blocks do it.
            _ = feeder.draw(queries, [1]).features
        found.append(time.perf_counter() - began)
    return min(found)


def queries(threads: int) -> list[Row]:
    """A step of Yu2020's networks, which see one query at a time."""
    torch.set_num_threads(threads)
    lists = lists_of(np.maximum(web30k_lengths(600), 2), FEATURES)
    data, rows = splits_of(lists), []
    for name, activation in {"R5": "relu", "CE5": "celu"}.items():
        model = {**YU2020, "activation": activation}
        training = {"optimizer": ADAM, "batch_queries": 1, "max_epochs": 2}
        usual = usual_queries(activation, lists)
        ours = theirs = float("inf")
        for _ in range(3):
            ours = min(ours, epoch_seconds(fit(data, model, threads, loss=LISTNET, **training)))
            theirs = min(theirs, usual())
        name = f"{name}, 1 query a step"
        rows += [
            row("milliseconds of a step", name, 1e3 * ours / lists.n_queries, "ms"),
            row("times the usual way", name, theirs / ours, "×"),
        ]
    return rows


def usual_queries(activation: str, lists: RankedLists) -> Callable[[], float]:
    """An epoch of Yu2020's network in torch.nn, one query a step, as a function of no arguments."""
    torch.manual_seed(0)
    layers: list[nn.Module] = []
    for number, (fan_in, fan_out) in enumerate(pairwise([FEATURES, *R5, 1])):
        if 0 < number < len(R5):
            layers.append(nn.Dropout(YU2020["dropout"]))
        layers += [nn.Linear(fan_in, fan_out), nn.BatchNorm1d(fan_out)]
        layers.append(nn.ReLU() if activation == "relu" else nn.CELU())
    network = nn.Sequential(*layers)
    optimiser = torch.optim.Adam(network.parameters(), lr=0.001, weight_decay=0.001)
    features, labels = torch.from_numpy(lists.features), torch.from_numpy(lists.labels)

    def epoch() -> float:
        began = time.perf_counter()
        for first, last in pairwise(lists.offsets.tolist()):
            scores = network(features[first:last])[:, 0]
            loss = -(labels[first:last].softmax(0) * scores.log_softmax(0)).sum()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        return time.perf_counter() - began

    return epoch


def together(threads: int, device: str = "cpu", turns: int = 3) -> list[Row]:
    """Ten trials of a small network, in one process."""
    torch.set_num_threads(threads)
    lengths = numpy_stream("benchmark", "short").integers(8, 40, 240)
    data = splits_of(lists_of(lengths, FEATURES))
    rows = []
    for queries in (1, 16):
        training = {"batch_queries": queries, "max_epochs": 2}
        best: dict[int, float] = {}
        for _ in range(turns):
            for stack in (0, 1):
                # On a GPU the setting decides nothing, but room does.
                with patch.object(stacking, "ROOM", stacking.ROOM if stack == 0 else 0):
                    fitted = fit(
                        data, SMALL, threads, jobs=TRIALS, device=device, stack=stack, **training
                    )
                # Alone, each fit has its own fastest epoch.
                seconds = (
                    epoch_seconds(fitted)
                    if stack == 0
                    else sum(epoch_seconds([one]) for one in fitted)
                )
                best[stack] = min(best.get(stack, np.inf), seconds)
        name = f"10 trials of [64, 32, 16], {queries} quer{'y' if queries == 1 else 'ies'} a step"
        rows += [
            row("seconds of an epoch, together", name, best[0], "s"),
            row("seconds of an epoch, one by one", name, best[1], "s"),
            row(f"together over one by one{on(device)}", name, best[1] / best[0], "×"),
        ]
    return rows


ALPHAS = [50.0, 100.0, 150.0, 200.0, 250.0, 300.0]
STARTS = 10


def linear(threads: int) -> list[Row]:
    """60 linear models on data of the size of OHSUMED's fold 1, on one core."""
    # CPU seconds of one thread: what else the machine does counts little.
    torch.set_num_threads(1)
    lengths = np.full(63, 9219 // 63)
    lengths[: 9219 - lengths.sum()] += 1
    train = lists_of(lengths, 45, [0.7, 0.15, 0.15])
    name, epochs, part = "60 linear models, 100 epochs", 100, 5
    data, fit_models = splits_of(train), learners.get("neural").load()
    training = {
        "optimizer": {"name": "sgd", "lr": 0.01},
        "batch_queries": 1,
        "reduction": "sum",
        "keep": "last",
        "restarts": STARTS,
        "stack": 0,
    }
    job = FitJob("bench", 0, {"name": "ndcg"}, 1, "cpu", no_progress)

    def all_models(epochs: int) -> float:
        settings = [
            {
                "model": {"name": "linear"},
                "loss": {"name": "approx_ndcg", "alpha": alpha},
                "training": {**training, "max_epochs": epochs},
            }
            for alpha in ALPHAS
        ]
        began = time.process_time()
        fit_models(data, settings, [job] * len(ALPHAS))
        return time.process_time() - began

    all_models(1)  # a process loads compiled loops once
    plain = ours = float("inf")
    for _ in range(3):
        plain = min(plain, plain_linear(train, part) * epochs / part)
        ours = min(ours, all_models(epochs))
    return [
        row("seconds on one core", name, ours, "s"),
        row("seconds on one core", f"{name}, plain (from {part})", plain, "s"),
        row("times a plain version", name, plain / ours, "×"),
    ]


def plain_linear(lists: RankedLists, epochs: int) -> float:
    """CPU seconds of all models at once, query by query, with an autograd loss."""
    generator = torch.Generator().manual_seed(0)
    models = len(ALPHAS) * STARTS
    weights = (torch.rand(models, lists.n_features, generator=generator) * 2 - 1).requires_grad_()
    alphas = torch.tensor(ALPHAS).repeat_interleave(STARTS)[:, None, None]
    optimiser = torch.optim.SGD([weights], lr=0.01)
    features, labels = torch.from_numpy(lists.features), torch.from_numpy(lists.labels)
    began = time.process_time()
    for _ in range(epochs):
        for query in torch.randperm(lists.n_queries, generator=generator).tolist():
            rows = slice(int(lists.offsets[query]), int(lists.offsets[query + 1]))
            scores = weights @ features[rows].T
            own = labels[rows].expand_as(scores)
            loss = usual_loss(scores, own, torch.ones_like(scores), alphas).sum()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    return time.process_time() - began


def memory(threads: int) -> list[Row]:
    """Training from a mapped file of Web30K's size, in a process of its own."""
    make_full_size()
    command = [sys.executable, __file__, "--resident", "--threads", str(threads)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    anonymous, mapped = map(float, done.stdout.split()[-2:])
    return [
        row("resident GB beyond the data", "Web30K fold 1", anonymous, "GB"),
        row("GB of mapped features", "Web30K fold 1", mapped, "GB"),
    ]


def full_size_lengths() -> np.ndarray:
    """18 919 lists of 2.27 million documents."""
    return web30k_lengths(18_919)


def make_full_size() -> Path:
    """The features' file, written once."""
    return features_file("web30k_features.npy", int(full_size_lengths().sum()), FEATURES)


def print_resident(threads: int) -> None:
    """The work of :func:`memory`'s process: the most anonymous memory, and what is mapped."""
    torch.set_num_threads(threads)
    features = np.load(make_full_size(), mmap_mode="r")
    lengths = full_size_lengths()
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    labels = numpy_stream("benchmark", "labels").choice(5, offsets[-1], p=LABEL_SHARES)

    def part(queries: int) -> Splits:
        taken = slice(0, queries + 1)
        lists = RankedLists(features, labels.astype(np.float32), offsets[taken], np.arange(queries))
        return splits_of(lists)

    with peak_memory() as peak:
        whole = part(len(lengths))
        fit(whole, {"name": "tower", "hidden": [32]}, threads, batch_queries=QUERIES, max_epochs=1)
        few = part(6 * QUERIES)
        fit(few, NETWORKS["B1024"][0], threads, batch_queries=QUERIES, max_epochs=1)
    print(peak[0] / 1e9, features.nbytes / 1e9)


PARTS: dict[str, Callable[[int], list[Row]]] = {
    "steps": steps,
    "queries": queries,
    "together": together,
    "commands": commands,
    "linear": linear,
    "evaluation": evaluation,
    "memory": memory,
}


def main() -> None:
    """Measure what the command line asks for."""
    options = parser(__doc__, PARTS)
    options.add_argument("--threads", type=int, default=min(2, os.cpu_count() or 1))
    options.add_argument("--resident", action="store_true", help=argparse.SUPPRESS)
    chosen = parsed(options, PARTS)
    keep_freed_memory()  # as every run does
    if chosen.resident:
        print_resident(chosen.threads)
        return
    rows = [found for name in chosen.parts for found in PARTS[name](chosen.threads)]
    if blas.kernels() not in AVX2:
        for found in rows:
            found["configuration"] += f", BLAS for {blas.kernels()}"
    machine = f"{environment()['processor']}, {chosen.threads} threads (linear models: one)"
    write(rows, chosen.out, "training", machine)


if __name__ == "__main__":
    main()
