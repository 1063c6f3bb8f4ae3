"""The table in scale.md of what each paper takes at its own scale, as `directrank cost` says.

``python docs/costs.py`` measures this machine, if that was not done before, and rewrites the table;
a test compares its counts of runs and fits with the plan.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import artefact
import pandas as pd

from directrank.system.marked import write_part

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/scale.md"
EDITION = "paper"
BEGIN = "<!-- written by docs/costs.py -->\n"
END = "<!-- end -->\n"

#: The cores for which times are given, besides those of one process at a time.
CORES = (2, 16)


def predicted(folder: Path) -> tuple[str, pd.DataFrame, pd.DataFrame]:
    """The CPU, the products and the runs as ``directrank cost`` reports them."""
    command = [
        sys.executable,
        "-m",
        "directrank",
        "cost",
        f"config/{EDITION}.yaml",
        "--out",
        str(folder),
    ]
    done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    (cpu,) = (line for line in done.stdout.splitlines() if line.startswith("CPU: "))
    products, runs = (pd.read_csv(folder / f"{name}.csv") for name in ("products", "runs"))
    return f"{cpu}.", products, runs


def table(cpu: str, products: pd.DataFrame, runs: pd.DataFrame) -> str:
    """The Markdown table with a row per paper, and the CPU to which the hours refer."""
    edition = artefact.load_edition(EDITION, pd.read_csv(artefact.FACTS))
    hours = dict(zip(runs["run"], runs["seconds"] / 3600, strict=True))
    on_cores = [f"{cores} cores" for cores in CORES]
    lines = ["| paper | runs | fits | 1 process | " + " | ".join(on_cores) + " | GPU | archives |"]
    lines += ["| --- | ---: | ---: | ---: |" + " ---: |" * len(CORES) + " ---: | --- |"]
    for row in products[products["product"] == "all"].itertuples():
        keys = [key for key in edition.keys if row.paper in (key[0], "all")]
        needed = edition.runs(keys)
        longest = max(hours[run] for run in needed)
        times = [row.cpu_hours, *(max(row.cpu_hours / cores, longest) for cores in CORES)]
        cells = [_rounded(value) for value in (*times, row.gpu_hours)]
        counts = [row.paper, str(row.runs), str(row.fits)]
        lines.append(f"| {' | '.join([*counts, *cells, edition.archives(needed)])} |")
    return "\n".join([*lines, "", cpu]) + "\n"


def _rounded(hours: float) -> str:
    """Two digits, because a prediction is no more precise."""
    return f"{float(f'{hours:.2g}'):,g}".replace(",", " ")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        content = table(*predicted(Path(folder)))
    write_part(PAGE, BEGIN, END, f"\n{content}\n")
