"""How long `directrank cost` takes: the probe of a machine, and the estimate of an edition.

    python benchmarks/bench_cost.py

Exits with 1 if either takes longer than its limit, because nobody wants to wait for a forecast.
The losses' loops are compiled before both, once per machine.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from directrank.cost.estimate import estimate
from directrank.cost.measure import measure
from directrank.edition.plan import load
from directrank.system.schema import read_yaml

ROOT = Path(__file__).resolve().parents[1]

#: Seconds, on two slow cores that have other work as well.
LIMITS = {"probe": 120, "estimate": 20}


def main() -> int:
    """Print the seconds of both; 1 if one is over its limit."""
    measure()
    took, began = {}, time.perf_counter()
    rates = measure()
    took["probe"] = time.perf_counter() - began
    plan = load(read_yaml(ROOT / "config/paper.yaml"), ROOT)
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as nothing_prepared:
        estimate(plan, rates, nothing_prepared)
    took["estimate"] = time.perf_counter() - began
    for name, seconds in took.items():
        print(f"{name:10}{seconds:7.1f} s, at most {LIMITS[name]}")
    return int(any(seconds > LIMITS[name] for name, seconds in took.items()))


if __name__ == "__main__":
    sys.exit(main())
