"""Inject faults, start the workflow again, and compare the results with an undisturbed run.

    python tests/faults/run.py                   every fault; writes benchmarks/results/faults.*
    python tests/faults/run.py kills.job disks   some faults; only prints
    python tests/faults/run.py --once            every fault once; only prints

After each fault the workflow is started again as a user would do it. Every CSV and every run's
values per query must then have the same bytes as in the undisturbed run. The exit status is 0 if
nothing was lost.
"""

from __future__ import annotations

import argparse
import csv
import io
import sys
import tempfile
import time
from pathlib import Path

import damage
import disks
import kills
import node
import others
from world import ROOT, Row, SkippedError, World

MODULES = (kills, disks, damage, others, node)
OUT = ROOT / "benchmarks/results"
COLUMNS = ("fault", "tried", "survived", "lost", "what the user sees and does")


def main() -> int:
    """Run the faults; 0 if nothing was lost, 1 if something was."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("faults", nargs="*", help="MODULE or MODULE.FAULT (default: all)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the moments (default: 1)")
    parser.add_argument("--once", action="store_true", help="inject every fault once; only prints")
    parser.add_argument("--folder", type=Path, help="folder to work in (default: a temporary one)")
    options = parser.parse_args()
    known = {f"{m.__name__}.{f.__name__}": f for m in MODULES for f in m.FAULTS}
    chosen = {
        name: fault
        for name, fault in known.items()
        if not options.faults or {name, name.split(".")[0]} & set(options.faults)
    }
    if not chosen:
        parser.error(f"no such fault; there are {', '.join(known)}")
    rows, began = [], time.monotonic()
    with tempfile.TemporaryDirectory(prefix="faults-", dir=options.folder) as base:
        world = World(Path(base), options.seed, options.once)
        print(f"undisturbed: {world.seconds:.0f} s", flush=True)
        for name, fault in chosen.items():
            row = _tried(fault, world)
            rows.append(row)
            state = (
                f"skipped: {row.skipped}" if row.skipped else f"{row.tried} tried, {row.lost} lost"
            )
            print(f"{name}: {state} ({time.monotonic() - began:.0f} s)", flush=True)
            for problem in row.problems:
                print(f"  {problem}", flush=True)
    table = _markdown(rows)
    print(f"\n{table}")
    if not (options.faults or options.once):
        (OUT / "faults.md").write_text(_page(table, options.seed), encoding="utf-8")
        (OUT / "faults.csv").write_text(_csv(rows), encoding="utf-8")
    return int(any(row.lost for row in rows))


def _tried(fault, world: World) -> Row:
    """The fault's row; one that says so where it cannot be brought about here."""
    try:
        return fault(world)
    except SkippedError as reason:
        return Row(fault.__doc__.splitlines()[0].rstrip("."), "", skipped=str(reason))


def _cells(row: Row) -> tuple[str, ...]:
    if row.skipped:
        return (row.fault, "not tried", "", "", row.skipped)
    return (row.fault, str(row.tried), str(row.tried - row.lost), str(row.lost), row.user)


def _markdown(rows: list[Row]) -> str:
    lines = [COLUMNS, ("---",) * len(COLUMNS), *(_cells(row) for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _csv(rows: list[Row]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(_cells(row) for row in rows)
    return text.getvalue()


def _page(table: str, seed: int) -> str:
    return (
        "# Injected faults\n\n"
        f"`make test-faults` writes this page (with seed {seed} for the random moments). "
        "*Survived* means that the workflow, when it was started again, gave the same bytes as an "
        "undisturbed run, printed a message where the user has to act, and printed no traceback. "
        "[docs/scale.md](../../docs/scale.md#when-something-fails) describes how this works.\n\n"
        + table
    )


if __name__ == "__main__":
    sys.exit(main())
