"""Time and memory of every loss on a GPU, beside allRank's on the same tensors.

A time is that of the forward and backward pass of the mean loss on a leaf of scores, until the GPU
has finished: the shortest of several repetitions, in which the libraries take turns. Memory is what
such a pass takes at its peak beyond what was allocated before. allRank is measured if
``DIRECTRANK_ALLRANK`` names the folder in which it is installed (see ``bench_losses.py``), which
also explains which losses are compared. Lists of a shape are all as long as it says, or as long as
Web30K's, cut to 400 documents.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import bench_losses
import pandas as pd
import torch

from directrank.system.io import write_csv

SHAPES = ("128x120", "128x240", "web30k")

#: The libraries, and how a step of a loss is made.
CONTESTANTS: dict[str, Callable[[str, str, str], Callable[[], None] | None]] = {
    "directrank": bench_losses.ours,
    "allRank": bench_losses.allrank,
}

#: Turns of each library, and the seconds of a turn.
TURNS, SECONDS = 2, 0.05


def measure(folder: Path) -> None:
    """Write ``gpu_losses.csv``, one row per shape and loss."""
    rows = [_measured(name, shape) for shape in SHAPES for name in bench_losses.LOSSES]
    write_csv(folder / "gpu_losses.csv", pd.DataFrame(rows))


def _measured(name: str, shape: str) -> dict[str, str]:
    """A row of the table."""
    made = {who: make(name, shape, "cuda") for who, make in CONTESTANTS.items()}
    steps = {who: step for who, step in made.items() if step is not None}
    least = dict.fromkeys(steps, float("inf"))
    taken = {who: _peak(step) for who, step in steps.items()}
    for _ in range(TURNS):
        for who, step in steps.items():
            least[who] = min(least[who], _least(step))
    compared = bench_losses.KIN.get(name, name) if "allRank" in steps else ""
    row = {"loss": name, "shape": shape, "compared_with": compared}
    row |= {f"{who}_ms": _number(least.get(who)) for who in CONTESTANTS}
    row["ratio"] = _number(least["allRank"] / least["directrank"] if compared else None)
    row |= {f"{who}_peak_mb": _number(taken.get(who)) for who in CONTESTANTS}
    print("  ".join(f"{key} {value}" for key, value in row.items() if value), flush=True)
    return row


def _number(value: float | None) -> str:
    """Three digits, or nothing."""
    return "" if value is None else f"{value:.3g}" if value < 1000 else f"{value:.0f}"


def _peak(step: Callable[[], None]) -> float:
    """MB that a step takes beyond what is allocated before it; a step before that warms up."""
    step()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    step()
    torch.cuda.synchronize()
    return (torch.cuda.max_memory_allocated() - before) / 1e6


def _least(step: Callable[[], None]) -> float:
    """The least milliseconds of a step among those of a turn."""
    least, ends = float("inf"), time.perf_counter() + SECONDS
    while True:
        began = time.perf_counter()
        step()
        torch.cuda.synchronize()
        now = time.perf_counter()
        least = min(least, 1e3 * (now - began))
        if now > ends:
            return least


def page(folder: Path) -> list[str]:
    """The lines of ``gpu.md`` on losses; none where they were not measured."""
    path = folder / "gpu_losses.csv"
    if not path.is_file():
        return []
    rows = pd.read_csv(path, dtype=str, keep_default_na=False)
    lines = [
        "",
        "## Losses: forward and backward",
        "",
        "Shortest times in milliseconds until the GPU has finished, in float32, and the memory "
        "that a pass takes at its peak, in MB. The ratio is allRank's time divided by ours. A loss "
        "that allRank does not have is compared with the one named. The loss `nothing` adds up the "
        "scores: it shows the minimum time of PyTorch's passes and the gradient.",
        "",
        "| " + " | ".join(name.replace("_", " ") for name in rows) + " |",
        "| --- | --- | --- |" + " ---: |" * (len(rows.columns) - 3),
    ]
    return lines + ["| " + " | ".join(cell or "–" for cell in row) + " |" for row in rows.values]
