"""The table in scale.md of what the edition `paper` would take, as `directrank cost` predicts it.

``python docs/costs.py`` measures this machine, if that was not done before, and rewrites the table;
a test compares its counts of runs and fits with the plan.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pandas as pd

from directrank.edition.plan import load
from directrank.system.marked import write_part
from directrank.system.schema import read_yaml

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/scale.md"
EDITION = "config/paper.yaml"
BEGIN = "<!-- written by docs/costs.py -->\n"
END = "<!-- end -->\n"


def predicted(folder: Path) -> tuple[str, pd.DataFrame, pd.DataFrame]:
    """The CPU, the products and the runs as ``directrank cost`` reports them."""
    command = [sys.executable, "-m", "directrank", "cost", EDITION, "--out", str(folder)]
    done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    (cpu,) = (line for line in done.stdout.splitlines() if line.startswith("CPU: "))
    products, runs = (pd.read_csv(folder / f"{name}.csv") for name in ("products", "runs"))
    return f"{cpu}.", products, runs


def longest(runs: pd.DataFrame) -> dict[str, float]:
    """From each paper, and ``all``, to the CPU hours of its longest run."""
    hours = dict(zip(runs["run"], runs["seconds"] / 3600, strict=True))
    found: dict[str, float] = {"all": max(hours.values())}
    for (paper, _), product in load(read_yaml(ROOT / EDITION), ROOT).products.items():
        for cells in product["experiments"].values():
            found[paper] = max([found.get(paper, 0.0), *(hours[cell["run"]] for cell in cells)])
    return found


def table(cpu: str, products: pd.DataFrame, runs: pd.DataFrame) -> str:
    """The Markdown table with a row per paper, and the CPU to which the hours refer."""
    of_longest = longest(runs)
    lines = ["| paper | runs | fits | hours on a CPU | the longest run | hours on a GPU |"]
    lines += ["| --- | ---: | ---: | ---: | ---: | ---: |"]
    for row in products[products["product"] == "all"].itertuples():
        hours = (row.cpu_hours, of_longest[row.paper], row.gpu_hours)
        counts = f"| {row.paper} | {row.runs} | {row.fits} | "
        lines.append(counts + " | ".join(_rounded(value) for value in hours) + " |")
    return "\n".join([*lines, "", cpu]) + "\n"


def _rounded(hours: float) -> str:
    """Two digits, because a prediction is no more precise."""
    return f"{float(f'{hours:.2g}'):,g}".replace(",", " ")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        content = table(*predicted(Path(folder)))
    write_part(PAGE, BEGIN, END, f"\n{content}\n")
