"""``directrank prepare`` and ``directrank data``: fetch, check and prepare data sets."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from directrank.data.catalog import Entry


def add_parsers(subparsers: argparse._SubParsersAction) -> None:
    """Add the commands of this module."""
    prepare = subparsers.add_parser(
        "prepare",
        help="prepare a data set for training",
        description=(
            "Read a data set from its archive, check it against the catalogue, and write it as "
            "memory-mapped arrays: one folder per split (train, vali, test), inside Fold1, Fold2, "
            "… if the data set has folds. Generated data sets need no archive."
        ),
        epilog="example: directrank prepare ohsumed --raw data/raw --out data/prepared/ohsumed",
    )
    prepare.add_argument("name", metavar="DATASET", help="a name that 'directrank data list' shows")
    _add_folders(prepare)
    prepare.add_argument(
        "--out", type=Path, help="the folder to write (default: data/prepared/DATASET)"
    )
    prepare.add_argument(
        "--fold",
        type=int,
        help="prepare only this fold and keep those already prepared (default: all folds)",
    )
    for name, text in (
        ("--settings", "settings of a generated data set (JSON or YAML)"),
        (
            "--quarantine",
            "write malformed lines to FILE, each with the reason, instead of stopping at the first",
        ),
    ):
        prepare.add_argument(name, type=Path, metavar="FILE", help=text)
    prepare.add_argument("--threads", type=int, default=2, help="threads to use (default: 2)")
    prepare.set_defaults(run=_prepare)

    data = subparsers.add_parser(
        "data",
        help="list, fetch and verify data sets",
        description="List data sets, and show, download and verify their archives.",
    )
    actions = data.add_subparsers(dest="action", metavar="ACTION", required=True)

    def action(name: str, run: Callable, text: str, description: str, epilog: str = "") -> Any:
        added = actions.add_parser(name, help=text, description=description, epilog=epilog)
        added.set_defaults(run=run)
        return added

    listing = action(
        "list",
        _list,
        "list every data set that can be prepared",
        "List every data set of the catalogue and every stand-in, one per line.",
    )
    _add_folders(listing, raw=False)
    status = action(
        "status",
        _status,
        "show which archives are present",
        "Show which archives are in the raw folder and, for each that is missing, its page, "
        "licence, file name and digest.",
    )
    verify = action(
        "verify",
        _verify,
        "compare every file of an archive with the known digests",
        "Read every file of each archive and compare its SHA-256 digest with the catalogue. "
        "Counts are checked when the data set is prepared.",
    )
    fetch = action(
        "fetch",
        _fetch,
        "download archives that need no form and no browser",
        "Download archives, or folders of files, into the raw folder. An interrupted download "
        "resumes where it stopped; what was fetched appears only once its digests have been "
        "verified, and what is there already is verified, too.",
        "example: directrank data fetch msrd --accept-licence",
    )
    for command, number, default in (
        (status, "*", " (default: all data sets that have an archive)"),
        (verify, "*", " (default: all data sets that have an archive)"),
        (fetch, "+", ""),
    ):
        command.add_argument(
            "names", metavar="DATASET", nargs=number, help=f"names of data sets{default}"
        )
        _add_folders(command)
    fetch.add_argument(
        "--accept-licence",
        action="store_true",
        help="confirm that you have read and accepted the licence on each data set's page",
    )
    page = action(
        "page",
        _page,
        "write the data pages of prepared data sets",
        "Write a page for each prepared data set (counts, labels, list lengths and the "
        "NDCG@10 of single features, as Markdown, CSV and a figure) and a table of all of them.",
    )
    page.add_argument("--out", type=Path, required=True, help="the folder to write the pages into")
    copies = action(
        "copies",
        _copies,
        "show or remove the scaled copies beside prepared data",
        "Show or remove the copies of features and queries, as runs scale and filter them, that "
        "are stored beside the prepared data, one for each normalisation. A copy that was "
        "removed is made again by the next run that needs it.",
        "example: directrank data copies data/prepared/* --remove",
    )
    copies.add_argument(
        "--remove", action="store_true", help="remove the copies; no run may be in progress"
    )
    for command in (page, copies):
        command.add_argument(
            "folders", metavar="FOLDER", nargs="+", type=Path, help="prepared data sets"
        )


def _add_folders(parser: argparse.ArgumentParser, raw: bool = True) -> None:
    """Add the options that say where the archives and the catalogue are."""
    if raw:
        parser.add_argument(
            "--raw",
            type=Path,
            metavar="DIR",
            help="the folder of archives (default: $DIRECTRANK_RAW, or data/raw if it is not set)",
        )
    parser.add_argument(
        "--catalogue",
        type=Path,
        metavar="FILE",
        help="a catalogue of your own data sets, to use instead of data/datasets.yaml",
    )


def _note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _prepare(options: argparse.Namespace) -> None:
    from directrank.data import catalog
    from directrank.data.prepare import prepare
    from directrank.system.schema import read_yaml

    out = options.out or Path("data/prepared") / options.name
    settings = read_yaml(options.settings) if options.settings else None  # JSON is YAML
    record = prepare(
        options.name,
        catalog.raw_folder(options.raw),
        out,
        options.fold,
        settings=settings,
        catalogue=options.catalogue,
        quarantine=options.quarantine,
        threads=options.threads,
        note=_note,
    )
    total = record["total"]
    print(
        f"{out}: {total['queries']} queries ({total['empty_queries']} without a relevant "
        f"document), {total['documents']} documents, {record['n_features']} features"
    )
    if record.get("quarantined_lines"):
        print(f"{record['quarantined_lines']} malformed lines were written to {options.quarantine}")


def _list(options: argparse.Namespace) -> None:
    from directrank.data import catalog, standins

    for name, entry in catalog.load(options.catalogue).items():
        print(f"{name:24}{entry.title}")
    for name in standins.names():
        print(f"{name:24}{catalog.get(name, options.catalogue).title}")


def _entries(options: argparse.Namespace) -> list[Entry]:
    from directrank.data import catalog

    names = options.names or [
        name for name, entry in catalog.load(options.catalogue).items() if not entry.generator
    ]
    return [catalog.get(name, options.catalogue) for name in names]


def _status(options: argparse.Namespace) -> None:
    from directrank.data import catalog

    raw = catalog.raw_folder(options.raw)
    print(f"archives in {raw.resolve()}:")
    for entry in _entries(options):
        path = None if entry.generator else catalog.find_archive(entry, raw)
        if entry.generator:
            print(f"  {entry.name}: generated, so it needs no archive")
        elif path is not None:
            print(f"  {entry.name}: present, {path.name}")
        else:
            print(catalog.describe_missing(entry).replace(":", ": MISSING:", 1))


def _verify(options: argparse.Namespace) -> None:
    from directrank.data import catalog
    from directrank.data.prepare import verify

    raw = catalog.raw_folder(options.raw)
    entries = _entries(options)
    if options.names:
        catalog.require(entries, raw)
    for entry in entries:
        if entry.generator or catalog.find_archive(entry, raw) is None:
            continue
        verified = verify(entry.name, raw, catalogue=options.catalogue, note=_note)
        known = sum(name in entry.digests for name in verified["files"])
        print(
            f"{entry.name}: {verified['archive']['name']} is intact; {known} of "
            f"{len(verified['files'])} files were compared with a known digest"
        )


def _fetch(options: argparse.Namespace) -> None:
    from directrank.data import catalog
    from directrank.data.fetch import fetch
    from directrank.system.progress import Progress

    raw = catalog.raw_folder(options.raw)
    for entry in _entries(options):
        with Progress(f"fetching {entry.name}", unit="B") as progress:
            accepted = options.accept_licence
            archive = fetch(entry, raw, accept_licence=accepted, progress=progress)
        print(f"{entry.name}: {archive}")


def _page(options: argparse.Namespace) -> None:
    from directrank.data.pages import write_pages

    for path in write_pages(options.folders, options.out):
        print(path)


def _copies(options: argparse.Namespace) -> None:
    from directrank.data import normalised, prepared

    for folder in filter(Path.is_dir, options.folders):
        prepared.read_record(folder)
        for copy in normalised.copies(folder):
            made_from = copy.made_from
            fold = "" if made_from["fold"] is None else f", fold {made_from['fold']}"
            settings = [
                " ".join(f"{key} {value}" for key, value in made_from[part].items())
                for part in ("normalisation", "filter")
            ]
            print(f"{copy.folder}: {copy.bytes / 1e6:.1f} MB{fold}; {'; '.join(settings)}")
        if options.remove:
            normalised.remove_copies(folder)
            print(f"{folder}: all copies were removed")
