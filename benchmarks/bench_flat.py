"""Padded against flat lists, for every loss and metric, on lists as uneven as Web30K's.

    python benchmarks/bench_flat.py                      all of them, on one thread: two minutes
    python benchmarks/bench_flat.py listnet ndcg

A batch has 128 lists of 1 to 1 251 documents, with a mean of 116. A time is that of the forward and
backward pass of the sum on a leaf of scores (for a metric, of its value). It is processor time, on
which other work of the machine has little influence, and the shortest of several turns, which the
two calls take alternately. The padded call is given its rectangle, and filling it is not timed.
Formulas that need all pairs of the rectangle at once are only called with flat lists. Writes
``results/flat.csv``.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from directrank import losses, metrics
from directrank.lists.padding import pad, padded_positions

HERE = Path(__file__).resolve().parent

#: Settings that a loss cannot do without.
OPTIONS = {"approx_precision": {"k": 10}}

#: A padded call for which a tensor ``[B, L, L]`` would be made, some GiB, many times.
TOO_LARGE = {"lambda_family"}

#: Seconds for one loss, and the least turns.
SECONDS, TURNS = 2.0, 5


def lists() -> tuple[Tensor, Tensor, Tensor]:
    """Scores and labels ``[N]``, lengths ``[B]``: log-normal, with Web30K's mean and extremes."""
    generator = torch.Generator().manual_seed(30)
    spread = torch.randn(128, generator=generator)
    lengths = torch.exp(4.55 + 0.65 * spread).round().clamp(1, 1251).long()
    lengths[:2] = torch.tensor([1, 1251])
    n = int(lengths.sum())
    shares = torch.tensor([0.55, 0.23, 0.13, 0.08, 0.01])
    labels = torch.multinomial(shares, n, replacement=True, generator=generator).float()
    return torch.randn(n, generator=generator), labels, lengths


def step_of(function: Callable[..., Tensor], scores: Tensor, *arguments: Tensor, **options):
    """One call, and the gradient of its sum where there is one."""
    leaf = scores.clone().requires_grad_()

    def step() -> None:
        value = function(leaf, *arguments, **options).nansum()
        if value.requires_grad:
            torch.autograd.grad(value, leaf)

    return step


def least(steps: list[Callable[[], None]]) -> list[float]:
    """The least seconds of each step; they take turns."""
    for step in steps:
        step()
    taken: list[list[float]] = [[] for _ in steps]
    began = time.process_time()
    while len(taken[0]) < TURNS or time.process_time() - began < SECONDS:
        for times, step in zip(taken, steps, strict=True):
            before = time.process_time()
            step()
            times.append(time.process_time() - before)
    return [min(times) for times in taken]


def main() -> None:
    """Measure what is asked for."""
    names = [name for name in losses.REGISTRY if name != "composed"] + list(metrics.REGISTRY)
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("names", nargs="*", default=names, help="losses and metrics")
    chosen = options.parse_args().names
    torch.set_num_threads(1)
    scores, labels, lengths = lists()
    mask, index = padded_positions(lengths)
    padded = pad(scores, mask, index), pad(labels, mask, index), mask
    pairs = int((lengths**2).sum()), len(lengths) * mask.shape[1] ** 2
    print(
        f"{len(scores)} documents, {1 - len(scores) / mask.numel():.0%} of the rectangle padding;"
    )
    print(f"{1 - pairs[0] / pairs[1]:.0%} of its pairs")
    rows = []
    for name in chosen:
        function = losses.get(name) if name in losses.REGISTRY else metrics.get(name)
        settings = OPTIONS.get(name, {})
        steps = [step_of(function, scores, labels, lengths=lengths, **settings)]
        if name not in TOO_LARGE:
            steps.append(step_of(function, *padded, **settings))
        flat, *other = (1000 * seconds for seconds in least(steps))
        rows.append([name, *(f"{ms:.2f}" for ms in other or [np.nan]), f"{flat:.2f}"])
        print(f"{name:24} padded {rows[-1][1]:>8} ms, flat {rows[-1][2]:>8} ms", flush=True)
    with open(HERE / "results/flat.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["name", "padded_ms", "flat_ms"])
        writer.writerows(rows)


if __name__ == "__main__":
    main()
