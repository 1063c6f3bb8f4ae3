"""A batch: runs that share data and are trained by one process, those that are current excepted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from directrank.study.results import FILES, RECORD
from directrank.system.errors import ConfigError
from directrank.system.io import digest_of, json_text, read_json


@dataclass(frozen=True)
class PlannedRun:
    """A run of a batch.

    Attributes:
        name: its name.
        spec: its specification.
        code: the digest of the code that decides its results; see
            :func:`directrank.study.provenance.run_digest`.
    """

    name: str
    spec: Mapping[str, Any]
    code: str

    def digest(self, data: str) -> str:
        """A digest of everything that decides its results; ``data`` is that of its data set."""
        return digest_of([self.spec, self.code, data])

    def is_current(self, folder: str | Path, data: str | None = None) -> bool:
        """Whether the results in ``folder`` are complete and have this :meth:`digest`.

        If ``data`` is None, results on any state of the data count.
        """
        folder = Path(folder)
        if not all((folder / name).is_file() for name in FILES):
            return False
        try:
            record = read_json(folder / RECORD)
            found = PlannedRun(self.name, record["spec"], record["code"])
            on = record["data"]["digest"]
            return found.digest(on) == self.digest(data or on)
        except (KeyError, TypeError, ValueError):  # of an older version, or damaged
            return False


def plan_text(runs: Iterable[PlannedRun]) -> str:
    """A batch as JSON, which :func:`read_plan` reads."""
    return json_text([{"run": run.name, "spec": run.spec, "code": run.code} for run in runs])


def read_plan(path: str | Path) -> list[PlannedRun]:
    """The runs of a batch; raises :class:`ConfigError` if the file is no batch."""
    try:
        rows = read_json(path)
        return [PlannedRun(row["run"], row["spec"], row["code"]) for row in rows]
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigError(f"{path} is not a batch ({error})", "start the workflow again") from error
