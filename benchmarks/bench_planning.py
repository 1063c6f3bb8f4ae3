"""How long a dry run of Snakemake takes to plan each edition, in processor seconds.

    python benchmarks/bench_planning.py

Exits with 1 if a plan takes longer than its limit, because users wait for it.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

#: Seconds on a slow core that has other work as well.
LIMITS = {"demo": 15, "real": 15, "paper": 20}


def main() -> int:
    """Print the seconds of every edition; 1 if one is over its limit."""
    took = {edition: planning_seconds(edition) for edition in LIMITS}
    for edition, seconds in took.items():
        print(f"{edition:10}{seconds:7.1f} s, at most {LIMITS[edition]}")
    return int(any(seconds > LIMITS[edition] for edition, seconds in took.items()))


def planning_seconds(edition: str) -> float:
    """Seconds of a processor that a dry run takes where nothing has been made yet."""
    with tempfile.TemporaryDirectory() as empty:
        command = [
            *(sys.executable, "-m", "snakemake", "-n"),
            *("--snakefile", ROOT / "Snakefile", "--directory", empty),
            *("--workflow-profile", ROOT / "profiles/default"),
            *("--configfile", ROOT / f"config/{edition}.yaml", "--cores", "2"),
        ]
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        subprocess.run(
            [str(part) for part in command], check=True, cwd=ROOT, stdout=subprocess.DEVNULL
        )
        return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


if __name__ == "__main__":
    sys.exit(main())
