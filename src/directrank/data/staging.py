"""Copy prepared data to a node's own disk once, verify it, and share it among the node's jobs."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from directrank.data import normalised, prepared
from directrank.system import locks
from directrank.system.errors import DataError


def stage_data(
    data: str | Path,
    stage: str | Path,
    spec: Mapping[str, Any],
    note: Callable[[str], None] = lambda text: print(text, file=sys.stderr, flush=True),
) -> Path:
    """The folder from which a run should read its data: a copy in ``stage``, or ``data`` itself.

    The first job of a node makes the copy while others wait; it appears complete or not at all. The
    run's scaled copy (:mod:`directrank.data.normalised`) is made beside it at once, so that a full
    disk is noticed here. If the disk is full or cannot be written, the run reads ``data``, so
    staging never makes a run fail.

    Args:
        data: a prepared data set's folder (of all folds).
        stage: a folder on the node's disk, created if need be.
        spec: the run's specification.
        note: a function that is called with the reason if data are not staged.

    Raises:
        ConfigError: the settings of the run are not valid.
        DataError: ``data`` is not a prepared data set.
    """
    data, stage = Path(data), Path(stage)
    record = prepared.read_record(data)
    folder = stage / f"{data.name}-{record['digest'][:16]}"
    try:
        with locks.locked(stage / f".{folder.name}.lock"):
            if not _is_whole(folder):
                _copy(data, folder, record)
        normalised.open_splits(folder, spec["fold"], spec["filter"], spec["normalisation"])
    except (OSError, DataError) as error:
        note(f"data are read from {data} and not staged: {error}")
        return data
    return folder


def _is_whole(folder: Path) -> bool:
    try:
        prepared.verify(folder)
    except DataError:
        return False
    return True


def _copy(data: Path, folder: Path, record: Mapping[str, Any]) -> None:
    """Copy the files of a prepared data set, without its scaled copies."""
    splits = [f"{split}/{prepared.SPLIT_FILE}" for split in record["splits"]]
    with prepared.replacing(folder) as temporary:
        for name in (*prepared.FILES, *splits):
            (temporary / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(data / name, temporary / name)
        if not _is_whole(temporary):
            raise OSError(f"the copy in {folder.parent} differs from the original")
