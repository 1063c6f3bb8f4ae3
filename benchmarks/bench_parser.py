"""How fast text is turned into prepared arrays, compared with other readers.

    python benchmarks/bench_parser.py                   210 MB, all readers
    python benchmarks/bench_parser.py --full            a text of the size of Web30K, only ours

The text is MSLR-like: 136 features, integers, six-decimal fractions and many zeros, lists of 120.
Each reader runs several times in a separate process, so that its peak memory can be measured, and
the fastest run counts. In addition to the wall time there is the processor time, user and system,
of all threads: it depends less on other work of the machine, and its rate is that of one core.
``load`` is the number of processes that wanted a core when the reader began, including its own; if
it exceeds the number of cores, the wall time says little.

Writes ``benchmarks/results/parser.csv`` and ``parser_full.csv`` (measured times: they differ from
run to run).
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
N_FEATURES = 136
ROWS_PER_QUERY = 120
WEB30K_ROWS = 3_771_125
TEMPLATE_ROWS = 24_000


def write_text(path: Path, n_rows: int) -> None:
    """Write ``n_rows`` lines; the features of a template recur, labels and queries do not."""
    rng = np.random.default_rng(30)
    kinds = rng.choice(["zero", "small", "large", "fraction"], N_FEATURES, p=[0.2, 0.3, 0.2, 0.3])
    columns = []
    for number, kind in enumerate(kinds, start=1):
        if kind == "zero":
            drawn = np.where(rng.random(TEMPLATE_ROWS) < 0.9, 0, rng.integers(1, 9, TEMPLATE_ROWS))
        elif kind == "small":
            drawn = rng.poisson(3, TEMPLATE_ROWS)
        elif kind == "large":
            drawn = np.floor(rng.lognormal(6, 2, TEMPLATE_ROWS)).astype(np.int64)
        else:
            drawn = [f"{value:.6f}" for value in rng.normal(10, 8, TEMPLATE_ROWS)]
        columns.append([f"{number}:{value}" for value in drawn])
    template = [" ".join(values) + "\n" for values in zip(*columns, strict=True)]
    with open(path, "w", buffering=1 << 22) as file:
        for start in range(0, n_rows, TEMPLATE_ROWS):
            file.write(
                "".join(
                    f"{(start + row) % 5} qid:{(start + row) // ROWS_PER_QUERY + 1} {text}"
                    for row, text in enumerate(template[: n_rows - start])
                )
            )


def ours_prepare(path: Path, threads: int) -> None:
    """End to end: what ``directrank prepare`` does, digests of text and arrays and counts included.

    Beside the text as training split stand its first lists as validation and test.
    """
    import yaml

    from directrank.data.prepare import prepare

    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        raw = Path(folder) / "raw/mine"
        raw.mkdir(parents=True)
        (raw / "train.txt").symlink_to(path.resolve())
        with open(path, "rb") as file:
            few = b"".join(next(file) for _ in range(ROWS_PER_QUERY))
        for split in ("vali", "test"):
            (raw / f"{split}.txt").write_bytes(few)
        catalogue = Path(folder) / "datasets.yaml"
        entry = {"features": N_FEATURES, "label_levels": 5}
        catalogue.write_text(yaml.safe_dump({"datasets": {"mine": entry}}))
        out = Path(folder) / "out"
        prepare("mine", raw.parent, out, catalogue=catalogue, threads=threads)


def ours_parse(path: Path, threads: int) -> None:
    """Text to arrays in memory, block by block."""
    from directrank.data.svmlight import TextFormat, open_text, parse

    with open_text(path) as stream:
        for _ in parse(stream, TextFormat(N_FEATURES), str(path), threads=threads):
            pass


def scikit_learn(path: Path, threads: int) -> None:
    """load_svmlight_file in float32, made dense."""
    _scikit_learn(path, query_id=False)


def scikit_learn_with_queries(path: Path, threads: int) -> None:
    """The same with query ids.

    For them scikit-learn calls ``numpy.append`` at each line, which copies all ids so far: time
    grows with the square of the number of lines.
    """
    _scikit_learn(path, query_id=True)


def _scikit_learn(path: Path, query_id: bool) -> None:
    from sklearn.datasets import load_svmlight_file

    with open(path, "rb") as file:
        loaded = load_svmlight_file(
            file, n_features=N_FEATURES, dtype=np.float32, query_id=query_id
        )
    loaded[0].toarray()


def polars_csv(path: Path, threads: int) -> None:
    """read_csv after ``qid:`` and ``:`` were replaced by blanks; right for dense rows only."""
    import polars

    text = path.read_bytes().replace(b"qid:", b"").replace(b":", b" ")
    frame = polars.read_csv(text, separator=" ", has_header=False, infer_schema_length=0)
    frame.select(polars.all().cast(polars.Float32)).to_numpy()


READERS = {
    "directrank: prepare, 2 threads": (ours_prepare, 2),
    "directrank: prepare, 1 thread": (ours_prepare, 1),
    "directrank: parse, 2 threads": (ours_parse, 2),
    "directrank: parse, 1 thread": (ours_parse, 1),
    "scikit-learn": (scikit_learn, 1),
    "scikit-learn, with query ids": (scikit_learn_with_queries, 1),
    "polars (dense rows only)": (polars_csv, 2),
}


def measure(name: str, path: Path, repeats: int) -> dict[str, object] | None:
    """The fastest run of a reader, each in a fresh process; None if it is not installed."""
    runs = []
    for _ in range(repeats):
        done = subprocess.run(
            [sys.executable, __file__, "--one", name, "--text", str(path)],
            capture_output=True,
            text=True,
            env={**os.environ, "POLARS_MAX_THREADS": "2", "OMP_NUM_THREADS": "1"},
        )
        if done.returncode:
            print(f"{name}: {done.stderr.strip().splitlines()[-1]}")
            return None
        runs.append(json.loads(done.stdout))
    return min(runs, key=lambda run: run["seconds"])


def run_one(name: str, path: Path) -> None:
    """Run a reader, once on a few lines to warm up (compilation, imports), then on the file."""
    function, threads = READERS[name]
    with tempfile.TemporaryDirectory() as folder, open(path, "rb") as file:
        few = Path(folder) / "few.txt"
        few.write_bytes(b"".join(next(file) for _ in range(ROWS_PER_QUERY)))
        function(few, threads)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    load = int(Path("/proc/loadavg").read_text().split()[3].partition("/")[0])
    began, worked = time.perf_counter(), time.process_time()
    function(path, threads)
    seconds, processor = time.perf_counter() - began, time.process_time() - worked
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    megabytes = path.stat().st_size / 1e6
    print(
        json.dumps(
            {
                "reader": name,
                "megabytes": round(megabytes),
                "seconds": round(seconds, 2),
                "processor_seconds": round(processor, 2),
                "megabytes_per_second": round(megabytes / seconds),
                "megabytes_per_processor_second": round(megabytes / processor),
                "peak_memory_mb": round(peak / 1024),
                "memory_above_start_mb": round((peak - before) / 1024),
                "cores": os.cpu_count(),
                "load": load,
            }
        )
    )


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--full", action="store_true", help="the size of Web30K, ours alone")
    arguments.add_argument("--rows", type=int, default=200_000, help="lines (default: 200000)")
    arguments.add_argument("--repeats", type=int, default=3, help="runs of each (default: 3)")
    arguments.add_argument("--folder", type=Path, default=HERE / "scratch")
    arguments.add_argument("--out", type=Path, default=HERE / "results")
    arguments.add_argument("--one", help=argparse.SUPPRESS)
    arguments.add_argument("--text", type=Path, help=argparse.SUPPRESS)
    options = arguments.parse_args()
    if options.one:
        run_one(options.one, options.text)
        return
    n_rows = WEB30K_ROWS if options.full else options.rows
    options.folder.mkdir(parents=True, exist_ok=True)
    text = options.folder / f"mslr-like-{n_rows}.txt"
    if not text.is_file():
        print(f"writing {text}")
        partial = text.with_suffix(".part")
        write_text(partial, n_rows)
        partial.rename(text)
    names = ["directrank: prepare, 2 threads"] if options.full else list(READERS)
    measured = [measure(name, text, options.repeats) for name in names]
    rows = [row for row in measured if row is not None]
    for row in rows:
        print(
            f"{row['reader']:32} {row['seconds']:7.2f} s {row['megabytes_per_second']:5} MB/s   "
            f"processor {row['processor_seconds']:7.2f} s "
            f"{row['megabytes_per_processor_second']:5} MB/s   peak {row['peak_memory_mb']:5} MB"
        )
    options.out.mkdir(parents=True, exist_ok=True)
    target = options.out / ("parser_full.csv" if options.full else "parser.csv")
    with open(target, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
