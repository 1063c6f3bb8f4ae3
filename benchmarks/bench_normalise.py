"""Normalised data that are stored once and opened, compared with normalising in every run.

    python benchmarks/bench_normalise.py                500 000 documents of 136 features

For each normalisation, ``make`` is the first run that needs it, which computes the copy in blocks
and stores it with its digests; ``open`` is every later run; ``read`` is one pass over the opened
features in the order of the file, from the page cache, to show the work that opening postpones;
``compute`` makes the same arrays in memory from the prepared ones, as every run would do if nothing
were stored. Wall and processor times are the fastest of several (for ``make``, of one). ``load`` is
the number of processes that wanted a core when the measurement began, including its own. Writes
``benchmarks/results/normalise.csv`` (measured times: they differ from run to run).

Ends with 1 if opening takes more than 50 ms: of a prepared split, of which nothing is read, or of a
copy of 20 000 documents, whose digests are compared.
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from directrank.data import normalise
from directrank.data.normalised import copies, open_splits
from directrank.data.prepared import SPLITS, open_dataset, write_prepared
from directrank.lists.packed import RankedLists

HERE = Path(__file__).resolve().parent
N_FEATURES = 136
ROWS_PER_QUERY = 120
#: Seconds in which a prepared split, or a small copy, opens.
LIMIT = 0.05
NAMES = ("query_zscore", "query_minmax", "standardise", "log_standardise")


def write_data(folder: Path, n_rows: int) -> None:
    """A prepared data set of heavy-tailed features: three fifths to train on, a fifth for each."""
    rng = np.random.default_rng(30)
    splits = {}
    for split, share in zip(SPLITS, (0.6, 0.2, 0.2), strict=True):
        offsets = np.arange(0, round(n_rows * share) + 1, ROWS_PER_QUERY)
        features = np.empty((offsets[-1], N_FEATURES), np.float32)
        for start in range(0, len(features), 1 << 14):
            block = features[start : start + (1 << 14)]
            block[:] = rng.lognormal(1, 2, block.shape)
        labels = (np.arange(len(features)) % 5 == 0).astype(np.float32)
        splits[split] = RankedLists(features, labels, offsets, np.arange(len(offsets) - 1))
    meta = {"name": "bench", "origin": "generated", "label_levels": 2, "folds": None}
    write_prepared(folder, splits, meta)


def timed(function: Callable[[], object]) -> tuple[float, float]:
    """Seconds that passed, and of the processor."""
    began, before = time.perf_counter(), time.process_time()
    function()
    return time.perf_counter() - began, time.process_time() - before


def fastest(function: Callable[[], object], repeats: int) -> tuple[float, float]:
    """The least of several, each for itself."""
    passed, worked = zip(*(timed(function) for _ in range(repeats)), strict=True)
    return min(passed), min(worked)


def measure(data: Path, name: str, repeats: int) -> dict[str, object]:
    """The row of one normalisation."""
    load = int(Path("/proc/loadavg").read_text().split()[3].partition("/")[0])
    known = {copy.folder for copy in copies(data)}

    def opened() -> dict[str, RankedLists]:
        return open_splits(data, None, {}, {"name": name})

    def read() -> None:
        for lists in splits.values():
            for start in range(0, lists.n_documents, 1 << 14):
                lists.features[start : start + (1 << 14)].sum(dtype=np.float32)

    def compute() -> None:
        normalise.apply({"name": name}, {split: open_dataset(data / split) for split in SPLITS})

    making = timed(opened)
    (copy,) = (copy for copy in copies(data) if copy.folder not in known)
    opening = fastest(opened, repeats)
    splits = opened()
    reading = fastest(read, repeats)
    computing = fastest(compute, repeats)
    return {
        "normalisation": name,
        "documents": sum(lists.n_documents for lists in splits.values()),
        "copy_megabytes": round(copy.bytes / 1e6),
        "make_seconds": round(making[0], 3),
        "make_processor_seconds": round(making[1], 3),
        "open_seconds": round(opening[0], 4),
        "open_processor_seconds": round(opening[1], 4),
        "read_seconds": round(reading[0], 3),
        "read_processor_seconds": round(reading[1], 3),
        "compute_seconds": round(computing[0], 3),
        "compute_processor_seconds": round(computing[1], 3),
        "cores": os.cpu_count(),
        "load": load,
    }


def main() -> int:
    """Measure, print and write; 1 if a split opens too slowly."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--rows", type=int, default=500_000)
    arguments.add_argument("--repeats", type=int, default=3)
    arguments.add_argument("--folder", type=Path, default=HERE / "scratch")
    arguments.add_argument("--out", type=Path, default=HERE / "results")
    options = arguments.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        data = Path(folder) / "data"
        write_data(data, options.rows)
        few = Path(folder) / "few"
        write_data(few, 20_000)
        open_splits(few, None, {}, {"name": NAMES[0]})  # compiles loops
        opening, _ = fastest(lambda: open_dataset(data / "train"), 5)
        copy, _ = fastest(lambda: open_splits(few, None, {}, {"name": NAMES[0]}), 5)
        print(
            f"a prepared split opens in {1000 * opening:.1f} ms, a copy of 20 000 documents in "
            f"{1000 * copy:.1f} ms; at most {1000 * LIMIT:.0f}"
        )
        rows = []
        for name in NAMES:
            row = measure(data, name, options.repeats)
            rows.append(row)
            print(
                f"{name:16} make {row['make_seconds']:6.2f} s   "
                f"open {row['open_seconds']:7.4f} s   read {row['read_seconds']:6.3f} s   "
                f"compute {row['compute_seconds']:6.2f} s   copy {row['copy_megabytes']} MB"
            )
    options.out.mkdir(parents=True, exist_ok=True)
    with open(options.out / "normalise.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return int(max(opening, copy) > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
