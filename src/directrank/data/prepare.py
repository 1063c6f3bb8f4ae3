"""Prepare a data set from an archive or a generator, and check everything."""

from __future__ import annotations

import contextlib
import hashlib
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from io import RawIOBase
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from directrank.data import catalog, filters, prepared
from directrank.data.archives import Archive, open_archive
from directrank.data.catalog import Entry
from directrank.data.deal import deal
from directrank.data.digests import hash_like, kind_of
from directrank.data.prepared import SPLITS, Store, ring_split, split_name
from directrank.data.svmlight import Block, Quarantine, QueryIndex, TextFormat, parse
from directrank.lists.packed import RankedLists
from directrank.system import io
from directrank.system.errors import ConfigError, DataError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

Note = Callable[[str], None]
_PARQUET = ".parquet"
#: Queries that are copied together.
_QUERIES = 1000
#: Split by name → its range of queries in the store.
Ranges = dict[str, tuple[int, int]]


def prepare(
    name: str,
    raw: str | Path,
    out: str | Path,
    fold: int | None = None,
    *,
    settings: Mapping[str, Any] | None = None,
    catalogue: str | Path | None = None,
    quarantine: str | Path | None = None,
    threads: int = 2,
    note: Note = lambda text: None,
) -> dict[str, Any]:
    """Prepare a data set.

    Args:
        name: the name of a catalogue entry or of a stand-in.
        raw: the folder of archives.
        out: the folder of the prepared data set; an earlier one is replaced.
        fold: prepare only this fold, beside those of the same data set that ``out`` already
            contains; None prepares all. All folds together share their stored parts, single ones do
            not.
        settings: settings of a generated data set; see its generator.
        catalogue: a file to use instead of ``data/datasets.yaml``.
        quarantine: malformed lines are written to this file and counted, instead of raising an
            error.
        threads: the number of threads that parse.
        note: a function that is called with a short description of each step.

    Returns:
        The content of ``prepared.json``.

    Raises:
        ConfigError: the name, the fold or a setting is not valid.
        DataError: the archive is missing, damaged, hostile or not what the catalogue says, or a
            line is malformed. ``out`` is then unchanged.
    """
    entry = catalog.get(name, catalogue)
    if entry.generator is not None:
        if fold is not None:
            raise ConfigError(f"data set '{name}' has no folds", "leave --fold out")
        return _generate(entry, settings or {}, out, note)
    if settings:
        raise ConfigError(
            f"data set '{name}' takes no settings", "settings are for data that are generated"
        )
    path = catalog.require([entry], raw)[name]
    if entry.extractor is not None:
        return _extract(entry, path, fold, out, note)
    folds = _folds(entry, fold, out)
    note(f"opening {path}")
    reader = _Reader(entry, open_archive(path), threads, note)
    with prepared.replacing(out) as folder, Quarantine(quarantine) as bin_:
        reader.quarantine = bin_
        with Store(folder / "store", entry.features) as store:
            whole = folds is not None and len(folds) == entry.folds
            if entry.one_file is not None:
                ranges = _write_dealt(reader, store)
            elif whole and entry.cyclic:
                ranges = _write_ring(reader, store)
            else:
                ranges = _write_splits(reader, store, folds)
            numbers = _drop_unused(entry, store, note)
        meta = {
            "name": name,
            "title": entry.title,
            "origin": "real",
            "standin": False,
            "label_levels": entry.label_levels,
            "folds": folds,
            "source": reader.record(),
            "text": {"clip": None, **entry.text},
            "quarantined_lines": bin_.count,
            **({} if numbers is None else {"feature_numbers": numbers}),
        }
        note("checking counts")
        record = prepared.finish(folder, store, ranges, meta)
        _check_counts(entry, record, store, whole or folds is None)
    return record


def verify(
    name: str,
    raw: str | Path,
    *,
    catalogue: str | Path | None = None,
    note: Note = lambda text: None,
) -> dict[str, Any]:
    """Read every file of an archive and compare digests, without parsing.

    Returns:
        The archive, and the size and digest of every file.

    Raises:
        DataError: a digest differs from the catalogue's, or the archive is missing or damaged.
    """
    entry = catalog.get(name, catalogue)
    if entry.generator is not None:
        raise ConfigError(f"data set '{name}' is generated and has no archive", "nothing to verify")
    path = catalog.require([entry], raw)[name]
    note(f"opening {path}")
    files = verified_files(entry, open_archive(path), note)
    return {"archive": _archive_record(entry, path), "files": files}


def verified_files(
    entry: Entry, archive: Archive, note: Note = lambda text: None
) -> dict[str, dict[str, Any]]:
    """Path, size and digest of every file of an archive that ``entry`` needs, by its name.

    Raises:
        DataError: a digest differs from the catalogue's, or a file is missing or damaged.
    """
    if entry.extractor is not None:
        return _members(entry, archive)
    reader = _Reader(entry, archive, 1, note)
    for (fold, split), members in reader.members.items():
        for member in members:
            with reader.open(split_name(fold, split), member) as stream:
                while stream.read(1 << 20):
                    pass
    return reader.files


class _Reader:
    """The files of one data set in an archive, hashed while they are read."""

    def __init__(self, entry: Entry, archive: Archive, threads: int, note: Note) -> None:
        self.entry = entry
        self.threads = threads
        self.note = note
        self.quarantine = Quarantine(None)
        self.archive = archive
        self.members = _locate(entry, archive)
        if any(member.endswith(_PARQUET) for member in chain.from_iterable(self.members.values())):
            note("Parquet copies have no known digest: their counts alone are compared")
        self.format = TextFormat(
            entry.features,
            **{key: value for key, value in entry.text.items() if key != "split_queries"},
        )
        self.files: dict[str, dict[str, Any]] = {}
        self.groups: dict[int, int] | None = None

    def where(self, member: str) -> str:
        """The name of a file in messages."""
        return f"{self.archive.path.name}/{member}"

    @contextlib.contextmanager
    def open(self, name: str, member: str) -> Iterator[RawIOBase]:
        """Open a file of the split ``name`` as a stream.

        Its digest is compared once it has been read to its end.
        """
        self.note(f"reading {member}")
        with self.archive.open(member) as raw_stream:
            stream = _Hashing(raw_stream)
            yield stream
        if member.endswith(_PARQUET):
            name = f"{name}/{member.rpartition('/')[2]}"
        digest = stream.digest.hexdigest()
        expected = self.entry.sha256.get(name)
        if expected is not None and digest != expected:
            raise DataError(
                f"differs from the published file: its sha256 is {digest}, expected {expected}",
                f"get the archive again from {self.entry.page}",
                file=self.where(member),
            )
        self.files[name] = {"path": member, "bytes": stream.bytes, "sha256": digest}

    def blocks(self, fold: int | None, split: str) -> Iterator[Block]:
        """The documents of a split's files."""
        for member in self.members[fold, split]:
            where = self.where(member)
            with self.open(split_name(fold, split), member) as stream:
                if member.endswith(_PARQUET):
                    # Here, because pyarrow takes long to load, and few data sets need it.
                    from directrank.data import parquet_lists

                    yield from parquet_lists.parse(
                        stream, self.entry.features, where, self.format.clip
                    )
                    continue
                handler = self.quarantine.handler(where)
                yield from parse(stream, self.format, where, threads=self.threads, on_error=handler)

    def write_part(self, store: Store, name: str, fold: int | None, split: str) -> None:
        """Parse a file into the part ``name`` of the store."""
        merge = self.entry.text.get("split_queries") == "merge"
        queries = QueryIndex(self.where(self.members[fold, split][0]), merge)
        for block in self.blocks(fold, split):
            queries.add(block)
            store.append(block.features, block.labels)
        rows = queries.merged_rows()
        if rows is None:
            offsets, ids = queries.offsets(), queries.query_ids()
        else:
            offsets, ids = queries.merged()
        store.end_part(name, offsets, ids, self._groups_of(ids), order=rows)

    def _groups_of(self, query_ids: np.ndarray) -> np.ndarray | None:
        """The group of every query, int64 ``[Q]``; None if the collection has no groups."""
        if self.entry.groups is None:
            return None
        where = f"{self.archive.path.name}/{self.entry.groups}"
        if self.groups is None:
            with self.archive.open(_member(self.entry.groups, self.archive)) as stream:
                self.groups = read_groups(stream, where)
        missing = [query for query in query_ids.tolist() if query not in self.groups]
        if missing:
            raise DataError(
                f"names no group for {len(missing)} queries, such as {missing[0]}",
                "add a line for every query: its id, a tab, and the number of its group",
                file=where,
            )
        return np.array([self.groups[query] for query in query_ids.tolist()], np.int64)

    def record(self) -> dict[str, Any]:
        """A record of the archive that was used and of every file that was read."""
        return {"archive": _archive_record(self.entry, self.archive.path), "files": self.files}


def read_groups(stream: RawIOBase, where: str) -> dict[int, int]:
    """Query id → the number of its group, from lines with both, separated by a tab.

    Raises:
        DataError: a line has another form, or a query has two lines.
    """
    found: dict[int, int] = {}
    text = stream.read().decode("utf-8", errors="replace")
    for number, line in enumerate(text.splitlines(), 1):
        fields = line.split("\t")
        try:
            query, group = (int(value) for value in fields)
        except ValueError as error:
            raise DataError(
                f"does not name a query and a group: {line[:60]!r}",
                "write a query's id, a tab, and the number of its group",
                file=where,
                line=number,
            ) from error
        if query in found:
            raise DataError(
                f"names the group of query {query} twice",
                "keep only one line",
                file=where,
                line=number,
            )
        found[query] = group
    return found


def _ending_with(end: str, archive: Archive) -> list[str]:
    """The paths in the archive that end with the name ``end``."""
    return [path for path in archive.members if path == end or path.endswith(f"/{end}")]


def _member(end: str, archive: Archive) -> str:
    """The only path in the archive that ends with the name ``end``."""
    fits = _ending_with(end, archive)
    if len(fits) != 1:
        raise DataError(
            f"contains {len(fits) or 'no'} files '{end}' with the groups of queries",
            "keep exactly one of them",
            file=archive.path,
        )
    return fits[0]


def _archive_record(entry: Entry, path: Path) -> dict[str, Any]:
    """A record of the archive that was used."""
    if not path.is_file():
        return {"name": path.name, "kind": "folder"}
    digest = io.sha256_of(path)
    published = {item.sha256 for item in entry.archives if item.sha256}
    return {
        "name": path.name,
        "kind": "archive",
        "bytes": path.stat().st_size,
        "sha256": digest,
        "as_published": digest in published if published else None,
    }


class _Hashing(RawIOBase):
    """A stream that hashes the bytes that are read from it."""

    def __init__(self, stream: RawIOBase) -> None:
        self._stream = stream
        self.digest = hashlib.sha256()
        self.bytes = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        count = self._stream.readinto(buffer)
        self.digest.update(memoryview(buffer)[:count])
        self.bytes += count
        return count


def _places(end: str, archive: Archive) -> list[list[str]]:
    """The members that are the file ``end``, for every place in which it is found.

    They are one file of text or, for want of it, Parquet files in their order: train.parquet,
    train-0….parquet, or those in a folder train.
    """
    texts = _ending_with(end, archive)
    if texts:
        return [[path] for path in texts]
    bare = re.escape(end.rpartition(".")[0])
    copies = re.compile(rf"((?:.*/)?){bare}(?:[-/][^/]*)?{re.escape(_PARQUET)}")
    places: dict[str, list[str]] = {}
    for path in sorted(archive.members):
        if match := copies.fullmatch(path):
            places.setdefault(match[1], []).append(path)
    return list(places.values())


def _locate(entry: Entry, archive: Archive) -> dict[tuple[int | None, str], list[str]]:
    """The members of every file, by the first layout of which all files exist."""
    missing: list[str] = []
    for layout in entry.layouts:
        members: dict[tuple[int | None, str], list[str]] = {}
        lacking = []
        for fold, split in entry.files:
            end = layout.member(fold, split)
            places = _places(end, archive) if end else []
            if len(places) > 1:
                found = sorted(chain.from_iterable(places))
                raise DataError(
                    f"contains '{end}' in several places: {', '.join(found[:4])}",
                    "keep only one version of the data in it",
                    file=archive.path,
                )
            if places:
                members[fold, split] = places[0]
            else:
                lacking.append(end or split)
        if not lacking:
            return members
        if not missing or len(lacking) < len(missing):
            missing = lacking
    shown = ", ".join(missing[:3]) + (" …" if len(missing) > 3 else "")
    inside = ", ".join(sorted(archive.members)[:3]) or "nothing"
    raise DataError(
        f"does not contain {entry.title}: there is no {shown}; it contains {inside}"
        + (" …" if len(archive.members) > 3 else ""),
        "check that this is the right archive, or add its layout to the catalogue",
        file=archive.path,
    )


def _folds(entry: Entry, fold: int | None, out: str | Path) -> list[int] | None:
    """The folds to prepare: all, or ``fold`` and those that ``out`` already contains."""
    if entry.folds is None:
        if fold is not None:
            raise ConfigError(f"data set '{entry.name}' has no folds", "leave --fold out")
        return None
    every = list(range(1, entry.folds + 1))
    if (entry.test_sets_only or entry.one_file) and fold is not None:
        raise ConfigError(
            f"the folds of data set '{entry.name}' are made of the same parts",
            "leave --fold out: all of them are prepared together",
        )
    if fold is None:
        return every
    if fold not in every:
        raise ConfigError(
            f"data set '{entry.name}' has no fold {fold}", f"its folds are 1 to {entry.folds}"
        )
    prepared_folds: list[int] = []
    with contextlib.suppress(DataError):
        record = prepared.read_record(out)
        if record["name"] == entry.name:
            prepared_folds = record["folds"]
    return sorted({fold, *prepared_folds})


def _write_splits(reader: _Reader, store: Store, folds: list[int] | None) -> Ranges:
    """Write each split separately."""
    ranges: Ranges = {}
    numbers: Sequence[int | None] = folds or [None]
    for fold in numbers:
        for split in SPLITS:
            name = split_name(fold, split)
            if (fold, split) not in reader.members:
                continue
            reader.write_part(store, name, fold, split)
            first, last = store.parts[name]
            share = reader.entry.vali_from_train
            if split == "train" and share is not None:
                kept = first + round((last - first) * (1 - share))
                ranges[split_name(fold, "vali")] = (kept, last)
                last = kept
            ranges[name] = (first, last)
    return ranges


def _write_ring(reader: _Reader, store: Store) -> Ranges:
    """Write the disjoint parts once, in cyclic order, and compare all other files with them.

    If the archive has only test sets, there are no other files.
    """
    n_folds = cast(int, reader.entry.folds)
    tested_in = {ring_split(fold, "test", n_folds)[0]: fold for fold in range(1, n_folds + 1)}

    def write(name: str) -> None:
        reader.write_part(store, name, tested_in[int(name[1:])], "test")

    ranges = prepared.write_ring(store, n_folds, write)
    if reader.entry.test_sets_only:
        return ranges
    for fold in range(1, n_folds + 1):
        for split in ("train", "vali"):
            parts = ring_split(fold, split, n_folds)
            _check_same(reader, store, fold, split, parts, ranges[split_name(fold, split)])
    return ranges


def _write_dealt(reader: _Reader, store: Store) -> Ranges:
    """Write the queries of the only file, dealt to the parts of which folds consist."""
    entry = reader.entry
    n_folds = cast(int, entry.folds)
    aside = store.folder.with_name("one_file")
    with Store(aside, entry.features) as whole:
        reader.write_part(whole, catalog.ALL, None, catalog.ALL)
        lists = whole.part(catalog.ALL)
        part = deal(cast(np.ndarray, lists.groups), n_folds, entry.name)

        def write(name: str) -> None:
            queries = np.flatnonzero(part == int(name[1:]) - 1)
            chunks = np.array_split(queries, max(1, len(queries) // _QUERIES))
            store.write_part(name, map(lists.select, chunks))

        ranges = prepared.write_ring(store, n_folds, write)
    shutil.rmtree(aside)
    return ranges


def _check_same(
    reader: _Reader,
    store: Store,
    fold: int,
    split: str,
    parts: Sequence[int],
    queries: tuple[int, int],
) -> None:
    """Raise unless a file holds exactly the documents ``queries`` of the store, in their order.

    They are those of ``parts``, in that order.
    """
    expected = store.queries(*queries)
    names = ", ".join(f"S{part}" for part in parts)
    where = reader.where(reader.members[fold, split][0])
    ids = np.repeat(expected.query_ids, expected.lengths)
    merge = reader.entry.text.get("split_queries") == "merge"
    row = 0

    def differs(line: int | None) -> DataError:
        return DataError(
            f"does not consist of the parts {names} of the test files, in this order",
            "get the archive again, or set 'cyclic: false' if its folds are not related",
            file=where,
            line=line,
        )

    if merge:
        raise ConfigError(
            f"data set '{reader.entry.name}': queries of cyclic folds cannot be merged",
            "set 'cyclic: false'",
        )
    for block in reader.blocks(fold, split):
        rows = slice(row, row + len(block.labels))
        if rows.stop > expected.n_documents:
            raise differs(int(block.lines[expected.n_documents - row]))
        same = (
            (block.query_ids == ids[rows])
            & (block.labels == expected.labels[rows])
            & (block.features == expected.features[rows]).all(axis=1)
        )
        if not same.all():
            raise differs(int(block.lines[np.argmin(same)]))
        row = rows.stop
    if row != expected.n_documents:
        raise differs(None)


def _drop_unused(entry: Entry, store: Store, note: Note) -> list[int] | None:
    """Drop columns of zeros, if the catalogue says so; return the numbers of the others."""
    if not entry.drop_unused_features:
        return None
    used = np.flatnonzero(store.non_zero)
    expected = entry.active_features
    if expected and len(used) not in expected:
        raise DataError(
            f"{len(used)} features are in use, expected {' or '.join(map(str, expected))}",
            f"check the archive against {entry.page}",
            file=entry.name,
        )
    if len(expected) > 1:
        counts = " or ".join(map(str, expected))
        note(f"warning: {len(used)} features are in use; sources say {counts}")
    store.keep_columns(used)
    return (used + 1).tolist()


def _check_counts(entry: Entry, record: Mapping[str, Any], store: Store, whole: bool) -> None:
    """Compare the counts with the catalogue's, and name every difference at once."""
    counted = dict(record["splits"])
    if whole:
        counted["total"] = record["total"]
        if "filtered" in entry.expect:
            counted["filtered"] = _filtered(entry.expect["filtered"], store)
    wrong = [
        f"{name}: {counted[name][key]} {key.replace('_', ' ')}, expected {value}"
        for name, counts in entry.expect.items()
        if name in counted
        for key, value in counts.items()
        if counted[name].get(key, value) != value
    ]
    if wrong:
        raise DataError(
            "differs from the catalogue:\n " + "\n  ".join(wrong),
            f"check the archive against {entry.page}" if entry.page else "correct 'expect'",
            file=entry.name,
        )


def _filtered(limits: Mapping[str, int], store: Store) -> dict[str, int]:
    """Counts after a filter, from labels and offsets only; features are not read."""
    lists = prepared.open_store(store.folder.parent)
    keep = filters.is_kept(lists, **{key: limits[key] for key in filters.DEFAULTS})
    keep[store.n_distinct :] = False
    return {"queries": int(keep.sum()), "documents": int(lists.lengths[keep].sum())}


def _extract(
    entry: Entry, path: Path, fold: int | None, out: str | Path, note: Note
) -> dict[str, Any]:
    """Write what an extractor makes of an archive whose files are not lists with features.

    It takes the archive, the number of parts and ``note``; it returns the lists of each part and
    the content of the record.
    """
    if fold is not None:
        raise ConfigError(
            f"the folds of data set '{entry.name}' are made of the same parts",
            "leave --fold out: all of them are prepared together",
        )
    archive = open_archive(path)
    files = _members(entry, archive)
    module, function = cast(str, entry.extractor).split(":")
    n_folds = cast(int, entry.folds)
    lists, record = getattr(import_module(module), function)(archive, n_folds, note)
    meta = {
        "name": entry.name,
        "title": entry.title,
        "origin": "real",
        "standin": False,
        "label_levels": entry.label_levels,
        "folds": list(range(1, n_folds + 1)),
        "source": {"archive": _archive_record(entry, path), "files": files},
        **record,
    }
    note("checking counts")
    with prepared.replacing(out) as folder:
        with Store(folder / "store", lists[0].n_features) as store:
            ranges = prepared.write_ring(
                store, n_folds, lambda name: store.write_part(name, [lists[int(name[1:]) - 1]])
            )
        result = prepared.finish(folder, store, ranges, meta)
        _check_counts(entry, result, store, whole=True)
    return result


def _members(entry: Entry, archive: Archive) -> dict[str, dict[str, Any]]:
    """Size and digest of every file of an archive.

    Raises:
        DataError: a file for which the catalogue has a digest is missing or different.
    """
    files: dict[str, dict[str, Any]] = {}
    for member, size in sorted(archive.members.items()):
        name = member.split("/")[-1]
        expected = entry.digests.get(name)
        known = hash_like(expected, size)() if expected else None
        with archive.open(member) as raw_stream:
            stream = _Hashing(raw_stream)
            while block := stream.read(1 << 20):
                if known:
                    known.update(block)
        if known and expected and known.hexdigest() != expected:
            raise DataError(
                f"differs from the published file: its {kind_of(expected)} is {known.hexdigest()}, "
                f"expected {expected}",
                f"get the archive again from {entry.page}",
                file=archive.path / member,
            )
        digest = stream.digest.hexdigest()
        files[name] = {"path": member, "bytes": stream.bytes, "sha256": digest}
    for name in entry.digests.keys() - files.keys():
        raise DataError(
            f"contains no file {name}",
            f"get the archive again from {entry.page}",
            file=archive.path,
        )
    return files


def _generate(
    entry: Entry, settings: Mapping[str, Any], out: str | Path, note: Note
) -> dict[str, Any]:
    """Write the output of a generator, holding at most one chunk of it at a time.

    A generator returns, for each split by name, its lists or an iterator over chunks of them.
    """
    module, function = cast(str, entry.generator).split(":")
    note(f"generating {entry.name}")
    generate = getattr(import_module(module), function)
    standin = entry.name.endswith(catalog.STANDIN)
    splits = generate(entry.name, settings) if standin else generate(settings)
    chunks = {
        name: iter([lists] if isinstance(lists, RankedLists) else lists)
        for name, lists in splits.items()
    }
    start = next(iter(chunks))
    first = next(chunks[start])
    chunks[start] = chain([first], chunks[start])
    with prepared.replacing(out) as folder:
        with Store(folder / "store", first.n_features) as store:
            for name, lists in chunks.items():
                store.write_part(name, lists)
            highest = int(store.highest_label)
        meta = {
            "name": entry.name,
            "title": entry.title,
            "origin": "standin" if standin else "generated",
            "standin": standin,
            "label_levels": max(entry.label_levels, highest + 1),
            "folds": None,
            "source": {"generator": entry.generator, "settings": dict(settings)},
        }
        note("counting")
        return prepared.finish(folder, store, store.parts, meta)
