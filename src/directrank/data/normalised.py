"""The splits that a run reads, filtered and scaled once, stored and memory-mapped.

A copy is itself a prepared data set, in ``normalised/<key>`` of the original. Its key is a digest
of everything that decides its content, so runs with the same data, filter and normalisation share
it, and it cannot be confused with another copy. Normalisations within each query are the same in
every fold, so one copy of the whole store serves all folds. Those with statistics of a training
split have a copy for each fold.

The first run that needs a copy makes it, block by block, while others that need it wait for a lock,
which ends with its process. The copy appears complete or not at all.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from directrank.data import filters, normalise, prepared
from directrank.data.filters import Selection
from directrank.data.prepared import SPLITS, Store
from directrank.lists import packed as lists
from directrank.lists.packed import RankedLists
from directrank.system import io, locks, sources
from directrank.system.errors import DataError

#: The keys that a copy takes over from the record of the original data set.
_TAKEN = ("name", "title", "origin", "standin", "label_levels", "folds", "feature_numbers")


@dataclass(frozen=True)
class Copy:
    """A stored copy: its folder, the size of all its files, and the settings that made it."""

    folder: Path
    bytes: int
    made_from: Mapping[str, Any]


def open_splits(
    data: str | Path,
    fold: int | None,
    filter_settings: Mapping[str, Any],
    normalisation: Mapping[str, Any],
    train_on: str = "train",
) -> dict[str, RankedLists]:
    """The training, validation and test split of a run, memory-mapped.

    Args:
        data: the prepared data set's folder (of all folds).
        fold: counted from 1; None if there are no folds.
        filter_settings: settings of :func:`directrank.data.filters.is_kept`.
        normalisation: settings of :func:`directrank.data.normalise.fit`; its statistics are those
            of the training split only.
        train_on: ``train``, or ``train_and_vali``, which adds the queries of the validation split
            to the training split.

    Returns:
        The splits by name. They are the prepared ones if nothing is filtered or scaled, and
        otherwise those of a copy, which is made now if it is missing or damaged.

    Raises:
        ConfigError: a setting is not valid.
        DataError: a split does not exist or has no query left, or the data set is damaged.
    """
    data = Path(data)
    filters.check(filter_settings)
    normalise.check(normalisation)
    prepared.verify(data, arrays=False)
    record = prepared.read_record(data)
    for split in SPLITS:
        if not prepared.split_folder(data, fold, split).is_dir():
            raise DataError(
                f"the prepared data set has no split '{prepared.split_name(fold, split)}'",
                "check the run's 'fold', or prepare the data set again",
                file=data,
            )
    limits = {**filters.DEFAULTS, **filter_settings}
    if limits == filters.DEFAULTS and dict(normalisation) == {"name": "none"}:
        prepared.verify(data)
        return _opened(data, fold, train_on)
    described = {
        "data": record["digest"],
        "fold": None if normalise.is_local(normalisation) else fold,
        "filter": limits,
        "normalisation": dict(normalisation),
        **_arithmetic(),
    }
    made_from = json.loads(io.json_text(described))  # in the form in which it will be read
    folder = data / prepared.COPIES / io.digest_of(made_from)[:16]
    with contextlib.suppress(DataError):
        return _opened_copy(folder, made_from, fold, train_on)
    with locks.locked(folder.with_name(f".{folder.name}.lock")):
        # Another job may have made it in the meantime.
        with contextlib.suppress(DataError):
            return _opened_copy(folder, made_from, fold, train_on)
        prepared.verify(data)
        _write(folder, data, record, made_from, fold)
    return _opened_copy(folder, made_from, fold, train_on)


def copies(data: str | Path) -> list[Copy]:
    """The stored copies of a prepared data set."""
    result = []
    for path in sorted((Path(data) / prepared.COPIES).glob("*/prepared.json")):
        folder = path.parent
        size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
        result.append(Copy(folder, size, prepared.read_record(folder)["made_from"]))
    return result


def remove_copies(data: str | Path) -> None:
    """Remove every stored copy of a prepared data set; the next runs make those that they need."""
    shutil.rmtree(Path(data) / prepared.COPIES, ignore_errors=True)


def _opened(folder: Path, fold: int | None, train_on: str = "train") -> dict[str, RankedLists]:
    train, vali, test = (prepared.split_folder(folder, fold, split) for split in SPLITS)
    return {
        "train": prepared.open_dataset(train, vali if train_on == "train_and_vali" else None),
        "vali": prepared.open_dataset(vali),
        "test": prepared.open_dataset(test),
    }


def _opened_copy(
    folder: Path, made_from: Mapping[str, Any], fold: int | None, train_on: str
) -> dict[str, RankedLists]:
    """The splits of a copy; raises :class:`DataError` if it is missing, damaged or another one."""
    record = prepared.read_record(folder)
    if record.get("made_from") != made_from:
        raise DataError("is a different copy", "remove it", file=folder)
    prepared.verify(folder)
    return _opened(folder, fold, train_on)


def _arithmetic() -> dict[str, str]:
    """What decides the last digits: the code, NumPy, and the instructions that NumPy may use."""
    modules = (filters, lists, normalise)
    code = b"\0".join(sources.text_of(module.__name__) for module in modules)
    return {
        "code": hashlib.sha256(code).hexdigest()[:16],
        "numpy": np.__version__,
        "without": os.environ.get("NPY_DISABLE_CPU_FEATURES", ""),
    }


def _write(
    folder: Path,
    data: Path,
    record: Mapping[str, Any],
    made_from: Mapping[str, Any],
    fold: int | None,
) -> None:
    """Make a copy of the whole store if the scaling is local, else of one fold's splits."""
    local = normalise.is_local(made_from["normalisation"])
    with prepared.replacing(folder) as target:
        with Store(target / "store", record["n_features"]) as store:
            make = _write_store if local else _write_fold
            ranges = make(store, data, record, made_from, fold)
        meta = {key: record[key] for key in _TAKEN if key in record}
        meta["made_from"] = dict(made_from)
        if not local and fold is not None:
            meta["folds"] = [fold]
        prepared.finish(target, store, ranges, meta)


def _write_store(
    store: Store,
    data: Path,
    record: Mapping[str, Any],
    made_from: Mapping[str, Any],
    fold: int | None,
) -> dict[str, tuple[int, int]]:
    """Write every query of the store that is kept, including repeated parts; return the splits'
    ranges.

    Splits of other folds may be empty, but not those of this one.
    """
    everything, ranges = prepared.open_store(data), {}
    keep = filters.is_kept(everything, **made_from["filter"])
    before = np.concatenate([[0], np.cumsum(keep)])
    for name in record["splits"]:
        first, last = (int(before[query]) for query in prepared.split_range(data / name))
        if first < last:
            ranges[name] = (first, last)
    for name in (prepared.split_name(fold, split) for split in SPLITS):
        if name not in ranges:
            raise filters.nothing_left(f"split '{name}'", **made_from["filter"])
    transform = normalise.fit(made_from["normalisation"], {})
    # They have one name, so that queries repeated for later folds are counted once.
    distinct = np.arange(len(keep)) < record["total"]["queries"]
    for part in (keep & distinct, keep & ~distinct):
        if part.any():
            selection = Selection(everything, np.flatnonzero(part))
            store.write_part("all", normalise.scaled(selection, transform))
    return ranges


def _write_fold(
    store: Store,
    data: Path,
    record: Mapping[str, Any],
    made_from: Mapping[str, Any],
    fold: int | None,
) -> dict[str, tuple[int, int]]:
    """Write one fold's splits, scaled by statistics of its training split; return their ranges."""
    splits = {}
    for split, opened in _opened(data, fold).items():
        name = prepared.split_name(fold, split)
        splits[split] = filters.select(opened, **made_from["filter"], where=f"split '{name}'")
    transform = normalise.fit(made_from["normalisation"], splits)
    for split, selection in splits.items():
        name = prepared.split_name(fold, split)
        store.write_part(name, normalise.scaled(selection, transform))
    return store.parts
