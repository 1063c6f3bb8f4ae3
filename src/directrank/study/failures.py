"""Runs that could not be trained: what is recorded of them in the place of results."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from directrank.data.prepared import read_record
from directrank.study.provenance import environment, run_digest
from directrank.study.results import MODELS, RunResult, load_run, write_run
from directrank.study.specification import run_name
from directrank.system.errors import DirectrankError, TrainingError

#: The key of a run's record that says why it could not be trained.
FAILED = "failed"


def load_trained(folder: str | Path) -> RunResult:
    """The results in ``folder``; raises :class:`TrainingError` if the run failed."""
    run = load_run(folder)
    if FAILED in run.record:
        raise TrainingError(f"the run {run.name} failed: {run.record[FAILED]}", "name another run")
    return run


def write_failure(
    out: str | Path, spec: Mapping[str, Any], data: str | Path, error: Exception, seconds: float
) -> None:
    """Write the files of a run that failed: empty tables, and a record with the reason.

    Args:
        out: the run's result folder; its checkpoint is removed.
        spec: the run's specification.
        data: the prepared data set's folder.
        error: why it failed.
        seconds: that it took.
    """
    out = Path(out)
    facts = read_record(data)
    what = error.what if isinstance(error, DirectrankError) else f"{type(error).__name__}: {error}"
    record = {
        "name": run_name(spec),
        "spec": dict(spec),
        "data": {key: facts[key] for key in ("name", "title", "origin", "digest")},
        "code": run_digest(spec),
        "environment": environment(),
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - seconds)),
        "seconds": seconds,
        FAILED: what.splitlines()[0],
    }
    (out / MODELS).mkdir(parents=True, exist_ok=True)
    per_query = pd.DataFrame(columns=["trial", "split", "query_id", "group"])
    history = pd.DataFrame(columns=["trial", "candidate", "epoch", "vali_metric", "seconds"])
    fits = pd.DataFrame(columns=["trial", "candidate", "vali_metric", "selected", "epochs"])
    write_run(out, per_query, history, fits, record)
    shutil.rmtree(out.with_name(out.name + ".checkpoint"), ignore_errors=True)
