"""``docs/renew_pages.py``: what follows from the committed products of an edition."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from workflow_runs import ROOT

pytestmark = pytest.mark.long

COPIED = (
    "benchmarks/results",
    "config",
    "data",
    "docs",
    "figures",
    "paper_tables",
    "src",
    "tests/helpers",
    "workflow",
)


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of the copied figures, tables and pages, by its path."""
    files = [
        file for top in ("figures", "paper_tables", "docs") for file in folder.glob(f"{top}/**/*")
    ]
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in files
        if file.is_file() and "__pycache__" not in file.parts
    }


def renewed(folder: Path) -> None:
    environment = os.environ | {"PYTHONPATH": str(folder / "src")}
    command = [sys.executable, "docs/renew_pages.py", "real"]
    subprocess.run(command, cwd=folder, env=environment, check=True)


def test_pages_follow_the_committed_values_and_stay_where_these_do(tmp_path: Path) -> None:
    for name in COPIED:
        ignored = shutil.ignore_patterns("__pycache__", "raw", "prepared")
        shutil.copytree(ROOT / name, tmp_path / name, ignore=ignored)
    before = contents(tmp_path)
    renewed(tmp_path)
    assert contents(tmp_path) == before
    values = tmp_path / "paper_tables/real/one_protocol/per_query_ohsumed.parquet"
    table = pq.read_table(values)
    rows = table.to_pandas()
    rows.loc[rows["method"] == "ListMLE", ["ndcg@10", "ap"]] *= 0.5
    pq.write_table(pa.Table.from_pandas(rows, schema=table.schema), values)
    renewed(tmp_path)
    changed = {name for name, content in contents(tmp_path).items() if content != before[name]}
    assert "paper_tables/real/one_protocol/table_collections.csv" in changed
    assert "paper_tables/real/claims_by_collection.csv" in changed
    assert "paper_tables/real/manifest.json" in changed
    assert "paper_tables/real/claims.csv" not in changed
