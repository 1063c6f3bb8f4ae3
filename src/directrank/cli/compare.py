"""``directrank compare``: one's own run among the published methods, or all on one's own data."""

from __future__ import annotations

import argparse
from pathlib import Path

from directrank.cli import own_data
from directrank.cli.collection import uncollected

EPILOG = """\
examples:
  directrank compare clicks.parquet --query-column session --budget quick
      every loss on your own data, in a folder of its own: compare_clicks/report/…
  directrank compare --run mine.run --qrels msrd.qrels --collection msrd
  directrank compare --run seed0.run seed1.run --run other.run --qrels msrd.qrels --collection msrd
      two methods, the first with two seeds
  directrank compare --run mine.csv --collection mq2008 --metric ndcg@10 ap --out compared

DATA is LETOR's text, CSV, TSV or Parquet, or a folder with a file for each of train, vali and test.
A row is a document; every column of numbers besides query, label and group is a feature.

A run has a line `query Q0 document rank score tag` per document, judgements have a line `query 0
document label`; either may be packed by gzip. Ranks are by score. A file whose name ends with .csv
has values per query: a column `query`, and one per metric. docs/compare.md says how to get each.
"""


def add_parsers(subparsers: argparse._SubParsersAction) -> None:
    """Add the command of this module."""
    compare = subparsers.add_parser(
        "compare",
        help="every loss on your own data; your own run among the published methods",
        description=(
            "DATA: train every loss and tree ensemble on your own data under one protocol, and "
            "compare them. --run: compare your own run with every method whose values per query "
            "are published; nothing is trained. Both tell means, intervals, corrected "
            "significance and equivalence."
        ),
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    compare.add_argument("data", metavar="DATA", type=Path, nargs="?", help="your own data")
    compare.add_argument(
        "--out",
        metavar="DIR",
        type=Path,
        help="DATA: the folder to work in (default: compare_NAME); --run: also write "
        "compare_NAME.md and .csv into DIR",
    )
    own_data.add_options(compare)
    run = compare.add_argument_group("your own run")
    run.add_argument(
        "--run",
        dest="runs",
        metavar="FILE",
        type=Path,
        nargs="+",
        action="append",
        help="a method: its run, or one run per trial; again for another method",
    )
    run.add_argument(
        "--qrels", metavar="FILE", type=Path, help="the judgements; `directrank qrels` writes them"
    )
    values = run.add_mutually_exclusive_group()
    values.add_argument("--collection", metavar="NAME", help="such as msrd")
    values.add_argument(
        "--results", metavar="FILE", type=Path, help="published values: per_query_NAME.parquet"
    )
    run.add_argument(
        "--edition", default="real", help="whose values of the collection (default: %(default)s)"
    )
    run.add_argument(
        "--metric",
        dest="metrics",
        nargs="+",
        choices=["ndcg@5", "ndcg@10", "ap", "nerr@10"],
        default=["ndcg@10"],
        help="by what to compare (default: ndcg@10)",
    )
    run.add_argument(
        "--margin",
        type=float,
        default=0.01,
        help="differences of a metric up to it are equivalent (default: %(default)s)",
    )
    compare.set_defaults(run=_compare)


def _compare(options: argparse.Namespace) -> None:
    from directrank.system.errors import ConfigError

    if (options.data is None) == (options.runs is None):
        raise ConfigError(
            "what is to be compared?", "name your data, or your runs: --run FILE --collection NAME"
        )
    if options.data is not None:
        own_data.compare(options)
        return
    if options.results is None and options.collection is None:
        raise ConfigError(
            "with which results?", "--collection NAME, such as msrd, or --results FILE"
        )
    with uncollected():
        from directrank.papers.one_protocol.placing import published_file
        from directrank.papers.one_protocol.placing_page import compare

    values = options.results or published_file(options.collection, options.edition)
    print(
        compare(values, options.runs, options.qrels, options.metrics, options.margin, options.out),
        end="",
    )
