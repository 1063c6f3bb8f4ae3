"""The stored form of a data set: arrays written once, of which every split is a view.

A prepared data set is a folder::

    prepared.json               counts, digests, origin; written last features.csv
    range of every feature store/features.npy          float32 [N, F] store/labels.npy
    float32 [N] store/offsets.npy           int64 [Q + 1] store/query_ids.npy         int64 [Q]
    store/groups.npy            int64 [Q], queries that are not independent; their own ids otherwise
    Fold1/train/split.json      the store and the range of queries that is this split

or ``train/split.json`` if there are no folds. A split is a contiguous range of the store, so it
opens as slices of memory-mapped arrays, whatever its size. Five-fold data sets are five disjoint
parts S1 … S5; fold k trains on S_k, S_k+1, S_k+2, validates on the next and tests on the one after,
cyclically. Stored as S1 S2 S3 S4 S5 S1 S2, all fifteen splits are contiguous. This takes seven
parts on disk, two more than the minimum, while copies of all folds would take 25.
"""

from __future__ import annotations

import contextlib
import csv
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from directrank.lists.packed import RankedLists
from directrank.system import io, locks
from directrank.system.errors import DataError

FORMAT = 2
SPLITS = ("train", "vali", "test")
#: Rows that are copied or read together.
ROWS = 1 << 14

_RECORD = "prepared.json"
_STORE = "store"
_RANGES = "features.csv"
#: In the folder of each split.
SPLIT_FILE = "split.json"
#: The files of every prepared data set, the record first, without those of its splits.
FILES = (
    _RECORD,
    *(f"{_STORE}/{name}.npy" for name in ("features", "labels", "offsets", "query_ids", "groups")),
    _RANGES,
)
#: The folder of copies with scaled features; see :mod:`directrank.data.normalised`.
COPIES = "normalised"


def open_dataset(folder: str | Path, through: str | Path | None = None) -> RankedLists:
    """Open one split of a prepared data set; the arrays are memory-mapped and read-only.

    >>> from tempfile import TemporaryDirectory
    >>> from directrank.data import standins
    >>> splits = standins.generate("mq2007_standin", {"queries": {"train": 3}})
    >>> about = {"name": "mine", "origin": "standin", "label_levels": 3}
    >>> with TemporaryDirectory() as folder:
    ...     _ = write_prepared(f"{folder}/mine", splits, about)
    ...     lists = open_dataset(f"{folder}/mine/train")
    >>> lists.n_queries, lists.n_features, type(lists.features).__name__
    (3, 46, 'memmap')

    Args:
        folder: the split's folder, such as ``prepared/ohsumed/Fold1/train``.
        through: the folder of the split that is stored directly after it; both are opened as one.

    Raises:
        DataError: it is not a split of a prepared data set, the store is damaged, or the two splits
            are not adjacent.
    """
    folder = Path(folder)
    first, last = split_range(folder)
    if through is not None:
        begin, end = split_range(through)
        if begin != last:
            raise DataError(
                "is not stored directly before the other split, so the two cannot be opened as one",
                "train only on the training split",
                file=folder,
            )
        last = end
    return _of_store(folder / io.read_json(folder / SPLIT_FILE)["store"], first, last)


def open_store(folder: str | Path) -> RankedLists:
    """The whole store of the prepared data set in ``folder``, with repeated parts, memory-mapped.

    Raises:
        DataError: the store is damaged.
    """
    return _of_store(Path(folder) / _STORE)


def split_range(folder: str | Path) -> tuple[int, int]:
    """The range of the store's queries that the split in ``folder`` covers.

    Raises:
        DataError: it is not a split of a prepared data set.
    """
    try:
        first, last = io.read_json(Path(folder) / SPLIT_FILE)["queries"]
    except OSError:
        raise _no_split(Path(folder)) from None
    return first, last


def _of_store(store: Path, first: int = 0, last: int | None = None) -> RankedLists:
    """The queries ``first:last`` of a store; ``last`` None is its end."""
    try:
        features, labels, offsets, query_ids, groups = (
            np.load(store / f"{name}.npy", mmap_mode="r")
            for name in ("features", "labels", "offsets", "query_ids", "groups")
        )
    except (OSError, ValueError, EOFError) as error:
        raise DataError(f"the store is damaged: {error}", _AGAIN, file=store) from None
    last = len(offsets) - 1 if last is None else last
    offsets = np.asarray(offsets[first : last + 1])
    rows = slice(int(offsets[0]), int(offsets[-1]))
    queries = min(len(query_ids), len(groups))
    if len(features) < rows.stop or len(labels) < rows.stop or queries < last:
        raise DataError("the store's arrays are shorter than the split", _AGAIN, file=store)
    return RankedLists(
        features[rows],
        labels[rows],
        offsets - rows.start,
        query_ids[first:last],
        groups[first:last],
    )


def read_record(folder: str | Path) -> dict[str, Any]:
    """``prepared.json`` of the data set in ``folder`` (not of one of its splits)."""
    path = Path(folder) / _RECORD
    try:
        record = io.read_json(path)
    except (OSError, ValueError):
        raise DataError("is not a prepared data set", _AGAIN, file=folder) from None
    if record.get("format") != FORMAT:
        raise DataError("was prepared by another version of this program", _AGAIN, file=folder)
    return record


def verify(folder: str | Path, arrays: bool = True) -> None:
    """Compare the stored files with the recorded digests.

    The record of a damaged data set is removed, because its content is of no use, and a restarted
    workflow then prepares it again.

    Args:
        folder: the folder of the data set.
        arrays: whether to read the arrays, too, and not only the record and the splits.

    Raises:
        DataError: it is not a prepared data set, or it is damaged; the message names the file.
    """
    folder = Path(folder)
    damaged = _damaged(folder, arrays)
    if damaged is not None:
        with contextlib.suppress(OSError):
            (folder / _RECORD).unlink(missing_ok=True)
        raise DataError(
            "is damaged: it does not match its digest",
            "start again, and the workflow will prepare the data set (by hand: directrank prepare)",
            file=damaged,
        )


def _damaged(folder: Path, read_arrays: bool) -> Path | None:
    """The first file of a data set that does not match the record, if there is one."""
    if not (folder / _RECORD).is_file():
        read_record(folder)  # raises if it is not
    try:
        record = io.read_json(folder / _RECORD)
        arrays, names, digest = record["arrays"], list(record["splits"]), record["digest"]
    except (ValueError, KeyError, TypeError):
        return folder / _RECORD
    for name, expected in arrays.items() if read_arrays else ():
        path = folder / _STORE / name
        if not path.is_file() or io.sha256_of(path) != expected:
            return path
    ranges = {}
    # A job on another machine may have received only the splits of its fold.
    for name in filter(lambda name: (folder / name / SPLIT_FILE).is_file(), names):
        try:
            ranges[name] = list(split_range(folder / name))
        except (ValueError, KeyError, TypeError):
            return folder / name / SPLIT_FILE
    if len(ranges) == len(names) and io.digest_of({"arrays": arrays, "splits": ranges}) != digest:
        return folder / _RECORD
    return None


def split_folder(folder: str | Path, fold: int | None, split: str) -> Path:
    """The folder of a split of the data set in ``folder``; ``fold`` is None if it has no folds."""
    return Path(folder) / split_name(fold, split)


def split_name(fold: int | None, split: str) -> str:
    """The name of a split.

    >>> split_name(None, "train"), split_name(1, "train")
    ('train', 'Fold1/train')
    """
    return split if fold is None else f"Fold{fold}/{split}"


def ring_split(fold: int, split: str, parts: int = 5) -> tuple[int, ...]:
    """The parts, counted from 1, of a split of fold ``fold`` of a cyclic data set.

    LETOR's rule: fold k trains on parts k … k+n-3, validates on the next, tests on the one after.

    >>> [ring_split(4, split) for split in SPLITS]
    [(4, 5, 1), (2,), (3,)]
    """
    order = [(fold - 1 + step) % parts + 1 for step in range(parts)]
    return tuple({"train": order[:-2], "vali": order[-2:-1], "test": order[-1:]}[split])


def ring_order(parts: int = 5) -> list[str]:
    """The order of the parts in the store, in which every split of every fold is one range."""
    names = [f"S{part}" for part in range(1, parts + 1)]
    return names + names[: parts - 3]


def ring_splits(parts: int = 5) -> dict[str, tuple[int, int]]:
    """Every split of every fold as a range of positions in :func:`ring_order`."""
    width = {"train": parts - 2, "vali": 1, "test": 1}
    splits = {}
    for fold in range(1, parts + 1):
        for split in SPLITS:
            start = ring_split(fold, split, parts)[0] - 1
            splits[split_name(fold, split)] = (start, start + width[split])
    return splits


def write_prepared(
    out: str | Path,
    splits: Mapping[str, RankedLists],
    meta: Mapping[str, Any],
    folds: int | None = None,
) -> dict[str, Any]:
    """Write lists in memory as a prepared data set.

    Args:
        out: the folder; an existing prepared data set is replaced, anything else refused.
        splits: the lists of ``train``, ``vali`` and ``test``, or, if there are folds, of the parts
            ``S1``, ``S2``, … in cyclic order.
        meta: the content of ``prepared.json`` beside the statistics; ``name``, ``origin``
            (``real``, ``standin`` or ``generated``) and ``label_levels`` are required.
        folds: the number of folds, if any.

    Returns:
        The content of ``prepared.json``.

    Raises:
        DataError: ``out`` contains something else, or the lists contradict ``meta`` or each other.
    """
    with replacing(out) as folder:
        with Store(folder / _STORE, next(iter(splits.values())).n_features) as store:
            if folds is None:
                for name, lists in splits.items():
                    store.write_part(name, [lists])
                ranges = dict(store.parts)
            else:
                ranges = write_ring(
                    store, folds, lambda name: store.write_part(name, [splits[name]])
                )
        return finish(folder, store, ranges, meta)


def write_ring(
    store: Store, folds: int, write: Callable[[str], None]
) -> dict[str, tuple[int, int]]:
    """Write the parts of a cyclic data set in the order of :func:`ring_order`.

    Args:
        store: still open.
        folds: the number of folds, which is that of parts.
        write: writes the part of this name; called once for each.

    Returns:
        Every split of every fold, and its range of queries in the store.
    """
    for name in ring_order(folds):
        if name in store.parts:
            store.repeat(name)
        else:
            write(name)
    return {
        name: (store.bounds[first], store.bounds[last])
        for name, (first, last) in ring_splits(folds).items()
    }


@contextlib.contextmanager
def replacing(out: str | Path) -> Iterator[Path]:
    """A temporary folder that becomes ``out`` on success.

    Folders that killed processes left, whose locks are free, are removed. A folder that is neither
    empty nor a prepared data set is never replaced.
    """
    out = Path(out)
    if out.exists() and not _may_be_replaced(out):
        raise DataError(
            "exists but is not a prepared data set", "name another folder with --out", file=out
        )
    out.parent.mkdir(parents=True, exist_ok=True)
    for pattern in (f".{out.name}.*.part", f".{out.name}.*.old"):
        for stale in out.parent.glob(pattern):
            _remove_unless_locked(stale)
    with io.atomic_folder(out) as folder:
        lock = os.open(folder, os.O_RDONLY)
        try:
            locks.lock(lock)
            yield folder
        finally:
            os.close(lock)


def _may_be_replaced(out: Path) -> bool:
    """Whether ``out`` is an empty folder or a prepared data set, perhaps without its record.

    A workflow deletes its outputs, which are all files except copies, before it makes them again.
    """
    if not out.is_dir():
        return False
    names = {path.name for path in out.iterdir()}
    written = {_STORE, _RANGES, COPIES, *SPLITS}
    ours = all(name in written or re.fullmatch(r"Fold\d+", name) for name in names)
    return not names or _RECORD in names or (ours and _is_hollow_or_stored(out))


def _is_hollow_or_stored(out: Path) -> bool:
    """Whether only arrays of a data set are left, or its folders without files except copies."""
    if any((out / _STORE).glob("*.npy")):
        return True
    others = (path for path in out.rglob("*") if path.relative_to(out).parts[0] != COPIES)
    return (out / _STORE).is_dir() and all(path.is_dir() for path in others)


def _remove_unless_locked(folder: Path) -> None:
    try:
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return
    try:
        if locks.lock(lock, wait=False):
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(lock)


class Store:
    """Writes the arrays of a data set, part by part; as a context it closes the files.

    Attributes:
        parts: the range of queries of each part, by name (the first one, if it is repeated).
        bounds: the positions in the store's queries at which the parts begin, and the end.
        highest_label: the highest label of the documents written so far.
    """

    def __init__(self, folder: Path, n_features: int) -> None:
        # Imported here, because opening prepared data must not wait for numba.
        from directrank.data.ranges import gather_ranges

        self._gather_ranges = gather_ranges
        folder.mkdir(parents=True)
        self.folder = folder
        self.n_features = n_features
        self.minimum = np.full(n_features, np.inf, np.float32)
        self.maximum = np.full(n_features, -np.inf, np.float32)
        self.non_zero = np.zeros(n_features, np.int64)
        self.highest_label = -np.inf
        self.parts: dict[str, tuple[int, int]] = {}
        self.bounds = [0]
        self._features = _NpyWriter(folder / "features.npy", np.dtype("<f4"), (n_features,))
        self._labels = _NpyWriter(folder / "labels.npy", np.dtype("<f4"), ())
        self._offsets: list[np.ndarray] = [np.zeros(1, np.int64)]
        self._query_ids: list[np.ndarray] = []
        self._groups: list[np.ndarray] = []
        self._part_start = 0

    def __enter__(self) -> Store:
        return self

    def __exit__(self, kind: type | None, *_: object) -> None:
        if kind is None:
            self.flush()
            np.save(self.folder / "offsets.npy", np.concatenate(self._offsets))
            np.save(self.folder / "query_ids.npy", np.concatenate(self._query_ids))
            np.save(self.folder / "groups.npy", np.concatenate(self._groups))
        self._features.close()
        self._labels.close()

    @property
    def n_documents(self) -> int:
        """The number of documents written so far, including repetitions."""
        return self._labels.rows

    @property
    def n_distinct(self) -> int:
        """The number of queries without repetitions; repeated parts come last."""
        return max((last for _, last in self.parts.values()), default=0)

    def append(self, features: np.ndarray, labels: np.ndarray) -> None:
        """Add documents, ``[n, F]`` and ``[n]``, to the part that is being written."""
        if not len(labels):
            return
        self._gather_ranges(features, self.minimum, self.maximum, self.non_zero)
        self.highest_label = max(self.highest_label, labels.max())
        self._features.append(features)
        self._labels.append(labels)

    def end_part(
        self,
        name: str,
        offsets: np.ndarray,
        query_ids: np.ndarray,
        groups: np.ndarray | None = None,
        *,
        order: np.ndarray | None = None,
    ) -> None:
        """End the part ``name``.

        Args:
            name: the name of the part.
            offsets: int64 ``[Q + 1]``, counted from the part's first document.
            query_ids: int64 ``[Q]``.
            groups: int64 ``[Q]``; None if each query is its own group.
            order: a permutation, int64 ``[n]``, of the part's documents.
        """
        start = self._part_start
        self._part_start = self.n_documents
        if order is not None:
            self.flush()
            for writer in (self._features, self._labels):
                writer.permute(start, order)
        self._offsets.append(np.asarray(offsets[1:], np.int64) + start)
        self._query_ids.append(np.asarray(query_ids, np.int64))
        self._groups.append(np.asarray(query_ids if groups is None else groups, np.int64))
        self.bounds.append(self.bounds[-1] + len(query_ids))
        self.parts.setdefault(name, (self.bounds[-2], self.bounds[-1]))

    def write_part(self, name: str, chunks: Iterable[RankedLists]) -> None:
        """Write the part ``name`` from a sequence of lists, which are not kept.

        Raises:
            DataError: there is no list, or the lists differ in their number of features.
        """
        lengths, query_ids, groups = [np.zeros(1, np.int64)], [], []
        for lists in chunks:
            if lists.n_features != self.n_features:
                raise DataError(
                    f"splits differ in their number of features: {self.n_features} and, in "
                    f"'{name}', {lists.n_features}",
                    "give every document the same features",
                    file=self.folder,
                )
            for start in range(0, lists.n_documents, ROWS):
                self.append(
                    lists.features[start : start + ROWS], lists.labels[start : start + ROWS]
                )
            lengths.append(lists.lengths)
            query_ids.append(lists.query_ids)
            groups.append(lists.query_ids if lists.groups is None else lists.groups)
        if not query_ids:
            raise DataError("contains no query", "check the input and the filters", file=name)
        self.end_part(
            name,
            np.cumsum(np.concatenate(lengths)),
            np.concatenate(query_ids),
            np.concatenate(groups),
        )

    def part(self, name: str) -> RankedLists:
        """A finished part, memory-mapped."""
        first, last = self.parts[name]
        return self.queries(first, last)

    def queries(self, first: int, last: int) -> RankedLists:
        """The queries ``first:last`` of the finished parts, memory-mapped."""
        self.flush()
        offsets = np.concatenate(self._offsets)[first : last + 1]
        rows = slice(int(offsets[0]), int(offsets[-1]))
        return RankedLists(
            self._features.view()[rows],
            self._labels.view()[rows],
            offsets - rows.start,
            np.concatenate(self._query_ids)[first:last],
            np.concatenate(self._groups)[first:last],
        )

    def repeat(self, name: str) -> None:
        """Write the part ``name`` again."""
        lists = self.part(name)
        for start in range(0, lists.n_documents, ROWS):
            self._features.append(lists.features[start : start + ROWS])
            self._labels.append(lists.labels[start : start + ROWS])
        self.end_part(name, lists.offsets, lists.query_ids, lists.groups)

    def keep_columns(self, columns: np.ndarray) -> None:
        """Rewrite the features with only the columns ``columns`` (int ``[G]``)."""
        self.flush()
        source = self._features
        target = _NpyWriter(self.folder / "kept.npy", np.dtype("<f4"), (len(columns),))
        view = source.view()
        for start in range(0, len(view), ROWS):
            target.append(view[start : start + ROWS][:, columns])
        target.flush()
        source.close()
        os.replace(target.path, source.path)
        target.path = source.path
        self._features = target
        self.n_features = len(columns)
        self.minimum, self.maximum = self.minimum[columns], self.maximum[columns]
        self.non_zero = self.non_zero[columns]

    def flush(self) -> None:
        """Write the headers of the files."""
        self._features.flush()
        self._labels.flush()


def finish(
    folder: Path, store: Store, splits: Mapping[str, tuple[int, int]], meta: Mapping[str, Any]
) -> dict[str, Any]:
    """Write the splits, the statistics and, last, ``prepared.json``.

    Args:
        folder: the data set's folder, which contains the closed ``store``.
        store: the arrays.
        splits: for each split its range of queries in the store.
        meta: see :func:`write_prepared`.

    Returns:
        The content of ``prepared.json``.

    Raises:
        DataError: a label is not one of 0 … ``label_levels - 1``, or a split is empty.
    """
    labels = np.load(store.folder / "labels.npy", mmap_mode="r")
    offsets = np.load(store.folder / "offsets.npy")
    levels = int(meta["label_levels"])
    statistics, ranges = {}, {}
    for name, (first, last) in splits.items():
        ranges[name] = [first, last]
        statistics[name] = describe(labels, offsets[first : last + 1], levels, name)
        up = "/".join([".."] * (name.count("/") + 1))
        io.write_json(
            folder / name / SPLIT_FILE,
            {"store": f"{up}/{store.folder.name}", "queries": ranges[name]},
        )
    _write_ranges(folder / _RANGES, store, meta.get("feature_numbers"))
    arrays = {path.name: io.sha256_of(path) for path in sorted(store.folder.glob("*.npy"))}
    record = {
        "format": FORMAT,
        **meta,
        "n_features": store.n_features,
        "splits": statistics,
        "total": describe(labels, offsets[: store.n_distinct + 1], levels, "the data set"),
        "arrays": arrays,
        "digest": io.digest_of({"arrays": arrays, "splits": ranges}),
    }
    io.write_json(folder / _RECORD, record)
    return record


def describe(
    labels: np.ndarray, offsets: np.ndarray, label_levels: int, where: str
) -> dict[str, Any]:
    """Counts of a split.

    Args:
        labels: float32 ``[N]`` of the whole store.
        offsets: int64 ``[Q + 1]`` of the split, into ``labels``.
        label_levels: labels are 0 … ``label_levels - 1``.
        where: the name for errors.

    Returns:
        ``queries``, ``documents``, ``empty_queries`` (without a relevant document), ``labels``
        (documents per label), ``list_length`` (shortest, median, mean, longest).
    """
    if len(offsets) < 2:
        raise DataError("contains no query", "check the input and the filters", file=where)
    labels = np.asarray(labels[offsets[0] : offsets[-1]])
    lengths = np.diff(offsets)
    if lengths.min() < 1:
        raise DataError("a query has no document", "remove such queries", file=where)
    whole = labels.astype(np.int64)
    if not (np.array_equal(whole, labels) and whole.min() >= 0 and whole.max() < label_levels):
        strange = labels[(whole != labels) | (labels < 0) | (labels >= label_levels)][0]
        raise DataError(
            f"label {strange:g} is not one of 0 … {label_levels - 1}",
            "correct the data or 'label_levels'",
            file=where,
        )
    relevant = np.maximum.reduceat(whole, offsets[:-1] - offsets[0]) > 0
    return {
        "queries": len(lengths),
        "documents": len(labels),
        "empty_queries": int(np.count_nonzero(~relevant)),
        "labels": np.bincount(whole, minlength=label_levels).tolist(),
        "list_length": {
            "shortest": int(lengths.min()),
            "median": float(np.median(lengths)),
            "mean": float(lengths.mean()),
            "longest": int(lengths.max()),
        },
    }


def _write_ranges(path: Path, store: Store, numbers: Sequence[int] | None) -> None:
    with open(path, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["feature", "minimum", "maximum", "non_zero"])
        for column in range(store.n_features):
            writer.writerow(
                [
                    column + 1 if numbers is None else numbers[column],
                    f"{store.minimum[column]:.9g}",
                    f"{store.maximum[column]:.9g}",
                    store.non_zero[column],
                ]
            )


class _NpyWriter:
    """A ``.npy`` file that grows; its header's length does not depend on the number of rows."""

    HEADER = 128

    def __init__(self, path: Path, dtype: np.dtype, row: tuple[int, ...]) -> None:
        self.path = path
        self.dtype = dtype
        self.row = row
        self.rows = 0
        self._file = open(path, "wb+", buffering=0)  # noqa: SIM115 closed by close()
        self.flush()

    def append(self, values: np.ndarray) -> None:
        block = np.ascontiguousarray(values, self.dtype)
        view = block.data.cast("B")
        while len(view):
            view = view[self._file.write(view) :]
        self.rows += len(block)

    def flush(self) -> None:
        """Write the header for the present number of rows."""
        header = repr(
            {"descr": self.dtype.str, "fortran_order": False, "shape": (self.rows, *self.row)}
        )
        text = header.ljust(self.HEADER - 11) + "\n"
        self._file.seek(0)
        self._file.write(b"\x93NUMPY\x01\x00" + (self.HEADER - 10).to_bytes(2, "little"))
        self._file.write(text.encode("latin-1"))
        self._file.seek(0, os.SEEK_END)

    def view(self) -> np.ndarray:
        return np.load(self.path, mmap_mode="r")

    def permute(self, start: int, order: np.ndarray) -> None:
        """Put the rows from ``start`` on in the order ``order``."""
        target = np.load(self.path, mmap_mode="r+")[start:]
        copy = self.path.with_suffix(".copy")
        target.tofile(copy)
        source = np.memmap(copy, self.dtype, "r", shape=target.shape)
        for first in range(0, len(order), ROWS):
            target[first : first + ROWS] = source[order[first : first + ROWS]]
        target.flush()
        copy.unlink()

    def close(self) -> None:
        self.flush()
        self._file.close()


_AGAIN = "prepare the data set again: directrank prepare NAME --raw DIR --out DIR"


def _no_split(folder: Path) -> DataError:
    if (folder / _RECORD).is_file():
        names: Sequence[str] = list(read_record(folder)["splits"])
        shown = ", ".join(names[:3]) + (" …" if len(names) > 3 else "")
        return DataError("is a whole data set", f"open one of its splits: {shown}", file=folder)
    if not folder.is_dir():
        return DataError("the folder does not exist", _AGAIN, file=folder)
    return DataError("is not a split of a prepared data set", _AGAIN, file=folder)
