"""``directrank report``: write one page with an edition's verdicts, figures, tables and runs."""

from __future__ import annotations

import argparse
from pathlib import Path


def add_parsers(subparsers: argparse._SubParsersAction) -> None:
    """Add the command of this module."""
    report = subparsers.add_parser(
        "report",
        help="write the report of an edition",
        description=(
            "Write one self-contained HTML file with the verdicts, every figure and table beside "
            "the published values, and every run with its curve."
        ),
        epilog=(
            "example: directrank report results/demo/plan/*/*.json --results results/demo "
            "--figures figures/demo --tables paper_tables/demo --out report/demo/report.html"
        ),
    )
    report.add_argument(
        "plans", metavar="PLAN", type=Path, nargs="+", help="the plans of the products (JSON)"
    )
    report.add_argument(
        "--results", type=Path, required=True, help="the edition's results, such as results/demo"
    )
    report.add_argument(
        "--figures", type=Path, required=True, help="the folder of the edition's figures"
    )
    report.add_argument(
        "--tables",
        type=Path,
        required=True,
        help="the folder of the edition's tables, with claims.csv",
    )
    report.add_argument("--out", type=Path, required=True, help="the HTML file to write")
    report.set_defaults(run=_report)


def _report(options: argparse.Namespace) -> None:
    from directrank.report.build import write

    claims = options.tables / "claims.csv"
    write(options.plans, options.results, claims, options.figures, options.tables, options.out)
    print(options.out)
