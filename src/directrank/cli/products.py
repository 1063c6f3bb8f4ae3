"""``directrank product``, ``gallery`` and ``claims``: from results to figures, tables, verdicts."""

from __future__ import annotations

import argparse
from pathlib import Path

from directrank.cli.collection import uncollected


def add_parsers(subparsers: argparse._SubParsersAction) -> None:
    """Add the commands of this module."""
    product = subparsers.add_parser(
        "product",
        help="draw one figure or write one table",
        description=(
            "Draw the figure or write the table of PLAN, in all its forms, beside --out. Nothing "
            "is trained: it takes seconds."
        ),
        epilog=(
            "example: directrank product results/demo/plan/bruch2019/figure2.json "
            "--results results/demo --out figures/demo/bruch2019/figure2"
        ),
    )
    product.add_argument("plan", metavar="PLAN", type=Path, help="what it is made of (JSON)")
    _add_results(product)
    product.add_argument(
        "--out", type=Path, required=True, help="the files' path; its ending does not matter"
    )
    product.add_argument(
        "--prepared",
        type=Path,
        default=Path("data/prepared"),
        help="the folder of prepared data sets, for what describes them (default: %(default)s)",
    )
    product.add_argument(
        "--claims",
        type=Path,
        help="the verdicts on the paper's claims, for what quotes some: …/<paper>/claims.csv",
    )
    product.add_argument(
        "--values",
        metavar="FILE",
        type=Path,
        nargs="+",
        default=[],
        help="values per query of each collection, for what is drawn from them",
    )
    product.add_argument(
        "--times",
        action="store_true",
        help="write the file of its measured times, --out, and nothing else",
    )
    product.set_defaults(run=_product)

    gallery = subparsers.add_parser(
        "gallery",
        help="write the page that shows figures with their captions",
        description="Write a Markdown page of figures; their captions lie in the SVG files.",
    )
    gallery.add_argument("figures", metavar="SVG", type=Path, nargs="+", help="the figures")
    gallery.add_argument("--out", type=Path, required=True, help="the page")
    gallery.set_defaults(run=_gallery)

    claims = subparsers.add_parser(
        "claims",
        help="measure the papers' claims",
        description="Measure the papers' claims, merge the verdicts, put their count on a page.",
    )
    _add_claims(claims.add_subparsers(metavar="COMMAND", required=True))


def _add_claims(subparsers: argparse._SubParsersAction) -> None:
    measure = subparsers.add_parser(
        "measure",
        help="measure the claims of one paper",
        description="Measure every published claim of a paper: tests, effects, verdicts.",
    )
    measure.add_argument(
        "plans", metavar="PLAN", type=Path, nargs="+", help="the paper's products' plans (JSON)"
    )
    _add_results(measure)
    measure.add_argument("--out", type=Path, required=True, help="the file, …/<paper>/claims.csv")
    measure.add_argument(
        "--margin", type=float, required=True, help="differences of a metric up to it are equal"
    )
    measure.set_defaults(run=_measure)

    merge = subparsers.add_parser(
        "merge",
        help="merge the verdicts of papers into an edition's",
        description="Merge the claims of papers; write claims.csv and the page claims.md.",
        epilog=(
            "example: directrank claims merge paper_tables/real/*/claims.csv --edition real "
            "--out paper_tables/real/claims.csv"
        ),
    )
    merge.add_argument(
        "files", metavar="CSV", type=Path, nargs="*", help="what `claims measure` wrote"
    )
    merge.add_argument("--edition", required=True, help="its name, such as real")
    merge.add_argument("--out", type=Path, required=True, help="the file, …/claims.csv")
    merge.set_defaults(run=_merge)

    collections = subparsers.add_parser(
        "collections",
        help="set the verdicts on every collection side by side",
        description=(
            "Measure claims on every collection of one protocol, beside the verdicts of the "
            "papers' own experiments; write claims_by_collection.csv and the page of that name."
        ),
        epilog=(
            "example: directrank claims collections "
            "paper_tables/real/one_protocol/per_query_*.parquet "
            "--claims paper_tables/real/claims.csv --margin 0.01 "
            "--out paper_tables/real/claims_by_collection.csv"
        ),
    )
    collections.add_argument(
        "files", metavar="PARQUET", type=Path, nargs="+", help="published values per query"
    )
    collections.add_argument("--claims", type=Path, required=True, help="what `claims merge` wrote")
    collections.add_argument(
        "--margin", type=float, required=True, help="differences of a metric up to it are equal"
    )
    collections.add_argument(
        "--out", type=Path, required=True, help="the file, …/claims_by_collection.csv"
    )
    collections.set_defaults(run=_collections)

    page = subparsers.add_parser(
        "count",
        help="put the count of verdicts on a page",
        description="Write the count of verdicts between the marks for it in a Markdown page.",
        epilog="example: directrank claims count paper_tables/real/claims.csv --page README.md",
    )
    page.add_argument("file", metavar="CSV", type=Path, help="what `claims merge` wrote")
    page.add_argument("--page", type=Path, required=True, help="the page, such as README.md")
    page.set_defaults(run=_count)


def _gallery(options: argparse.Namespace) -> None:
    from directrank.papers.shared.gallery import write

    write(options.figures, options.out)


def _add_results(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--results", type=Path, required=True, help="the edition's results, such as results/demo"
    )


def _product(options: argparse.Namespace) -> None:
    with uncollected():  # a product takes little longer than its imports
        from directrank.papers.shared.product import build, build_times

        runs, out = options.results / "runs", options.out.with_suffix("")
        if options.times:
            print(build_times(options.plan, runs, options.out, prepared_folder=options.prepared))
            return
        written = build(
            options.plan,
            runs,
            out,
            prepared_folder=options.prepared,
            claims_file=options.claims,
            values_files=options.values,
        )
        for path in written:
            print(path)


def _measure(options: argparse.Namespace) -> None:
    with uncollected():
        from directrank.papers.shared.claims import write_claims

    runs = options.results / "runs"
    for path in write_claims(options.plans, runs, options.out, options.margin):
        print(path)


def _merge(options: argparse.Namespace) -> None:
    with uncollected():
        from directrank.papers.shared.claims import merge
        from directrank.papers.shared.claims_page import write_page

    page = options.out.with_suffix(".md")
    write_page(merge(options.files, options.edition, options.out), page)
    print(options.out)
    print(page)


def _collections(options: argparse.Namespace) -> None:
    with uncollected():
        from directrank.papers.one_protocol.by_collection import write

    for path in write(options.files, options.claims, options.margin, options.out):
        print(path)


def _count(options: argparse.Namespace) -> None:
    from directrank.papers.shared.claims import read_claims
    from directrank.papers.shared.claims_page import replace_block

    replace_block(options.page, read_claims(options.file))
