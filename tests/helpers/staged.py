"""The results that the pages speak of, whatever a run has left in this folder since.

Another processor rounds otherwise, so that results made again differ in late digits from those that
were committed together with the pages.
"""

from __future__ import annotations

import runpy
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from workflow_runs import ROOT

RESULTS = tuple(
    f"{folder}/*.{suffix}"
    for folder in ("figures", "paper_tables")
    for suffix in ("csv", "json", "md", "parquet")
)


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    """A copy of the results that Git has staged; empty where this is no Git repository."""
    folder = tempfile.TemporaryDirectory()
    listing = ["git", "ls-files", "-z", "--", *RESULTS]
    files = subprocess.run(listing, cwd=ROOT, capture_output=True).stdout
    if files:
        command = ["git", "checkout-index", "-z", "--stdin", f"--prefix={folder.name}/"]
        subprocess.run(command, cwd=ROOT, input=files, check=True)
    return folder


def staged() -> Path:
    """The folder with the staged results in ``figures`` and ``paper_tables``."""
    folder = Path(_folder().name)
    return folder if any(folder.iterdir()) else ROOT


def effects() -> str:
    """The table that ``docs/effects.py`` writes of these results."""
    return str(runpy.run_path(str(ROOT / "docs/effects.py"))["table"](staged()))
