"""Normalisation: computed at each opening, beside copies that were computed once and stored.

    python benchmarks/bench_normalise.py                500 000 documents of 136 features

For each normalisation: ``compute`` makes the scaled array from the prepared one, which is what a
run does; ``load`` reads a stored copy of the scaled array into memory, which is what a run would do
instead; ``store`` writes that copy, once per data set, fold and normalisation. Files are read from
the page cache, the case that is best for stored copies. ``epoch`` is, for comparison, one pass of
training over the same documents by the smallest network of Bruch2019 (64, 32, 16), measured on a
tenth of them: what a run does many times. Times are the fastest of several, passed
and of the processor. Writes ``benchmarks/results/normalise.csv`` (measured times: they differ from
run to run).
"""

from __future__ import annotations

import argparse
import csv
import os
import tempfile
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np

from directrank.data import normalise
from directrank.lists import RankedLists

HERE = Path(__file__).resolve().parent
N_FEATURES = 136
ROWS_PER_QUERY = 120
NAMES = ("query_zscore", "query_minmax", "standardise", "log_standardise")


def write_lists(folder: Path, n_rows: int) -> RankedLists:
    """Heavy-tailed features on disk, memory-mapped as a prepared data set is."""
    rng = np.random.default_rng(30)
    features = np.lib.format.open_memmap(
        folder / "features.npy", "w+", np.float32, (n_rows, N_FEATURES)
    )
    for start in range(0, n_rows, 1 << 14):
        block = features[start : start + (1 << 14)]
        block[:] = rng.lognormal(1, 2, block.shape)
    features.flush()
    offsets = np.append(np.arange(0, n_rows, ROWS_PER_QUERY), n_rows)
    return RankedLists(
        np.load(folder / "features.npy", mmap_mode="r"),
        np.zeros(n_rows, np.float32),
        offsets,
        np.arange(len(offsets) - 1),
    )


def train_epoch(lists: RankedLists) -> None:
    """One epoch of gradient steps on batches of 128 lists, squared error, one thread."""
    import torch

    torch.set_num_threads(1)
    layers: list[torch.nn.Module] = []
    for fan_in, fan_out in pairwise((N_FEATURES, 64, 32, 16)):
        layers += [
            torch.nn.Linear(fan_in, fan_out),
            torch.nn.BatchNorm1d(fan_out),
            torch.nn.ReLU(),
        ]
    network = torch.nn.Sequential(*layers, torch.nn.Linear(16, 1))
    optimizer = torch.optim.Adagrad(network.parameters(), lr=0.01)
    size = 128 * ROWS_PER_QUERY
    for start in range(0, lists.n_documents, size):
        batch = torch.from_numpy(np.array(lists.features[start : start + size]))
        optimizer.zero_grad()
        network(batch).square().mean().backward()
        optimizer.step()


def fastest(function: Callable[[], object], repeats: int) -> tuple[float, float]:
    """Seconds that passed and seconds of the processor, the least of each."""
    passed, worked = [], []
    for _ in range(repeats):
        began, before = time.perf_counter(), time.process_time()
        function()
        passed.append(time.perf_counter() - began)
        worked.append(time.process_time() - before)
    return min(passed), min(worked)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--rows", type=int, default=500_000)
    arguments.add_argument("--repeats", type=int, default=3)
    arguments.add_argument("--folder", type=Path, default=HERE / "scratch")
    arguments.add_argument("--out", type=Path, default=HERE / "results")
    options = arguments.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    rows = []
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        lists = write_lists(Path(folder), options.rows)
        tenth = lists.select(np.arange(lists.n_queries // 10))
        train_epoch(tenth)  # the first pass pays for imports and memory
        epoch = [10 * seconds for seconds in fastest(lambda: train_epoch(tenth), options.repeats)]
        print(f"one epoch of training  {epoch[0]:6.2f} s ({epoch[1]:6.2f} processor)")
        copy = Path(folder) / "scaled.npy"
        for name in NAMES:

            def compute(name: str = name) -> np.ndarray:
                return normalise.apply({"name": name}, {"train": lists})["train"].features

            def store(scaled: np.ndarray) -> None:
                with open(copy, "wb") as file:
                    np.save(file, scaled)
                    file.flush()
                    os.fsync(file.fileno())

            scaled = compute()
            computing = fastest(compute, options.repeats)
            storing = fastest(lambda scaled=scaled: store(scaled), 1)
            loading = fastest(lambda: np.load(copy), options.repeats)
            del scaled
            row = {
                "normalisation": name,
                "documents": options.rows,
                "copy_megabytes": round(copy.stat().st_size / 1e6),
                "compute_seconds": round(computing[0], 3),
                "compute_processor_seconds": round(computing[1], 3),
                "store_seconds": round(storing[0], 3),
                "store_processor_seconds": round(storing[1], 3),
                "load_seconds": round(loading[0], 3),
                "load_processor_seconds": round(loading[1], 3),
                "epoch_seconds": round(epoch[0], 3),
                "epoch_processor_seconds": round(epoch[1], 3),
            }
            rows.append(row)
            print(
                f"{name:16} compute {computing[0]:6.2f} s ({computing[1]:6.2f} processor)   "
                f"store {storing[0]:6.2f} s   load {loading[0]:6.2f} s ({loading[1]:.2f} processor)"
            )
    options.out.mkdir(parents=True, exist_ok=True)
    with open(options.out / "normalise.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
