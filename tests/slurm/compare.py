"""Run an edition through Slurm and on this machine, and compare what comes out, byte for byte.

    tests/slurm/cluster.sh up
    python tests/slurm/compare.py --configfile config/demo.yaml
    tests/slurm/cluster.sh down

Both runs start from nothing, in folders of their own; ``--local FOLDER`` names a finished run on
this machine in place of the first. Ends with 0 if every CSV is the same. Files of measured times
need only exist in both.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from datetime import datetime
from pathlib import Path

from directrank.system.schema import read_yaml
from directrank.system.usage import read_usage

ROOT = Path(__file__).resolve().parents[2]

#: Where the test's Slurm writes a line for each job that has ended (cluster.sh).
JOBS = Path("/var/log/slurm/jobs.log")

#: What a test on one node needs besides the profile: it is small, and its file system has no delay.
ONE_NODE = (
    "--slurm-no-account",
    "--slurm-init-seconds-before-status-checks=1",
    "--seconds-between-status-checks=1",
    "--latency-wait=5",
    "--slurm-logdir=logs/slurm",
)


def run(folder: Path, configfile: Path, profile: str, *options: str) -> float:
    """Run the workflow in ``folder`` with a profile; seconds it took."""
    began = time.perf_counter()
    command = [sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / "Snakefile")]
    command += ["--directory", str(folder), "--configfile", str(configfile)]
    command += ["--workflow-profile", str(ROOT / "workflow/profiles" / profile), *options]
    subprocess.run(command, check=True, cwd=ROOT)
    return time.perf_counter() - began


def overhead(folder: Path) -> tuple[int, float]:
    """Jobs that Slurm ran for the workflow in ``folder``, and seconds of each beside its commands'.

    What batches and papers take besides their runs and products counts as beside them.
    """
    pattern = rf"StartTime=(\S+) EndTime=(\S+).*WorkDir={re.escape(str(folder))}\b"
    spans = [
        (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()
        for start, end in re.findall(pattern, JOBS.read_text(encoding="utf-8"))
    ]
    usages = (folder / "logs").rglob("*.benchmark.tsv")
    own = sum(used["s"] for path in usages if (used := read_usage(path)) is not None)
    return len(spans), (sum(spans) - own) / max(1, len(spans))


def tables(folder: Path, edition: str) -> dict[str, bytes]:
    """Every CSV of an edition, by its path; those of measured times without their content."""
    return {
        str(path.relative_to(folder)): b"" if path.stem.endswith("_times") else path.read_bytes()
        for top in ("figures", "paper_tables")
        for path in sorted((folder / top / edition).rglob("*.csv"))
    }


def main() -> int:
    """Compare; 0 if all is the same, 1 if not."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--configfile", type=Path, default=ROOT / "config/demo.yaml")
    parser.add_argument(
        "--folder", type=Path, help="a folder on a shared file system (default: a temporary one)"
    )
    parser.add_argument(
        "--local", type=Path, help="a folder with a finished local run (default: it is made)"
    )
    options = parser.parse_args()
    edition = read_yaml(options.configfile)["edition"]
    with tempfile.TemporaryDirectory(prefix="slurm-", dir=options.folder) as name:
        local, cluster = options.local or Path(name) / "local", Path(name) / "slurm"
        cores = os.cpu_count() or 1
        if options.local is None:
            seconds = run(local, options.configfile, "default", f"--cores={cores}")
            print(f"here {seconds:.0f} s", flush=True)
        seconds = run(cluster, options.configfile, "slurm", f"--cores={cores}", *ONE_NODE)
        print(f"through Slurm {seconds:.0f} s")
        here, there = tables(local, edition), tables(cluster, edition)
        jobs, beside = overhead(cluster)
    print(f"{jobs} jobs, each {beside:.1f} s beside what its commands took")
    different = [name for name in sorted({*here, *there}) if here.get(name) != there.get(name)]
    for name in different:
        print(f"differs: {name}")
    print(f"{len(here)} CSV files, {len(different)} differ")
    return int(bool(different) or not here)


if __name__ == "__main__":
    sys.exit(main())
