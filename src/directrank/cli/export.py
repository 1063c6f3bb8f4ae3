"""``directrank export`` and ``directrank qrels``: runs and judgements for other tools."""

from __future__ import annotations

import argparse
from pathlib import Path


def add_parsers(subparsers: argparse._SubParsersAction) -> None:
    """Add the commands of this module."""
    export = subparsers.add_parser(
        "export",
        help="write trained runs as TREC runs",
        description=(
            "Score the test set with the trained models of a run, and write the judgements and one "
            "TREC run per trial, with a header that records its provenance (ir_metadata)."
        ),
        epilog=(
            "example: directrank export results/demo/runs/RUN --data data/prepared/msrd_sample "
            "--out exported"
        ),
    )
    export.add_argument(
        "folders",
        metavar="RESULTS",
        type=Path,
        nargs="+",
        help="the run's result folder, or those of one method on several folds, for a single file",
    )
    export.add_argument(
        "--data", type=Path, required=True, help="the folder of the prepared data set"
    )
    export.add_argument(
        "--out", metavar="DIR", type=Path, required=True, help="the folder to write"
    )
    export.set_defaults(run=_export)

    qrels = subparsers.add_parser(
        "qrels",
        help="write the judgements of prepared test sets as TREC qrels",
        description=(
            "Write the judgements of the test sets of all folds of a prepared data set as TREC "
            "qrels. Documents are identified by their query and their position in its list, "
            "counted from 1: 10032-7 is the seventh document of query 10032 in the collection's "
            "file."
        ),
        epilog="example: directrank qrels data/prepared/msrd --out msrd.qrels",
    )
    qrels.add_argument(
        "data", metavar="DATA", type=Path, help="the folder of the prepared data set"
    )
    qrels.add_argument("--out", metavar="FILE", type=Path, required=True, help="the file to write")
    qrels.set_defaults(run=_qrels)


def _export(options: argparse.Namespace) -> None:
    from directrank.study.export import TOLERANCE, export

    exported = export(options.folders, options.data, options.out)
    for path in exported.files:
        print(path)
    if exported.differing:
        print(
            f"{exported.differing} of {exported.values} values per query differ from the run's own "
            f"by more than {TOLERANCE:g}, because the last digits of scores differ on this machine"
        )
    else:
        print(f"all {exported.values} values per query agree with the run's own")


def _qrels(options: argparse.Namespace) -> None:
    from directrank.study.export import export_qrels

    queries, documents = export_qrels(options.data, options.out)
    print(f"{options.out}: {queries} queries, {documents} documents")
