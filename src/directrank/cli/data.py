"""``directrank prepare`` and ``directrank data``: getting, checking and preparing data sets."""

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
            "Read a data set from its archive, check that it is what the catalogue says, and write "
            "it as memory-mapped arrays: one folder per split (train, vali, test), below Fold1, "
            "Fold2, … where there are folds. Data sets that are generated need no archive."
        ),
        epilog="example: directrank prepare ohsumed --raw data/raw --out data/prepared/ohsumed",
    )
    prepare.add_argument("name", metavar="DATASET", help="a name that 'directrank data list' shows")
    _add_folders(prepare)
    prepare.add_argument(
        "--out", type=Path, help="folder to write (default: data/prepared/DATASET)"
    )
    prepare.add_argument(
        "--fold", type=int, help="this fold, beside those already prepared (default: all folds)"
    )
    for name, text in (
        ("--settings", "settings of a generated data set (JSON or YAML)"),
        (
            "--quarantine",
            "put malformed lines into FILE, with the reason, instead of stopping at the first",
        ),
    ):
        prepare.add_argument(name, type=Path, metavar="FILE", help=text)
    prepare.add_argument("--threads", type=int, default=2, help="threads to use (default: 2)")
    prepare.set_defaults(run=_prepare)

    data = subparsers.add_parser(
        "data",
        help="list, fetch and verify data sets",
        description="What data sets there are, which archives are here, whether they are whole.",
    )
    actions = data.add_subparsers(dest="action", metavar="ACTION", required=True)

    def action(name: str, run: Callable, text: str, description: str, epilog: str = "") -> Any:
        added = actions.add_parser(name, help=text, description=description, epilog=epilog)
        added.set_defaults(run=run)
        return added

    listing = action(
        "list",
        _list,
        "every data set that can be prepared",
        "Every data set of the catalogue and every stand-in, one a line.",
    )
    _add_folders(listing, raw=False)
    status = action(
        "status",
        _status,
        "which archives are here",
        "Which archives are in the raw folder. For each that is missing: its page, licence, "
        "file name and digest.",
    )
    verify = action(
        "verify",
        _verify,
        "compare every file of an archive with the known digests",
        "Read every file of each archive and compare its sha256 with the catalogue's. Counts "
        "are checked when the data set is prepared.",
    )
    fetch = action(
        "fetch",
        _fetch,
        "download archives that need no form and no browser",
        "Download archives into the raw folder. An interrupted download goes on where it "
        "stopped; a file appears only when its digest is right.",
        "example: directrank data fetch web10k_catboost --accept-licence",
    )
    for command, number, default in (
        (status, "*", " (default: all that have an archive)"),
        (verify, "*", " (default: all that have an archive)"),
        (fetch, "+", ""),
    ):
        command.add_argument(
            "names", metavar="DATASET", nargs=number, help=f"names of data sets{default}"
        )
        _add_folders(command)
    fetch.add_argument(
        "--accept-licence",
        action="store_true",
        help="say that you have read and accepted the licence on each data set's page",
    )
    page = action(
        "page",
        _page,
        "write the data page of prepared data sets",
        "Write a page per prepared data set (counts, labels, list lengths, feature ranges; "
        "Markdown, CSV and a figure) and a table of all of them.",
    )
    page.add_argument("--out", type=Path, required=True, help="folder to write the pages into")
    copies = action(
        "copies",
        _copies,
        "show or remove the scaled copies beside prepared data",
        "Runs store the features that they scale, and the queries that they keep, beside the "
        "prepared data: once for each normalisation. This shows those copies and their sizes. "
        "What is removed is made again by the next run that needs it.",
        "example: directrank data copies data/prepared/* --remove",
    )
    copies.add_argument("--remove", action="store_true", help="remove them; no run may be going on")
    for command in (page, copies):
        command.add_argument(
            "folders", metavar="FOLDER", nargs="+", type=Path, help="prepared data sets"
        )


def _add_folders(parser: argparse.ArgumentParser, raw: bool = True) -> None:
    """Where archives and the catalogue are."""
    if raw:
        parser.add_argument(
            "--raw",
            type=Path,
            metavar="DIR",
            help="folder of archives (default: $DIRECTRANK_RAW, else data/raw)",
        )
    parser.add_argument(
        "--catalogue",
        type=Path,
        metavar="FILE",
        help="another catalogue than data/datasets.yaml, for data sets of your own",
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
        print(f"{record['quarantined_lines']} malformed lines are in {options.quarantine}")


def _list(options: argparse.Namespace) -> None:
    from directrank.data import catalog, standins

    for name, entry in catalog.load(options.catalogue).items():
        print(f"{name:24}{entry.title}")
    for name in standins.names():
        print(f"{name:24}{catalog.get(name, options.catalogue).title}")


def _chosen(options: argparse.Namespace) -> list[Entry]:
    from directrank.data import catalog

    names = options.names or [
        name for name, entry in catalog.load(options.catalogue).items() if not entry.generator
    ]
    return [catalog.get(name, options.catalogue) for name in names]


def _status(options: argparse.Namespace) -> None:
    from directrank.data import catalog

    raw = catalog.raw_folder(options.raw)
    print(f"archives in {raw.resolve()}:")
    for entry in _chosen(options):
        path = None if entry.generator else catalog.find_archive(entry, raw)
        if entry.generator:
            print(f"  {entry.name}: generated, needs no archive")
        elif path is not None:
            print(f"  {entry.name}: here, {path.name}")
        else:
            print(catalog.describe_missing(entry).replace(":", ": MISSING:", 1))


def _verify(options: argparse.Namespace) -> None:
    from directrank.data import catalog
    from directrank.data.prepare import verify

    raw = catalog.raw_folder(options.raw)
    entries = _chosen(options)
    if options.names:
        catalog.require(entries, raw)
    for entry in entries:
        if entry.generator or catalog.find_archive(entry, raw) is None:
            continue
        verified = verify(entry.name, raw, catalogue=options.catalogue, note=_note)
        known = sum(name in entry.sha256 for name in verified["files"])
        print(
            f"{entry.name}: {verified['archive']['name']} is whole; {known} of "
            f"{len(verified['files'])} files compared with a known digest"
        )


def _fetch(options: argparse.Namespace) -> None:
    from directrank.data import catalog
    from directrank.data.fetch import fetch
    from directrank.system.progress import Progress

    raw = catalog.raw_folder(options.raw)
    for entry in _chosen(options):
        archive = catalog.find_archive(entry, raw)
        if archive is None:
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
            print(f"{folder}: no copies any more")
