"""The catalogue of data sets (``data/datasets.yaml``), and the archives in the raw folder."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from itertools import chain
from pathlib import Path
from textwrap import indent
from typing import Any

from directrank.data.archives import SUFFIXES
from directrank.data.digests import is_sha256
from directrank.data.prepared import SPLITS, split_name
from directrank.system.errors import ConfigError, DataError
from directrank.system.io import digest_of
from directrank.system.schema import check, package_schema, read_yaml, suggest

#: The suffix of the name of a generated data set in the shape of a real one.
STANDIN = "_standin"
#: The repository's catalogue; in its package this is a link to the file in the folder `data`.
PACKAGED = Path(__file__).with_name("datasets.yaml")
#: The name of the split if one file contains all queries.
ALL = "all"


@dataclass(frozen=True)
class ArchiveFile:
    """An archive as published; unknown properties are None.

    Attributes:
        urls: addresses of the archive or, if it is published as single files, of their folder.
        files: the digest of each of these files by its path in the folder: a sha256, or the
            40 digits by which git names the content.
    """

    name: str
    bytes: int | None = None
    sha256: str | None = None
    md5: str | None = None
    urls: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    by_hand: str | None = None

    @property
    def target(self) -> str:
        """The name under which it is fetched: the file's, or that of a folder of files."""
        return _stem(self.name) if self.files else self.name


@dataclass(frozen=True)
class ArchiveLayout:
    """The places of files in an archive: a path with ``{split}`` and, with folds, ``{fold}``."""

    path: str
    splits: Mapping[str, str]

    def member(self, fold: int | None, split: str) -> str | None:
        """The end of the path of a split's file; None if the archive has no such file."""
        if split not in self.splits:
            return None
        return self.path.format(fold=fold, split=self.splits[split])


@dataclass(frozen=True)
class Entry:
    """One data set of the catalogue; the keys are explained in ``data/README.md``."""

    name: str
    label_levels: int
    title: str
    page: str = ""
    licence: str = ""
    generator: str | None = None
    extractor: str | None = None
    embedded: bool = False
    groups: str | None = None
    one_file: str | None = None
    archives: tuple[ArchiveFile, ...] = ()
    features: int = 0
    folds: int | None = None
    cyclic: bool = True
    test_sets_only: bool = False
    drop_unused_features: bool = False
    vali_from_train: float | None = None
    text: Mapping[str, Any] = field(default_factory=dict)
    layouts: tuple[ArchiveLayout, ...] = ()
    quirks: tuple[str, ...] = ()
    sha256: Mapping[str, str] = field(default_factory=dict)
    expect: Mapping[str, Any] = field(default_factory=dict)

    @property
    def files(self) -> list[tuple[int | None, str]]:
        """The (fold, split) of every file that the archive must contain."""
        if self.one_file is not None:
            return [(None, ALL)]
        splits = [split for split in SPLITS if split != "vali" or self.vali_from_train is None]
        if self.test_sets_only:
            splits = ["test"]
        folds = [None] if self.folds is None else range(1, self.folds + 1)
        return [(fold, split) for fold in folds for split in splits]

    @property
    def split_names(self) -> list[str]:
        """The names of all splits, such as ``Fold1/train``."""
        folds = [None] if self.folds is None else range(1, self.folds + 1)
        return [split_name(fold, split) for fold in folds for split in SPLITS]

    @property
    def active_features(self) -> list[int]:
        """The numbers of features in use that are accepted, the published one first."""
        expected = self.expect.get("active_features", [])
        return expected if isinstance(expected, list) else [expected]

    @property
    def digests(self) -> dict[str, str]:
        """The known digest of each file, by its split or, for an extractor, by its name."""
        if self.extractor is None:
            return dict(self.sha256)
        single = chain.from_iterable(archive.files.items() for archive in self.archives)
        return {path.rpartition("/")[2]: digest for path, digest in single} | dict(self.sha256)

    @property
    def has_all_digests(self) -> bool:
        """Whether the content of an archive can be verified without a digest of the archive."""
        if self.extractor is not None:
            return bool(self.digests)
        return all(split_name(fold, split) in self.sha256 for fold, split in self.files)


def load(path: str | Path | None = None) -> dict[str, Entry]:
    """All entries of a catalogue, by name.

    Args:
        path: the file; the default is ``data/datasets.yaml`` below the working folder or, if it
            does not exist, the repository's, a copy of which is part of every installed package.

    Raises:
        ConfigError: the file does not exist or does not match its schema.
    """
    return dict(_load(Path(path) if path is not None else default_path()))


def default_path() -> Path:
    """The path of the default catalogue."""
    here = Path.cwd() / "data/datasets.yaml"
    return _resolved(here if here.is_file() else PACKAGED)


@cache
def _resolved(path: Path) -> Path:
    """A path without links; planning an edition asks for the same one thousands of times."""
    return path.resolve()


def get(name: str, path: str | Path | None = None) -> Entry:
    """The entry ``name``; a stand-in's is derived from the entry of the original.

    Raises:
        ConfigError: the name is unknown.
    """
    entries = load(path)
    if name in entries:
        return entries[name]
    from directrank.data import standins

    if name in standins.names():
        original = entries.get(name.removesuffix(STANDIN))
        return Entry(
            name=name,
            label_levels=original.label_levels if original else 2,
            title=f"stand-in for {original.title if original else name}",
            generator="directrank.data.standins:generate_splits",
        )
    raise ConfigError(f"unknown data set '{name}'", suggest(name, [*entries, *standins.names()]))


def fingerprint(entry: Entry) -> str:
    """A digest of everything that decides the prepared form of ``entry``, without descriptions.

    For a stand-in this includes its profile.
    """
    from directrank.data import standins

    content = asdict(entry)
    for key in ("page", "licence", "quirks"):
        del content[key]
    for archive in content["archives"]:
        del archive["urls"], archive["files"], archive["by_hand"]
    if entry.name in standins.names():
        content["profile"] = standins.profile(entry.name)
    return digest_of(content)[:16]


def raw_folder(raw: str | Path | None = None) -> Path:
    """The folder of archives: ``raw``, or else ``DIRECTRANK_RAW``, or else ``data/raw``."""
    return Path(raw or os.environ.get("DIRECTRANK_RAW") or "data/raw")


def is_plain_http(url: str) -> bool:
    """Whether content from ``url`` could be changed in transit."""
    return not url.lower().startswith("https://")


def find_archive(entry: Entry, raw: str | Path) -> Path | None:
    """The archive of ``entry`` in the folder ``raw``, or None.

    An archive that is part of the repository is in the folder ``embedded`` beside the catalogue; an
    installed package does not contain it. A file as published comes first, then the same name with
    the suffix of another container, then an unpacked folder of that name; the data set's own name
    is accepted as well as the published one.
    """
    embedded = default_path().parent / "embedded"
    raw = embedded if entry.embedded and embedded.is_dir() else Path(raw)
    if not raw.is_dir():
        return None
    present = {path.name.lower(): path for path in sorted(raw.iterdir())}
    stems = [_stem(archive.name) for archive in entry.archives] + [entry.name]
    files = [archive.name for archive in entry.archives]
    files += [stem + suffix for stem in stems for suffix in SUFFIXES]
    for names, fits in ((files, Path.is_file), (stems, Path.is_dir)):
        for name in names:
            path = present.get(name.lower())
            if path is not None and fits(path):
                return path
    return None


def is_missing(entry: Entry, raw: str | Path) -> bool:
    """Whether ``entry`` needs an archive that is not in the folder ``raw``."""
    return entry.generator is None and find_archive(entry, raw) is None


def require(
    entries: Iterable[Entry], raw: str | Path, failures: Mapping[str, str] | None = None
) -> dict[str, Path]:
    """The archive of every entry that needs one.

    Args:
        entries: data sets; those that are generated need none.
        raw: the folder of archives.
        failures: by name, why an archive could not be fetched; this is reported with the missing
            ones.

    Raises:
        DataError: archives are missing; the message lists all of them and says how to get them.
    """
    archives, missing = {}, []
    for entry in entries:
        if entry.generator is not None:
            continue
        path = find_archive(entry, raw)
        if path is None:
            missing.append(entry)
        else:
            archives[entry.name] = path
    if missing:
        folder = Path(raw).resolve()
        lines = []
        for entry in missing:
            lines.append(describe_missing(entry))
            if failures and entry.name in failures:
                lines.append(indent(f"download failed: {failures[entry.name]}", "    "))
        count = f"{len(missing)} data sets have" if len(missing) > 1 else "1 data set has"
        raise DataError(
            f"{count} no archive in {folder}:\n" + "\n".join(lines),
            f"put each archive into {folder} (or an unpacked folder of that name, or the same "
            "files as zip or tar), or name another folder with --raw or DIRECTRANK_RAW",
        )
    return archives


def describe_missing(entry: Entry) -> str:
    """Lines that say where to get the archive of ``entry``."""
    lines = [f"  {entry.name}: {entry.title}"]
    if entry.page:
        lines.append(f"    page:    {entry.page}")
    if entry.licence:
        lines.append(f"    licence: {entry.licence}")
    for archive in entry.archives:
        size = f", {archive.bytes:_} bytes".replace("_", " ") if archive.bytes else ""
        folder = f", or a folder {archive.target} of these files:" if archive.files else ""
        lines.append(f"    file:    {archive.name}{size}{folder}")
        lines.extend(f"             {path}" for path in archive.files)
        if archive.sha256:
            lines.append(f"    sha256:  {archive.sha256}")
        if archive.md5:
            lines.append(f"    md5:     {archive.md5}")
        lines.extend(f"    from:    {url}" for url in archive.urls)
        if archive.by_hand:
            lines.append(f"    browser: {archive.by_hand}")
    if any(archive.urls for archive in entry.archives):
        lines.append(
            f"    fetch:   directrank data fetch {entry.name} --accept-licence; in a workflow, "
            f"'download: true' and '{entry.name}' in 'accept_licences' of the edition"
        )
    if not entry.archives:
        lines.append(f"    file:    {entry.name}.zip, or a folder {entry.name}")
    return "\n".join(lines)


@cache
def _load(path: Path) -> dict[str, Entry]:
    document = read_yaml(path)
    check(document, package_schema("datasets"), str(path))
    return {name: _entry(name, content) for name, content in document["datasets"].items()}


def _entry(name: str, content: Mapping[str, Any]) -> Entry:
    values = dict(content)
    values.setdefault("title", name)
    values["archives"] = tuple(
        ArchiveFile(**{**archive, "urls": tuple(archive.get("urls", ()))})
        for archive in values.get("archives", ())
    )
    default = "Fold{fold}/{split}.txt" if "folds" in values else "{split}.txt"
    values["layouts"] = tuple(
        ArchiveLayout(layout["path"], layout.get("splits", {split: split for split in SPLITS}))
        for layout in values.get("layouts", [{"path": default}])
    )
    if "one_file" in values:
        values["layouts"] = (ArchiveLayout(values["one_file"], {ALL: ALL}),)
    values["quirks"] = tuple(values.get("quirks", ()))
    entry = Entry(name=name, **values)
    for archive in entry.archives:
        fetched = archive.files.values() or [archive.sha256]
        if not all(map(is_sha256, fetched)) and any(map(is_plain_http, archive.urls)):
            raise ConfigError(
                f"data set '{name}': '{archive.name}' has a plain http address and no sha256",
                "give its sha256, which protects its content, or an https address, or name "
                "the address under 'by_hand'",
            )
    counted = {*entry.split_names, "total", "filtered", "active_features"}
    files = {split_name(fold, split) for fold, split in entry.files}
    # An extractor reads files other than those of splits.
    digests = {} if entry.extractor else entry.sha256
    for keys, known in ((entry.expect, counted), (digests, files)):
        for key in keys:
            if key not in known:
                raise ConfigError(f"data set '{name}' has no split '{key}'", suggest(key, known))
    return entry


def _stem(name: str) -> str:
    for suffix in sorted(SUFFIXES, key=len, reverse=True):
        if name.lower().endswith(suffix):
            return name[: -len(suffix)]
    return name
