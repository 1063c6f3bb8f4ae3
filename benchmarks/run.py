"""Run every benchmark of this folder, one after another; results go to benchmarks/results.

    python benchmarks/run.py            all of them
    python benchmarks/run.py parser     those whose name contains "parser"

Measured times depend on the machine and its other load: compare ratios from one run.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

FOLDER = Path(__file__).resolve().parent


def main() -> int:
    """Run the benchmarks asked for; the number that failed."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("names", nargs="*", help="parts of names; all without one")
    names = options.parse_args().names
    scripts = [
        script
        for script in sorted(FOLDER.glob("bench_*.py"))
        if not names or any(name in script.stem for name in names)
    ]
    if not scripts:
        options.error(f"no benchmark's name contains {' or '.join(names)}")
    took, failed = {}, []
    for script in scripts:
        print(f"\n=== {script.stem}", flush=True)
        began = time.monotonic()
        if subprocess.run([sys.executable, str(script)], check=False).returncode != 0:
            failed.append(script.stem)
        took[script.stem] = time.monotonic() - began
    print("\n=== seconds")
    for name, seconds in took.items():
        print(f"{name:20} {seconds:7.0f}{'  FAILED' if name in failed else ''}")
    print(f"{'together':20} {sum(took.values()):7.0f}")
    return len(failed)


if __name__ == "__main__":
    sys.exit(main())
