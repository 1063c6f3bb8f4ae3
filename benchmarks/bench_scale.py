"""How time and memory of training grow with the size of the data, the lists and the stack.

    python benchmarks/bench_scale.py                     every curve; about four minutes
    python benchmarks/bench_scale.py queries documents   only these curves

Curves, each with all else fixed:

queries    1 000 to 31 531 queries with lists as long as Web30K's, from a memory-mapped file: a
           small network with ApproxNDCG. Time should grow linearly, memory beyond the file not at
           all.
documents  lists of 10 to 5 000 documents, 20 000 documents in total: a linear scorer with several
           losses, and the context-aware ranker with ApproxNDCG. Time per list should grow at most
           with the square of its length.
features   10 to 700 features: the network of the first curve. Time should grow at most linearly.
models     1 to 60 models in one stack: a small network. Time should grow at most linearly.
cores      1 and 2 threads: the networks B1024 and R5, the context-aware ranker.

Every point is measured in a process of its own: the fastest of its epochs, and the most anonymous
memory, with that of the libraries. Exponents are the slope of a least-squares line through the
logarithms of the points from the number on that the page names. Writes ``results/scale.csv`` and
``scale.md``; curves that are not measured again keep their rows.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from bench_training import NETWORKS, epoch_seconds, fit
from training_lists import LABEL_SHARES, lists_of, splits_of, web30k_lengths
from training_memory import features_file, peak_memory
from training_rows import parsed, parser

from directrank.learners.contract import Splits
from directrank.learners.neural.failures import keep_freed_memory
from directrank.lists.packed import RankedLists
from directrank.study.provenance import environment
from directrank.system.io import write_csv, write_text
from directrank.system.seeds import numpy_stream

QUERIES = [1000, 2000, 4000, 8000, 16000, 31531]
DOCUMENTS = [10, 30, 100, 300, 1000, 2000, 5000]
FEATURES = [10, 46, 136, 220, 519, 700]
MODELS = [1, 2, 5, 10, 20, 60]
CORES = [1, 2]

#: Documents of the curve over the length of lists, and of one of its steps.
TOGETHER, STEP = 20_000, 5_000

SMALL = {"name": "tower", "hidden": [32]}
CONTEXT = {"name": "context", "width": 96, "blocks": 2, "heads": 1, "inner": 384, "dropout": 0.1}
LOSSES = ["listnet", "ranknet", "lambdarank", "approx_ndcg", "twin_ndcg", "neural_ndcg"]

Point = dict[str, Any]


def queries() -> Iterator[Point]:
    """Points of a curve: its x, what is measured, and the arguments of the measuring process."""
    for x in QUERIES:
        yield {"x": x, "series": "network [32], ApproxNDCG", "mapped": x, "epochs": 2}


def documents() -> Iterator[Point]:
    """See :func:`queries`."""
    for loss in LOSSES:
        for x in DOCUMENTS:
            yield {"x": x, "series": f"linear, {loss}", "lists": x, "loss": loss, "linear": True}
    for x in DOCUMENTS:
        yield {"x": x, "series": "context-aware, approx_ndcg", "lists": x, "network": "context"}


def features() -> Iterator[Point]:
    """See :func:`queries`."""
    for x in FEATURES:
        yield {"x": x, "series": "network [32], ApproxNDCG", "features": x}


def models() -> Iterator[Point]:
    """See :func:`queries`."""
    for x in MODELS:
        yield {"x": x, "series": "network [32], ApproxNDCG", "models": x, "queries": 300}


def cores() -> Iterator[Point]:
    """See :func:`queries`."""
    for network in ("B1024", "R5", "context"):
        for x in CORES:
            yield {"x": x, "series": network, "network": network, "threads": x, "queries": 300}


#: Curve → its points, the unit of x, the least x of the exponent, and the exponent's bound.
CURVES: dict[str, tuple[Callable[[], Iterator[Point]], str, int, float | None]] = {
    "queries": (queries, "queries", 1000, 1.0),
    "documents": (documents, "documents per list", 300, 2.0),
    "features": (features, "features", 46, 1.0),
    "models": (models, "models per stack", 5, 1.0),
    "cores": (cores, "threads", 1, None),
}

#: Exponents are compared with their bounds up to this much.
TOLERANCE = 0.1


# ---------------------------------------------------------------------------------- one measurement


def measure(point: Point) -> tuple[float, float]:
    """Seconds of the fastest epoch, and MB of anonymous memory at its peak."""
    torch.set_num_threads(point.get("threads", 1))
    keep_freed_memory()
    data, batch = _data(point)
    with peak_memory() as peak:
        fitted = fit(
            data,
            _scorer(point),
            point.get("threads", 1),
            jobs=point.get("models", 1),
            loss={"name": point.get("loss", "approx_ndcg")},
            batch_queries=batch,
            max_epochs=point.get("epochs", 3),
            keep="last",
            stack=0,
        )
    return epoch_seconds(fitted), peak[0] / 1e6


def _data(point: Point) -> tuple[Splits, int]:
    """The lists of a point, and the queries of a step."""
    if "mapped" in point:
        return splits_of(mapped(point["mapped"])), 128
    if "lists" in point:
        length = point["lists"]
        lists = lists_of(np.full(max(2, TOGETHER // length), length), 46)
        return splits_of(lists), max(1, STEP // length)
    lists = lists_of(web30k_lengths(point.get("queries", 1000)), point.get("features", 136))
    return splits_of(lists), 128 if "network" in point else 16


def _scorer(point: Point) -> dict[str, Any]:
    if point.get("linear"):
        return {"name": "linear"}
    network = point.get("network")
    if network == "context":
        return CONTEXT
    return SMALL if network is None else NETWORKS[network][0]


def mapped(count: int) -> RankedLists:
    """The first ``count`` of Web30K's number of lists, whose features are in a file."""
    lengths = web30k_lengths(QUERIES[-1])
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    labels = numpy_stream("benchmark", "labels").choice(5, offsets[-1], p=LABEL_SHARES)
    features = np.load(make_features(), mmap_mode="r")
    taken = offsets[: count + 1]
    return RankedLists(features, labels.astype(np.float32), taken, np.arange(count))


def make_features() -> Path:
    """The features of :func:`mapped`, written once."""
    return features_file("scale_features.npy", int(web30k_lengths(QUERIES[-1]).sum()), 136)


# ------------------------------------------------------------------------------------ all of them


def run(curve: str) -> list[dict[str, Any]]:
    """The rows of a curve."""
    make, unit, _, _ = CURVES[curve]
    rows = []
    for point in make():
        command = [sys.executable, __file__, "--point", json.dumps(point)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        seconds, megabytes = map(float, done.stdout.split()[-2:])
        print(f"{curve:>10}  {point['series']:<28} {point['x']:>6} {unit:<19}"
              f" {seconds:10.4f} s {megabytes:8.0f} MB", flush=True)  # fmt: skip
        lists = max(2, TOGETHER // point["x"]) if curve == "documents" else 1
        rows.append(
            {
                "curve": curve,
                "series": point["series"],
                "x": point["x"],
                "seconds": seconds / lists,
                "memory_mb": megabytes,
            }
        )
    return rows


def exponent(rows: pd.DataFrame, least: int) -> float:
    """The slope of log seconds against log x, for x of at least ``least``."""
    rows = rows[rows["x"] >= least]
    return float(np.polyfit(np.log(rows["x"]), np.log(rows["seconds"]), 1)[0])


def page(frame: pd.DataFrame) -> str:
    """The results as Markdown: a table per curve, and what it should be."""
    lines = [
        "# How training scales",
        "",
        f"{environment()['processor']}, one thread unless said otherwise, torch "
        f"{torch.__version__}. Seconds are those of an epoch, or of a list where lists differ in "
        "length; MB are anonymous memory at the peak, with about 250 MB of libraries. "
        "`python benchmarks/bench_scale.py` says what is measured.",
    ]
    for curve, rows in frame.groupby("curve", sort=False):
        _, unit, least, bound = CURVES[str(curve)]
        lines += ["", f"## {unit.capitalize()}", ""]
        xs = list(dict.fromkeys(rows["x"]))
        lines.append(
            f"| | {' | '.join(f'{x:,}' for x in xs)} |" + ("" if bound is None else " exponent |")
        )
        lines.append("| --- |" + " ---: |" * (len(xs) + (bound is not None)))
        for series, own in rows.groupby("series", sort=False):
            times = " | ".join(f"{value:.3g}" for value in own["seconds"])
            row = f"| {series}, s | {times} |"
            if bound is not None:
                slope = exponent(own, least)
                row += f" {slope:.2f}{'' if slope <= bound + TOLERANCE else ' (above)'} |"
            lines.append(row)
            memory = " | ".join(f"{value:.0f}" for value in own["memory_mb"])
            lines.append(f"| {series}, MB | {memory} |" + ("" if bound is None else " |"))
        if bound is not None:
            lines += [
                "",
                f"The exponent, of {least:,} {unit} and more, should be at most {bound:g}.",
            ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure the curves that the command line asks for."""
    options = parser(__doc__, CURVES)
    options.add_argument("--point", help=argparse.SUPPRESS)
    chosen = parsed(options, CURVES)
    if chosen.point:
        print(*measure(json.loads(chosen.point)))
        return
    frame = pd.DataFrame([row for curve in chosen.parts for row in run(curve)])
    before = chosen.out / "scale.csv"
    if before.is_file():
        kept = pd.read_csv(before)
        frame = pd.concat([kept[~kept["curve"].isin(chosen.parts)], frame], ignore_index=True)
    write_csv(before, frame, digits=4)
    write_text(chosen.out / "scale.md", page(frame))


if __name__ == "__main__":
    main()
