"""The table in scale.md of what each paper takes at its own scale, as `directrank cost` says.

    python docs/costs.py --quick

rewrites the table, for the machine of the recorded runs. Options are those of ``directrank cost``,
which measures this machine where none are given. A test compares the table's counts of runs and
fits with the plan.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import artefact
import pandas as pd

from directrank.papers.shared.pages import write_part

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/scale.md"
EDITION = "paper"
BEGIN = "<!-- written by docs/costs.py -->\n"
END = "<!-- end -->\n"

#: The cores for which times are given, besides those of one process at a time.
CORES = (2, 16)

#: The cores that are left for trees and linear methods beside a GPU, which four processes share.
BESIDE_GPU = CORES[-1] - 4


def predicted(folder: Path, options: list[str]) -> tuple[str, pd.DataFrame, pd.DataFrame]:
    """The machines, the products and the runs as ``directrank cost`` reports them."""
    command = [
        sys.executable,
        "-m",
        "directrank",
        "cost",
        f"config/{EDITION}.yaml",
        "--out",
        str(folder),
        *options,
    ]
    done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    machines = [f"{line}." for line in done.stdout.splitlines() if line[:5] in ("CPU: ", "GPU: ")]
    products, runs = (pd.read_csv(folder / f"{name}.csv") for name in ("products", "runs"))
    return "\n\n".join(machines), products, runs


def table(machines: str, products: pd.DataFrame, runs: pd.DataFrame) -> str:
    """The Markdown table with a row per paper, and the machines to which the hours refer."""
    edition = artefact.load_edition(EDITION, pd.read_csv(artefact.FACTS))
    hours = dict(zip(runs["run"], runs["seconds"] / 3600, strict=True))
    on_gpu = runs[runs["gpu_like"] != "on the CPU"]
    networks = dict(zip(on_gpu["run"], on_gpu["gpu_seconds"] / 3600, strict=True))
    lines = [header()]
    lines += ["| --- | ---: | ---: | ---: |" + " ---: |" * len(CORES) + " ---: | ---: | --- |"]
    for row in products[products["product"] == "all"].itertuples():
        keys = [key for key in edition.keys if row.paper in (key[0], "all")]
        needed = edition.runs(keys)
        longest = max(hours[run] for run in needed)
        times = [row.cpu_hours, *(max(row.cpu_hours / cores, longest) for cores in CORES)]
        beside = [hours[run] for run in needed if run not in networks]
        both = max(
            sum(networks[run] for run in needed if run in networks),
            sum(beside) / BESIDE_GPU,
            *beside,
        )
        cells = [_rounded(value) for value in (*times, row.gpu_hours, both)]
        counts = [row.paper, str(row.runs), str(row.fits)]
        lines.append(f"| {' | '.join([*counts, *cells, edition.archives(needed)])} |")
    return "\n".join([*lines, "", machines]) + "\n"


def header() -> str:
    """The first line of the table."""
    on_cores = " | ".join(f"{cores} cores" for cores in CORES)
    on_gpu = f"GPU, 1 process | GPU and {CORES[-1]} cores"
    return f"| paper | runs | fits | 1 process | {on_cores} | {on_gpu} | archives |"


def _rounded(hours: float) -> str:
    """Two digits, because a prediction is no more precise."""
    return f"{float(f'{hours:.2g}'):,g}".replace(",", " ")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        content = table(*predicted(Path(folder), sys.argv[1:]))
    write_part(PAGE, BEGIN, END, f"\n{content}\n")
