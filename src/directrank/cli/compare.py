"""``directrank compare``: one's own run among the published methods of a collection."""

from __future__ import annotations

import argparse
from pathlib import Path

from directrank.cli.collection import uncollected

EPILOG = """\
examples:
  directrank compare --run mine.run --qrels msrd.qrels --collection msrd
  directrank compare --run seed0.run seed1.run --run other.run --qrels msrd.qrels --collection msrd
      two methods, the first with two seeds
  directrank compare --run mine.csv --collection mq2008 --metric ndcg@10 ap --out compared

A run has a line `query Q0 document rank score tag` per document, judgements have a line `query 0
document label`; either may be packed by gzip. Ranks are by score. A file whose name ends with .csv
has values per query: a column `query`, and one per metric. docs/compare.md says how to get each.
"""


def add_parsers(subparsers: argparse._SubParsersAction) -> None:
    """Add the command of this module."""
    compare = subparsers.add_parser(
        "compare",
        help="place your own run among the published methods",
        description=(
            "Compare your own run with every method whose values per query are published: means, "
            "intervals, corrected significance, equivalence. Nothing is trained."
        ),
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    compare.add_argument(
        "--run",
        dest="runs",
        metavar="FILE",
        type=Path,
        nargs="+",
        action="append",
        required=True,
        help="a method: its run, or one run per trial; again for another method",
    )
    compare.add_argument(
        "--qrels", metavar="FILE", type=Path, help="the judgements; `directrank qrels` writes them"
    )
    values = compare.add_mutually_exclusive_group(required=True)
    values.add_argument("--collection", metavar="NAME", help="such as msrd")
    values.add_argument(
        "--results", metavar="FILE", type=Path, help="published values: per_query_NAME.parquet"
    )
    compare.add_argument(
        "--edition", default="real", help="whose values of the collection (default: %(default)s)"
    )
    compare.add_argument(
        "--metric",
        dest="metrics",
        nargs="+",
        choices=["ndcg@5", "ndcg@10", "ap", "nerr@10"],
        default=["ndcg@10"],
        help="by what to compare (default: ndcg@10)",
    )
    compare.add_argument(
        "--margin",
        type=float,
        default=0.01,
        help="differences of a metric up to it are equivalent (default: %(default)s)",
    )
    compare.add_argument(
        "--out", metavar="DIR", type=Path, help="also write compare_NAME.md and .csv into DIR"
    )
    compare.set_defaults(run=_compare)


def _compare(options: argparse.Namespace) -> None:
    with uncollected():
        from directrank.papers.one_protocol.placing import published_file
        from directrank.papers.one_protocol.placing_page import compare

    values = options.results or published_file(options.collection, options.edition)
    print(
        compare(values, options.runs, options.qrels, options.metrics, options.margin, options.out),
        end="",
    )
