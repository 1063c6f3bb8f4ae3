"""What made each product of an edition: commits, processors, arithmetic, settings, and a digest of
its data.

The manifest of a committed edition says from which code its numbers stem, and shows whether they
are still those that this code made.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from directrank.edition.plan import runs_behind
from directrank.papers.shared.evidence import read_plan
from directrank.papers.shared.product import product
from directrank.study import published
from directrank.study.results import RECORD
from directrank.system.errors import DataError
from directrank.system.io import digest_of, read_json, sha256_of, write_json

#: What is said of a product whose runs are not at hand and that no earlier manifest knows.
UNKNOWN: Mapping[str, Any] = {"note": "made before manifests were kept; its runs were not recorded"}


def write(
    plans: Sequence[Path],
    results: Path,
    figures: Path,
    tables: Path,
    out: Path,
    known: Path | None = None,
) -> None:
    """Write the manifest of an edition's products.

    Args:
        plans: those of the products.
        results: the edition's results, with its runs.
        figures, tables: the folders with the papers' products.
        out: the file to write.
        known: an earlier manifest. A product whose runs are not all in ``results`` keeps what this
            says of them, so that products can be drawn again where nothing was trained.

    Raises:
        DataError: a product or one of its runs is missing.
    """
    before = read_json(known)["products"] if known and known.is_file() else {}
    entries = {}
    for plan in map(read_plan, plans):
        name = f"{plan['paper']}/{plan['product']}"
        file = _data_file(plan, figures, tables)
        if not file.is_file():
            raise DataError("this product is missing", "make it first", file=file)
        records = [results / "runs" / run / RECORD for run in sorted(runs_behind([plan]))]
        missing = [record for record in records if not record.is_file()]
        if missing and known is None:
            raise DataError("this run is missing", "train it first", file=missing[0])
        old = before.get(name, UNKNOWN)
        told = {key: value for key, value in old.items() if key not in ("file", "sha256")}
        entries[name] = {
            **(told if missing else _of_runs(records)),
            "file": file.name,
            "sha256": sha256_of(file),
        }
    write_json(out, {"products": dict(sorted(entries.items()))})


def made_elsewhere(file: Path) -> tuple[list[str], list[str]]:
    """The processors of the committed version of a manifest, and those of the file, if they differ.

    Both are empty if they are the same, or if no version is committed.
    """
    command = ["git", "-C", str(file.parent), "show", f"HEAD:./{file.name}"]
    try:
        shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        committed, now = _processors(json.loads(shown)), _processors(read_json(file))
    except (OSError, subprocess.CalledProcessError, ValueError, KeyError):
        return [], []
    return (committed, now) if committed and now and committed != now else ([], [])


def _processors(manifest: Mapping[str, Any]) -> list[str]:
    entries = manifest["products"].values()
    return sorted({name for entry in entries for name in entry.get("processors", ())})


def _data_file(plan: Mapping[str, Any], figures: Path, tables: Path) -> Path:
    """The file with the numbers of a product."""
    kind = product(plan["paper"], plan["product"]).kind
    folder = (figures if kind == "figure" else tables) / plan["paper"]
    suffix = published.SUFFIX if kind == "values" else ".csv"
    return folder / f"{plan['product']}{suffix}"


def _of_runs(records: Iterable[Path]) -> dict[str, Any]:
    """What the records of a product's runs say; nothing of a product without runs."""
    runs = [read_json(record) for record in records]
    if not runs:
        return {"runs": 0}
    environments = [run["environment"] for run in runs]
    return {
        "runs": len(runs),
        "commits": _distinct(environment["revision"] for environment in environments),
        "processors": _distinct(environment["processor"] for environment in environments),
        "arithmetic": _distinct(environment.get("arithmetic") for environment in environments),
        "torch": _distinct(environment["packages"]["torch"] for environment in environments),
        "settings": digest_of([run["spec"] for run in runs]),
        "trained": [min(run["started"] for run in runs), max(run["started"] for run in runs)],
    }


def _distinct(values: Iterable[str | None]) -> list[str]:
    return sorted({value or "unknown" for value in values})
