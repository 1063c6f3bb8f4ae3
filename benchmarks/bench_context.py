"""Time and memory of an epoch of the context-aware ranker, beside a plain implementation.

    python benchmarks/bench_context.py                     everything, on 2 threads
    python benchmarks/bench_context.py --losses neural_ndcg --work equal

The work is Pobrotyn2021's on Web30K: 2 blocks, 1 head, width 96, feed-forward 384, dropout 0.1, 136
features, batches of 64, on 500 queries. In ``equal`` all lists have 240 documents; in ``mixed``
they are as long as Web30K's (mean about 120) and cut to 240.

Ours is the training of this library as the study uses it. The plain implementation is PyTorch's own
encoder on lists padded to 240 with the losses as they read and autograd. Both take turns in one
process, so that a busy moment of the machine meets both; compare ratios. Peak memory is that of a
process of its own, data included. Writes ``results/context.csv`` and ``results/context.md``.
"""

from __future__ import annotations

import argparse
import csv
import math
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from directrank.learning import FitJob, Splits, no_progress
from directrank.lists import RankedLists
from directrank.relaxations.neural_sort import neural_sort, sinkhorn
from directrank.training.fit import fit_many

HERE = Path(__file__).resolve().parent

QUERIES, LENGTH, FEATURES, BATCH, DROPOUT = 500, 240, 136, 64, 0.1
MODEL = {"name": "context", "width": 96, "blocks": 2, "heads": 1, "inner": 384}
LABEL_SHARES = [0.52, 0.32, 0.13, 0.02, 0.01]
LOSSES = [
    "rmse", "listnet", "listmle", "ranknet", "lambdarank", "approx_ndcg", "neural_ndcg",
    "neural_ndcg_transposed",
]  # fmt: skip
WORK = ["equal", "mixed"]


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
    """Seconds of the second epoch of a fit."""
    few = lists.select(np.arange(2))
    job = FitJob("bench", 0, {"name": "ndcg", "k": 5}, threads, "cpu", no_progress)
    training = {
        "optimizer": {"name": "adam", "lr": 1e-3},
        "batch_queries": BATCH,
        "max_documents": LENGTH,
        "max_epochs": 2,
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
    matrix = neural_sort(s * mask, mask, 1.0)
    scaled = sinkhorn(matrix.mT, 30, 1e-6).mT if transposed else sinkhorn(matrix, 30, 1e-6)
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


def measure(losses: list[str], works: list[str], threads: int, turns: int) -> list[dict]:
    """One row per work, loss and contestant."""
    torch.set_num_threads(threads)
    rows = []
    for work in works:
        lists = made(work)
        for loss in losses:
            found = {who: [] for who in CONTESTANTS}
            for _ in range(turns):
                for who, run in CONTESTANTS.items():
                    found[who].append(run(loss, lists, threads))
            seconds = {who: statistics.median(values) for who, values in found.items()}
            for who in CONTESTANTS:
                rows.append(
                    {
                        "work": work,
                        "loss": loss,
                        "library": who,
                        "threads": threads,
                        "seconds_per_epoch": f"{seconds[who]:.4g}",
                        "ms_per_step": f"{1e3 * seconds[who] / math.ceil(QUERIES / BATCH):.4g}",
                        "times_ours": f"{seconds[who] / seconds['directrank']:.3g}",
                        "peak_mb": f"{peak_memory(who, loss, work, threads):.4g}",
                    }
                )
                print("  ".join(f"{key} {value}" for key, value in rows[-1].items()), flush=True)
    return rows


def write(rows: list[dict], folder: Path) -> None:
    """``context.csv`` and ``context.md`` in ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "context.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    lines = [
        "# The context-aware ranker: an epoch of 500 queries",
        "",
        f"On {rows[0]['threads']} threads, torch {torch.__version__}; peak memory is the whole "
        "process's. `equal`: all lists of 240 documents; `mixed`: as long as Web30K's.",
        "",
        "| work | loss | s per epoch | ms per step | MB | plain: s | plain: MB | plain / ours |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for mine, other in zip(rows[::2], rows[1::2], strict=True):
        cells = [mine[key] for key in ("work", "loss", "seconds_per_epoch", "ms_per_step")]
        cells += [mine["peak_mb"], other["seconds_per_epoch"], other["peak_mb"]]
        lines.append(f"| {' | '.join([*cells, other['times_ours']])} |")
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
    options.add_argument("--out", type=Path, default=HERE / "results")
    options.add_argument("--peak", nargs=3, help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.peak:
        torch.set_num_threads(chosen.threads)
        who, loss, work = chosen.peak
        CONTESTANTS[who](loss, made(work), chosen.threads)
        print(own_peak())
        return
    write(measure(chosen.losses, chosen.work, chosen.threads, chosen.turns), chosen.out)


if __name__ == "__main__":
    main()
