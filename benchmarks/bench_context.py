"""Time and memory of an epoch of the context-aware ranker, beside a plain implementation.

    python benchmarks/bench_context.py                     targets, and each other loss once
    python benchmarks/bench_context.py --whole             each loss and work beside the plain one
    python benchmarks/bench_context.py --losses neural_ndcg --work equal

The work is Pobrotyn2021's on Web30K: 2 blocks, 1 head, width 96, feed-forward 384, dropout 0.1, 136
features, batches of 64, on 500 queries. In ``equal`` all lists have 240 documents; in ``mixed``
they are as long as Web30K's (mean about 120) and cut to 240.

Ours is the training of this library as the study uses it. The plain implementation is PyTorch's
own encoder on lists padded to 240, with literal losses and autograd. Both take turns in one
process, and the fastest turn of each counts, so that a busy moment of the machine affects both;
compare ratios. Peak memory is that of a separate process, including the data.

NeuralNDCG and ApproxNDCG, which have targets, are measured beside the plain implementation and on
both kinds of work; time and memory of every other loss are measured for ours, on lists of 240.
Writes ``results/context.csv`` and ``results/context.md``.
"""

from __future__ import annotations

import argparse
import csv
import math
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from directrank.learners.contract import FitJob, Splits, no_progress
from directrank.learners.neural.failures import keep_freed_memory
from directrank.learners.neural.fit import fit_many
from directrank.lists.packed import RankedLists
from directrank.relaxations.neural_sort import sinkhorn, sorting_matrix

HERE = Path(__file__).resolve().parent

QUERIES, LENGTH, FEATURES, BATCH, DROPOUT = 500, 240, 136, 64, 0.1
MODEL = {"name": "context", "width": 96, "blocks": 2, "heads": 1, "inner": 384}
LABEL_SHARES = [0.52, 0.32, 0.13, 0.02, 0.01]
LOSSES = [
    "rmse", "listnet", "listmle", "ranknet", "lambdarank", "approx_ndcg", "neural_ndcg",
    "neural_ndcg_transposed",
]  # fmt: skip
WORK = ["equal", "mixed"]

#: Loss → seconds of an epoch and MB at the peak that ours may take on ``equal``, on two threads.
TARGETS = {"neural_ndcg": (3.2, 1000.0), "approx_ndcg": (2.9, 1000.0)}


def made(work: str, queries: int = QUERIES) -> RankedLists:
    """Random lists; only their sizes matter."""
    stream = np.random.default_rng(30)
    lengths = np.full(queries, LENGTH)
    if work == "mixed":
        lengths = np.exp(stream.normal(4.6, 0.6, queries)).round().clip(2, LENGTH).astype(np.int64)
    total = int(lengths.sum())
    labels = stream.choice(5, total, p=LABEL_SHARES).astype(np.float32)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    labels[offsets[:-1]] = 2
    features = stream.standard_normal((total, FEATURES), dtype=np.float32)
    return RankedLists(features, labels, offsets, np.arange(queries))


# --------------------------------------------------------------------------------- the contestants


def ours(loss: str, lists: RankedLists, threads: int) -> float:
    """Seconds of an epoch of a fit, after one step to warm up."""
    _epoch(loss, lists.select(np.arange(BATCH)), threads)
    return _epoch(loss, lists, threads)


def _epoch(loss: str, lists: RankedLists, threads: int) -> float:
    few = lists.select(np.arange(2))
    job = FitJob("bench", 0, {"name": "ndcg", "k": 5}, threads, "cpu", no_progress)
    training = {
        "optimizer": {"name": "adam", "lr": 1e-3},
        "batch_queries": BATCH,
        "max_documents": LENGTH,
        "max_epochs": 1,
        "keep": "last",
    }
    output = "tanh" if loss.startswith("neural") else "linear"
    settings = {
        "model": MODEL | {"dropout": DROPOUT, "output": output},
        "loss": {"name": loss},
        "training": training,
    }
    (fitted,) = fit_many(Splits(lists, few, few, 5), [settings], [job])
    return fitted.history[-1]["seconds"]


class PlainRanker(nn.Module):
    """The ranker of PyTorch's own layers, on padded lists."""

    def __init__(self, tanh: bool) -> None:
        super().__init__()
        width = MODEL["width"]
        self.input = nn.Linear(FEATURES, width)
        layer = nn.TransformerEncoderLayer(
            width, MODEL["heads"], MODEL["inner"], DROPOUT, batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(
            layer, MODEL["blocks"], nn.LayerNorm(width), enable_nested_tensor=False
        )
        self.output = nn.Linear(width, 1)
        self.tanh = tanh

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Scores ``[B, L]`` of ``x`` ``[B, L, F]``; ``mask`` marks the documents."""
        hidden = self.encoder(self.input(x), src_key_padding_mask=~mask)
        scores = self.output(hidden).squeeze(-1)
        return torch.tanh(scores) if self.tanh else scores


def plain(loss: str, lists: RankedLists, threads: int) -> float:
    """Seconds of an epoch on padded lists with autograd, after one step to warm up."""
    x, y, mask = padded(lists)
    model = PlainRanker(loss.startswith("neural")).train()
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)

    def step(queries: Tensor) -> None:
        scores = model(x[queries], mask[queries])
        optimizer.zero_grad()
        PLAIN[loss](scores, y[queries], mask[queries]).mean().backward()
        optimizer.step()

    order = torch.randperm(len(x)).split(BATCH)
    step(order[0])
    begin = time.perf_counter()
    for queries in order:
        step(queries)
    return time.perf_counter() - begin


def padded(lists: RankedLists) -> tuple[Tensor, Tensor, Tensor]:
    """Features ``[Q, 240, F]``, labels and mask ``[Q, 240]``."""
    mask = torch.arange(LENGTH) < torch.from_numpy(lists.lengths)[:, None]
    x = torch.zeros(*mask.shape, FEATURES)
    x[mask] = torch.from_numpy(lists.features)
    y = torch.zeros(mask.shape)
    y[mask] = torch.from_numpy(lists.labels)
    return x, y, mask


def _discounts(y: Tensor) -> Tensor:
    return 1 / torch.log2(torch.arange(2, y.shape[1] + 2, dtype=y.dtype))


def _best(y: Tensor) -> Tensor:
    return ((torch.exp2(y.sort(1, descending=True).values) - 1) * _discounts(y)).sum(1)


def _neural_ndcg(s: Tensor, y: Tensor, mask: Tensor, transposed: bool) -> Tensor:
    matrix = sorting_matrix(s * mask, mask, 1.0)
    scaled = sinkhorn(matrix, 30, 1e-6, rows_first=transposed)
    gains = torch.exp2(y) - 1
    return -((scaled @ gains.unsqueeze(2)).squeeze(2) * _discounts(y)).sum(1) / _best(y)


def _approx_ndcg(s: Tensor, y: Tensor, mask: Tensor) -> Tensor:
    beaten = torch.sigmoid(s.unsqueeze(1) - s.unsqueeze(2)) * mask.unsqueeze(1)
    ranks = 0.5 + beaten.sum(2)
    return -((torch.exp2(y) - 1) / torch.log2(1 + ranks) * mask).sum(1) / _best(y)


def _pairs(s: Tensor, y: Tensor, mask: Tensor, weigh: bool) -> Tensor:
    counted = (y.unsqueeze(2) > y.unsqueeze(1)) & mask.unsqueeze(2) & mask.unsqueeze(1)
    cost = nn.functional.softplus(s.unsqueeze(1) - s.unsqueeze(2)) * counted
    if weigh:
        ranks = s.detach().masked_fill(~mask, -math.inf).argsort(1, descending=True).argsort(1)
        discounts = 1 / torch.log2(ranks + 2.0)
        gains = torch.exp2(y)
        change = (gains.unsqueeze(2) - gains.unsqueeze(1)) * (
            discounts.unsqueeze(2) - discounts.unsqueeze(1)
        )
        cost = cost * change.abs() / _best(y)[:, None, None]
    return cost.sum((1, 2))


def _listmle(s: Tensor, y: Tensor, mask: Tensor) -> Tensor:
    keys = (y + torch.rand_like(y)).masked_fill(~mask, -1.0)
    ordered = s.masked_fill(~mask, -1e9).gather(1, keys.argsort(1, descending=True))
    rest = ordered.flip(1).logcumsumexp(1).flip(1)
    return ((rest - ordered) * (torch.arange(s.shape[1]) < mask.sum(1, keepdim=True))).sum(1)


def _listnet(s: Tensor, y: Tensor, mask: Tensor) -> Tensor:
    wanted = torch.softmax(y.masked_fill(~mask, -math.inf), 1)
    return -(wanted * torch.log_softmax(s.masked_fill(~mask, -1e9), 1)).sum(1)


def _rmse(s: Tensor, y: Tensor, mask: Tensor) -> Tensor:
    return ((y - 5 * torch.sigmoid(s)).square() * mask).sum(1).div(mask.sum(1)).sqrt()


PLAIN: dict[str, Callable[[Tensor, Tensor, Tensor], Tensor]] = {
    "rmse": _rmse,
    "listnet": _listnet,
    "listmle": _listmle,
    "ranknet": partial(_pairs, weigh=False),
    "lambdarank": partial(_pairs, weigh=True),
    "approx_ndcg": _approx_ndcg,
    "neural_ndcg": partial(_neural_ndcg, transposed=False),
    "neural_ndcg_transposed": partial(_neural_ndcg, transposed=True),
}

CONTESTANTS = {"directrank": ours, "plain": plain}


# -------------------------------------------------------------------------------------- measuring


def peak_memory(who: str, loss: str, work: str, threads: int) -> float:
    """MB of a process that trains an epoch, at its peak."""
    command = [sys.executable, __file__, "--peak", who, loss, work, "--threads", str(threads)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def own_peak() -> float:
    """MB of this process at its peak; Linux's ``ru_maxrss`` begins with that of its parent."""
    status = Path("/proc/self/status")
    if status.is_file():
        (line,) = (line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def plan(losses: Sequence[str], works: Sequence[str], whole: bool) -> list[tuple[str, str, bool]]:
    """Work and loss of each measurement, and whether the plain implementation takes part."""
    return [
        (work, loss, whole or loss in TARGETS)
        for work in works
        for loss in losses
        if whole or work == "equal" or loss in TARGETS
    ]


def measure(todo: Sequence[tuple[str, str, bool]], threads: int, turns: int) -> list[dict]:
    """One row per work, loss and contestant."""
    torch.set_num_threads(threads)
    rows = []
    made_of = {work: made(work) for work in {work for work, _, _ in todo}}
    for work, loss, beside in todo:
        contestants = list(CONTESTANTS) if beside else ["directrank"]
        seconds = dict.fromkeys(contestants, math.inf)
        for _ in range(turns):
            for who in contestants:
                took = CONTESTANTS[who](loss, made_of[work], threads)
                seconds[who] = min(seconds[who], took)
        for who in contestants:
            row = {
                "work": work,
                "loss": loss,
                "library": who,
                "threads": threads,
                "seconds_per_epoch": seconds[who],
                "ms_per_step": 1e3 * seconds[who] / math.ceil(QUERIES / BATCH),
                "times_ours": seconds[who] / seconds["directrank"],
                "peak_mb": peak_memory(who, loss, work, threads),
            }
            rows.append(row | _judged(row))
            print("  ".join(f"{key} {_cell(value)}" for key, value in rows[-1].items()), flush=True)
    return rows


def _judged(row: dict[str, Any]) -> dict[str, Any]:
    """The targets of a row, where it has any, and whether they are reached."""
    if row["loss"] not in TARGETS or (row["work"], row["library"]) != ("equal", "directrank"):
        return {"target_seconds": "", "target_mb": "", "reached": ""}
    seconds, megabytes = TARGETS[row["loss"]]
    reached = row["seconds_per_epoch"] <= seconds and row["peak_mb"] <= megabytes
    return {
        "target_seconds": seconds,
        "target_mb": megabytes,
        "reached": "yes" if reached else "no",
    }


def _cell(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def write(rows: list[dict], folder: Path) -> None:
    """``context.csv`` and ``context.md`` in ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "context.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows({key: _cell(value) for key, value in row.items()} for row in rows)
    lines = [
        "# The context-aware ranker: an epoch of 500 queries",
        "",
        f"Measured on {rows[0]['threads']} threads with torch {torch.__version__}; peak memory is "
        "that of the whole process. In `equal` all lists have 240 documents; in `mixed` they are "
        "as long as those of Web30K. Targets are for two threads.",
        "",
        "| work | loss | s per epoch | ms per step | MB | target | reached | plain: s | plain: MB "
        "| plain / ours |",
        "| --- | --- | ---: | ---: | ---: | --- | --- | ---: | ---: | ---: |",
    ]
    plain_rows = {(row["work"], row["loss"]): row for row in rows if row["library"] == "plain"}
    for mine in (row for row in rows if row["library"] == "directrank"):
        cells = [mine[key] for key in ("work", "loss", "seconds_per_epoch", "ms_per_step")]
        target = ""
        if mine["reached"]:
            target = f"≤ {mine['target_seconds']:g} s, {mine['target_mb']:g} MB"
        cells += [mine["peak_mb"], target, mine["reached"]]
        other = plain_rows.get((mine["work"], mine["loss"]))
        keys = ("seconds_per_epoch", "peak_mb", "times_ours")
        cells += ["–"] * len(keys) if other is None else [other[key] for key in keys]
        lines.append(f"| {' | '.join(map(_cell, cells))} |")
    (folder / "context.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> None:
    """Measure what the command line asks for."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--losses", nargs="+", default=LOSSES, choices=LOSSES)
    options.add_argument("--work", nargs="+", default=WORK, choices=WORK)
    options.add_argument("--threads", type=int, default=2)
    options.add_argument("--turns", type=int, default=2)
    options.add_argument(
        "--whole", action="store_true", help="every loss on all work, beside the plain one"
    )
    options.add_argument("--out", type=Path, default=HERE / "results")
    options.add_argument("--peak", nargs=3, help=argparse.SUPPRESS)
    chosen = options.parse_args()
    keep_freed_memory()  # as every run does
    if chosen.peak:
        torch.set_num_threads(chosen.threads)
        who, loss, work = chosen.peak
        CONTESTANTS[who](loss, made(work), chosen.threads)
        print(own_peak())
        return
    todo = plan(chosen.losses, chosen.work, chosen.whole)
    write(measure(todo, chosen.threads, chosen.turns), chosen.out)


if __name__ == "__main__":
    main()
