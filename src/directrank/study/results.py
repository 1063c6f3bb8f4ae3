"""Write and read a run's result files, from which everything downstream starts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from directrank.system.errors import DataError
from directrank.system.io import atomic_path, read_json, write_csv, write_json

PER_QUERY = "per_query.parquet"
HISTORY = "history.csv"
FITS = "fits.csv"
RECORD = "run.json"
#: What is trained, for `directrank fit`.
SPECIFICATION = "spec.json"
#: The files of a run that the rest of the study reads.
FILES = (PER_QUERY, HISTORY, FITS, RECORD)
#: The folder of trained models, which the study does not read again.
MODELS = "models"


@dataclass(frozen=True)
class RunResult:
    """The result files of one run, which are read on demand.

    Attributes:
        folder: the folder of the files; its name is the run's name.
    """

    folder: Path

    @property
    def name(self) -> str:
        """The run's name."""
        return self.folder.name

    @cached_property
    def record(self) -> dict[str, Any]:
        """Provenance: specification, seeds, versions, data digest, machine, times."""
        return read_json(self.folder / RECORD)

    @property
    def spec(self) -> dict[str, Any]:
        """The run's specification."""
        return self.record["spec"]

    @cached_property
    def per_query(self) -> pd.DataFrame:
        """One row per trial, split and query; one column per metric, NaN for empty queries."""
        return pd.read_parquet(self.folder / PER_QUERY)

    @cached_property
    def by_split(self) -> dict[str, pd.DataFrame]:
        """The rows of :attr:`per_query` by split, which reports need for each metric and claim."""
        return {str(split): rows for split, rows in self.per_query.groupby("split", sort=False)}

    @cached_property
    def history(self) -> pd.DataFrame:
        """One row per trial, candidate and epoch (or tree)."""
        return pd.read_csv(self.folder / HISTORY)

    @cached_property
    def fits(self) -> pd.DataFrame:
        """One row per trial and candidate of the tuning grid."""
        return pd.read_csv(self.folder / FITS)


def load_run(folder: str | Path) -> RunResult:
    """The results in ``folder``; raises :class:`DataError` if the run is not complete."""
    folder = Path(folder)
    for name in FILES:
        if not (folder / name).is_file():
            raise DataError(
                "this result file is missing", "train the run again", file=folder / name
            )
    return RunResult(folder)


def write_run(
    folder: str | Path,
    per_query: pd.DataFrame,
    history: pd.DataFrame,
    fits: pd.DataFrame,
    record: dict[str, Any],
) -> None:
    """Write a run's result files atomically; the record comes last and marks them as complete."""
    folder = Path(folder)
    with atomic_path(folder / PER_QUERY) as temporary:
        per_query.to_parquet(temporary, index=False, compression="zstd")
    write_csv(folder / HISTORY, history)
    write_csv(folder / FITS, fits)
    write_json(folder / RECORD, record)
