"""Run every benchmark of this folder, one after the other; results go to benchmarks/results.

    python benchmarks/run.py            all of them
    python benchmarks/run.py parser     those whose name contains "parser"

Measured times depend on the machine and on what else it does: compare ratios from one run.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent


def main() -> int:
    """Run the benchmarks asked for; the number that failed."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("names", nargs="*", help="parts of names; all without one")
    names = options.parse_args().names
    failed = 0
    for script in sorted(FOLDER.glob("bench_*.py")):
        if names and not any(name in script.stem for name in names):
            continue
        print(f"\n=== {script.stem}", flush=True)
        failed += subprocess.run([sys.executable, str(script)], check=False).returncode != 0
    return failed


if __name__ == "__main__":
    sys.exit(main())
