"""What the benchmarks of training write: measures beside what is to be reached."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from directrank.system.io import write_csv, write_text

#: What is to be reached: (measure, configuration) → (value, whether more is better).
TARGETS = {
    ("share of the product rate", "B1024 float32"): (0.70, True),
    ("share of the product rate", "R5 float32"): (0.55, True),
    ("times the usual way", "B1024 float32"): (3.0, True),
    ("times the usual way", "R5 float32"): (3.0, True),
    ("share of its products alone", "B1024 bfloat16"): (0.70, True),
    ("together over one by one", "10 trials of [64, 32, 16], 1 query a step"): (4.0, True),
    ("together over one by one", "10 trials of [64, 32, 16], 16 queries a step"): (4.0, True),
    ("one command over ten", "10 trials of [64, 32, 16]"): (4.0, True),
    ("together over one by one on a GPU", "10 trials of [64, 32, 16], 1 query a step"): (8.0, True),
    ("together over one by one on a GPU", "10 trials of [64, 32, 16], 16 queries a step"): (
        8.0,
        True,
    ),
    ("seconds of an epoch", "B1024 float32"): (0.45, False),
    ("seconds of an epoch", "B1024 tf32"): (0.25, False),
    ("seconds of an epoch", "B1024 bfloat16"): (0.20, False),
    ("seconds of an epoch", "R5 float32"): (0.10, False),
    ("seconds of an epoch", "transformer, ApproxNDCG float32, from a tenth"): (1.0, False),
    ("seconds of an epoch", "transformer, NeuralNDCG float32, from a tenth"): (1.5, False),
    ("µs of a model and step", "72 models, one query a step"): (15.0, False),
    ("fits per hour, times one process", "24 losses in a process"): (20.0, True),
    ("times a plain version", "60 linear models, 100 epochs"): (5.0, True),
    ("seconds of a metric over those of scoring", "B64"): (1.0, False),
    ("seconds of a metric over those of scoring", "linear"): (0.3, False),
    ("resident GB beyond the data", "Web30K fold 1"): (4.0, False),
}

Row = dict[str, Any]


def row(measure: str, configuration: str, value: float, unit: str) -> Row:
    """A line of the results, printed at once."""
    target, more = TARGETS.get((measure, configuration), (None, True))
    reached = "" if target is None else "yes" if (value >= target) == more else "no"
    print(f"{measure:>30}  {configuration:<30} {value:.4g} {unit} {reached}", flush=True)
    return {
        "measure": measure,
        "configuration": configuration,
        "value": value,
        "unit": unit,
        "target": "" if target is None else f"{'≥' if more else '≤'} {target:g}",
        "reached": reached,
    }


def parser(doc: str | None, parts: Collection[str]) -> argparse.ArgumentParser:
    """The command line of a benchmark with ``parts``; see :func:`parsed`."""
    options = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("parts", nargs="*", help=f"of {', '.join(parts)}; all without one")
    options.add_argument("--out", type=Path, default=Path(__file__).resolve().parent / "results")
    return options


def parsed(options: argparse.ArgumentParser, parts: Collection[str]) -> argparse.Namespace:
    """What the command line asks for; its ``parts`` are all where it names none."""
    chosen = options.parse_args()
    for name in chosen.parts:
        if name not in parts:
            options.error(f"no part '{name}'; there are: {', '.join(parts)}")
    chosen.parts = chosen.parts or list(parts)
    return chosen


def write(
    rows: list[Row],
    folder: Path,
    name: str,
    machine: str,
    title: str = "Training",
    more: Sequence[str] = (),
) -> None:
    """``<name>.csv`` and ``<name>.md``.

    Rows of an earlier file that were not measured again stay in their places.

    Args:
        rows: what was measured.
        folder: where the files are.
        name: of the files.
        machine: on what it was measured.
        title: of the page.
        more: lines at its end.
    """
    path = folder / f"{name}.csv"
    if path.is_file():
        measured = {(entry["measure"], entry["configuration"]): entry for entry in rows}
        earlier = pd.read_csv(path, keep_default_na=False).to_dict("records")
        kept = [measured.pop((old["measure"], old["configuration"]), old) for old in earlier]
        rows = [*kept, *measured.values()]
    write_csv(path, pd.DataFrame(rows), digits=4)
    lines = [
        f"# {title}",
        "",
        f"{machine}, torch {torch.__version__}. "
        "Times depend on the machine and its other load; ratios are from one run. "
        "Parts may have been measured on different days.",
        "",
        "| measure | configuration | value | target | reached |",
        "| --- | --- | ---: | ---: | --- |",
    ]
    for entry in rows:
        value = f"{entry['value']:,.4g}" if entry["value"] < 1e4 else f"{entry['value']:,.0f}"
        lines.append(
            f"| {entry['measure']} | {entry['configuration']} | {value} {entry['unit']} "
            f"| {entry['target']} | {entry['reached']} |"
        )
    write_text(folder / f"{name}.md", "\n".join([*lines, *more]) + "\n")
