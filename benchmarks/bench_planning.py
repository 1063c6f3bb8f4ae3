"""How long Snakemake takes to plan each edition where nothing has been made yet.

    python benchmarks/bench_planning.py

Planning ends when the table of the jobs appears; a dry run then prints every job. The seconds
include the start of Snakemake. The table is written to results/planning.csv. Exits with 1 if a plan
takes longer than its limit, because users wait for it.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pandas as pd

from directrank.system.io import write_csv

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks/results/planning.csv"

#: Seconds until the table of the jobs appears.
LIMITS = {"demo": 3, "real": 15, "paper": 15}

#: The fastest of so many dry runs counts, because other work on the machine only slows them down.
REPEATS = 3


def main() -> int:
    """Print and write the seconds of every edition; 1 if one is over its limit."""
    rows = []
    for edition, limit in LIMITS.items():
        planned, whole = (
            min(times) for times in zip(*map(dry_run, REPEATS * [edition]), strict=True)
        )
        print(f"{edition:10}{planned:7.2f} s, at most {limit}; the dry run {whole:.2f} s")
        rows.append(
            {"edition": edition, "planning_s": planned, "limit_s": limit, "dry_run_s": whole}
        )
    write_csv(RESULTS, pd.DataFrame(rows), digits=3)
    return int(any(row["planning_s"] > row["limit_s"] for row in rows))


def dry_run(edition: str) -> tuple[float, float]:
    """Seconds until a dry run of an edition shows the table of its jobs, and until its end."""
    with tempfile.TemporaryDirectory() as empty:
        command = [
            *(sys.executable, "-m", "snakemake", "-n"),
            *("--snakefile", ROOT / "Snakefile", "--directory", empty),
            *("--workflow-profile", ROOT / "profiles/default"),
            *("--configfile", ROOT / f"config/{edition}.yaml", "--cores", "2"),
        ]
        began, planned = time.perf_counter(), None
        with subprocess.Popen(
            [str(part) for part in command],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as process:
            assert process.stdout is not None
            for line in process.stdout:
                if planned is None and line.startswith("Job stats"):
                    planned = time.perf_counter() - began
        whole = time.perf_counter() - began
        if process.returncode != 0 or planned is None:
            raise SystemExit(f"the dry run of '{edition}' failed")
        return planned, whole


if __name__ == "__main__":
    sys.exit(main())
