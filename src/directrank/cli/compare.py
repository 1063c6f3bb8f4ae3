"""``directrank compare``: your own run beside the published methods, or all on your own data."""

from __future__ import annotations

import argparse
from pathlib import Path

from directrank.cli import own_data

EPILOG = """\
examples:
  directrank compare clicks.parquet --query-column session --budget quick
      compare all losses on your own data; the report is written to compare_clicks/report/…
  directrank compare --run mine.run --qrels msrd.qrels --collection msrd
  directrank compare --run seed0.run seed1.run --run other.run --qrels msrd.qrels --collection msrd
      compare two methods, the first with two seeds
  directrank compare --run mine.csv --collection mq2008 --metric ndcg@10 ap --out compared

DATA is a file in LETOR's, LightGBM's or XGBoost's text format, CSV, TSV or Parquet, or a folder
with one such file each for train, vali and test; any may be compressed with gzip. Each row is a
document; every numeric column other than those of the query, label and group is a feature.

A run has one line per document, `query Q0 document rank score tag`; judgements have lines `query 0
document label`. Either may be compressed with gzip. Documents are ranked by their scores. A run
file whose name ends in .csv holds values per query instead: a column `query` and one per metric.
docs/your_data.md explains how to obtain each of these files.
"""


def add_parsers(subparsers: argparse._SubParsersAction) -> None:
    """Add the command of this module."""
    compare = subparsers.add_parser(
        "compare",
        help="compare all losses on your own data, or your own run with the published methods",
        description=(
            "With DATA, train every loss and tree ensemble on your own data under one protocol, "
            "and compare them. With --run, compare your own run with every method whose values "
            "per query are published; nothing is trained. Both report means, confidence "
            "intervals, corrected significance and equivalence."
        ),
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    compare.add_argument("data", metavar="DATA", type=Path, nargs="?", help="your own data")
    compare.add_argument(
        "--out",
        metavar="DIR",
        type=Path,
        help="with DATA: the folder to work in (default: compare_NAME); with --run: also write "
        "compare_NAME.md and compare_NAME.csv into DIR",
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
        help="a method: its run, or one run per trial; repeat the option for another method",
    )
    run.add_argument(
        "--qrels",
        metavar="FILE",
        type=Path,
        help="the judgements, as `directrank qrels` writes them",
    )
    values = run.add_mutually_exclusive_group()
    values.add_argument(
        "--collection", metavar="NAME", help="a collection with published values, such as msrd"
    )
    values.add_argument(
        "--results", metavar="FILE", type=Path, help="published values: per_query_NAME.parquet"
    )
    run.add_argument(
        "--edition",
        default="real",
        help="the edition that published the collection's values (default: %(default)s)",
    )
    run.add_argument(
        "--metric",
        dest="metrics",
        nargs="+",
        choices=["ndcg@5", "ndcg@10", "ap", "nerr@10"],
        help="the metrics to compare (default: ndcg@10)",
    )
    run.add_argument(
        "--margin",
        type=float,
        help="treat differences of a metric up to this as equivalent (default: 0.01)",
    )
    compare.set_defaults(run=_compare)


def _compare(options: argparse.Namespace) -> None:
    from directrank.system.errors import ConfigError

    if (options.data is None) == (options.runs is None):
        raise ConfigError(
            "expected either DATA or --run",
            "name your data, or your runs with --run FILE --collection NAME",
        )
    if options.data is not None:
        for name, value in (("--metric", options.metrics), ("--margin", options.margin)):
            if value is not None:
                raise ConfigError(
                    f"{name} is of a comparison with published values",
                    "leave it out: all metrics are compared on your own data, and edition.yaml in "
                    "the folder of the comparison may set a margin",
                )
        own_data.compare(options)
        return
    if options.results is None and options.collection is None:
        raise ConfigError(
            "--run needs published values to compare with",
            "name them with --collection NAME, such as msrd, or with --results FILE",
        )
    from directrank.papers.one_protocol.placing import published_file
    from directrank.papers.one_protocol.placing_page import compare

    values = options.results or published_file(options.collection, options.edition)
    metrics = options.metrics or ["ndcg@10"]
    margin = 0.01 if options.margin is None else options.margin
    print(compare(values, options.runs, options.qrels, metrics, margin, options.out), end="")
