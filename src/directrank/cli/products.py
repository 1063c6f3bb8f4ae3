"""``directrank product``, ``gallery``, ``page``, ``claims`` and ``report``: what readers open."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from importlib import import_module
from pathlib import Path


def add_parsers(subparsers: argparse._SubParsersAction) -> None:
    """Add the commands of this module."""
    product = subparsers.add_parser(
        "product",
        help="draw one figure or write one table",
        description=(
            "Draw the figure or write the table that PLAN describes, in all its formats. Nothing "
            "is trained, so this takes seconds."
        ),
        epilog=(
            "example: directrank product results/demo/plan/bruch2019/figure2.json "
            "--results results/demo --out figures/demo/bruch2019/figure2"
        ),
    )
    product.add_argument("plan", metavar="PLAN", type=Path, help="the product's plan (JSON)")
    _add_results(product)
    product.add_argument(
        "--out", type=Path, required=True, help="the path of the files; its suffix is ignored"
    )
    product.add_argument(
        "--prepared",
        type=Path,
        default=Path("data/prepared"),
        help="the folder of prepared data sets, for products that describe them "
        "(default: %(default)s)",
    )
    product.add_argument(
        "--claims",
        type=Path,
        help="the verdicts on the paper's claims, …/<paper>/claims.csv, for products that quote "
        "them",
    )
    product.add_argument(
        "--values",
        metavar="FILE",
        type=Path,
        nargs="+",
        default=[],
        help="the values per query of each collection, for products that are made from them",
    )
    product.set_defaults(run=_product)

    gallery = subparsers.add_parser(
        "gallery",
        help="write the page that shows figures with their captions",
        description="Write a Markdown page of figures with the captions stored in the SVG files.",
    )
    gallery.add_argument("figures", metavar="SVG", type=Path, nargs="+", help="the figures")
    gallery.add_argument("--out", type=Path, required=True, help="the page to write")
    gallery.set_defaults(run=_call("papers.shared.pages:write_figures", "figures", "out"))

    page = subparsers.add_parser(
        "page",
        help="write a page that shows tables, or what follows from them",
        description="Write a Markdown page from the result files of an edition.",
    )
    _add_pages(page.add_subparsers(metavar="COMMAND", required=True))

    claims = subparsers.add_parser(
        "claims",
        help="test the papers' claims",
        description="Test the papers' claims, merge the verdicts, and show their counts on a page.",
    )
    _add_claims(claims.add_subparsers(metavar="COMMAND", required=True))

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
    add_edition(
        report,
        "the plans of the products (JSON)",
        "the folder of the edition's figures",
        "the folder of the edition's tables, with claims.csv",
    )
    report.add_argument("--out", type=Path, required=True, help="the HTML file to write")
    report.set_defaults(run=_report)


def _add_pages(subparsers: argparse._SubParsersAction) -> None:
    tables = subparsers.add_parser(
        "tables",
        help="name every table of an edition",
        description="Name every table of an edition with what is to be seen in it.",
        epilog="example: directrank page tables paper_tables/real/*/table*.md "
        "--out paper_tables/real/README.md",
    )
    tables.add_argument("tables", metavar="MD", type=Path, nargs="+", help="the tables")
    for name, has in (("claims", "verdicts on claims"), ("figures", "figures")):
        tables.add_argument(
            f"--{name}", action="store_true", help=f"link the edition's page of {has}"
        )
    tables.set_defaults(
        run=_call("papers.shared.pages:write_tables", "tables", "out", "claims", "figures")
    )

    numbers = subparsers.add_parser(
        "numbers",
        help="show all numbers of one protocol",
        description="Show every method on every collection of one protocol.",
        epilog="example: directrank page numbers paper_tables/real/one_protocol/table_*.md "
        "--out paper_tables/real/one_protocol/README.md",
    )
    numbers.add_argument("tables", metavar="MD", type=Path, nargs="+", help="the tables")
    numbers.set_defaults(run=_call("papers.one_protocol.numbers_page:write", "tables", "out"))

    losses = subparsers.add_parser(
        "losses",
        help="say which loss to take",
        description="Say which loss to take, by task and data; beside the page, losses.md has a "
        "section for each loss.",
        epilog="example: directrank page losses paper_tables/real/one_protocol/compared.json "
        "--out paper_tables/real/which_loss.md",
    )
    losses.add_argument(
        "compared",
        metavar="JSON",
        type=Path,
        help="what one protocol compares, beside the files of its comparison",
    )
    losses.add_argument(
        "--training-sizes",
        metavar="CSV",
        type=Path,
        help="the values of figure_training_size, to say what holds with more training queries",
    )
    losses.add_argument(
        "--times",
        metavar="CSV",
        type=Path,
        nargs="+",
        default=[],
        help="figure_*_time_times.csv of the collections, to say how long trees train",
    )
    losses.set_defaults(run=_losses_page)

    leaderboard = subparsers.add_parser(
        "leaderboard",
        help="write a page on which methods are filtered and compared two by two",
        description="Write one HTML page on which the methods of one protocol can be filtered, and "
        "any two of them compared. It loads nothing else.",
        epilog="example: directrank page leaderboard "
        "paper_tables/real/one_protocol/compared.json --out leaderboard.html",
    )
    leaderboard.add_argument(
        "compared",
        metavar="JSON",
        type=Path,
        help="what one protocol compares, beside the tables of its collections",
    )
    leaderboard.set_defaults(run=_call("report.leaderboard:write", "compared", "out"))

    queries = subparsers.add_parser(
        "queries",
        help="write a page that shows queries as two models rank them",
        description="Write one HTML page that shows test queries of MSRD as two trained models "
        "rank them, with the judgements, and how much the models differ over all queries. "
        "It loads nothing else, and has texts of MSRD (CC BY-SA 4.0).",
        epilog="example: directrank page queries ApproxNDCG=results/real/runs/RUN "
        "RankNet=results/real/runs/RUN --data data/prepared/msrd --out report/real/queries.html",
    )
    queries.add_argument(
        "runs",
        metavar="NAME=RESULTS",
        nargs="+",
        help="the result folders of runs on the same fold, each with the name to show",
    )
    queries.add_argument("--data", type=Path, required=True, help="MSRD's folder of prepared data")
    queries.add_argument(
        "--raw",
        type=Path,
        help="the folder of archives (default: $DIRECTRANK_RAW, or data/raw if it is not set)",
    )
    queries.set_defaults(run=_queries)

    captions = subparsers.add_parser(
        "captions",
        help="write the captions of Snakemake's report",
        description="Write a caption in reStructuredText for each figure and table, which "
        "`snakemake --report` shows beside it.",
        epilog="example: directrank page captions figures/demo/*/*.svg --out results/demo/captions",
    )
    captions.add_argument(
        "products", metavar="FILE", type=Path, nargs="+", help="SVG files and Markdown tables"
    )
    captions.set_defaults(run=_call("papers.shared.pages:write_captions", "products", "out"))

    manifest = subparsers.add_parser(
        "manifest",
        help="say what made each product",
        description="Say which commits, processors, arithmetic and settings made each product of "
        "an edition, with a digest of its data.",
        epilog="example: directrank page manifest results/real/plan/*/*.json "
        "--results results/real --figures figures/real --tables paper_tables/real "
        "--out paper_tables/real/manifest.json",
    )
    add_edition(
        manifest, "the products' plans", "such as figures/demo", "such as paper_tables/demo"
    )
    manifest.add_argument(
        "--known",
        metavar="JSON",
        type=Path,
        help="an earlier manifest, for products that were drawn again without their runs",
    )
    parts = ("plans", "results", "figures", "tables", "out", "known")
    manifest.set_defaults(run=_call("edition.manifest:write", *parts))

    for command in (tables, numbers, losses, leaderboard, queries, manifest):
        command.add_argument("--out", type=Path, required=True, help="the page to write")
    captions.add_argument("--out", type=Path, required=True, help="the folder to write")


def _add_claims(subparsers: argparse._SubParsersAction) -> None:
    measure = subparsers.add_parser(
        "measure",
        help="test the claims of one paper",
        description="Test every published claim of a paper; report tests, effects and verdicts.",
    )
    _add_plans(measure, "the plans of the paper's products (JSON)")
    _add_results(measure)
    measure.add_argument(
        "--out", type=Path, required=True, help="the file to write, …/<paper>/claims.csv"
    )
    measure.add_argument(
        "--margin",
        type=float,
        required=True,
        help="treat differences of a metric up to this as equivalent",
    )
    measure.set_defaults(run=_measure)

    merge = subparsers.add_parser(
        "merge",
        help="merge the verdicts on the papers' claims into those of an edition",
        description="Merge the papers' claims; write claims.csv and the page claims.md.",
        epilog=(
            "example: directrank claims merge paper_tables/real/*/claims.csv --edition real "
            "--out paper_tables/real/claims.csv"
        ),
    )
    merge.add_argument(
        "files", metavar="CSV", type=Path, nargs="*", help="files written by `claims measure`"
    )
    merge.add_argument("--edition", required=True, help="the edition's name, such as real")
    merge.add_argument("--out", type=Path, required=True, help="the file to write, …/claims.csv")
    merge.add_argument(
        "--by-collection",
        action="store_true",
        help="link the page of `claims collections`, which is in the same folder",
    )
    merge.set_defaults(run=_merge)

    picture = subparsers.add_parser(
        "picture",
        help="draw every claim with our effect and the verdict",
        description="Draw every measured claim in words, with the values that agree with it, our "
        "effect with its interval, and the verdict.",
        epilog="example: directrank claims picture paper_tables/real/claims.csv "
        "--out figures/real/overview",
    )
    picture.add_argument("file", metavar="CSV", type=Path, help="written by `claims merge`")
    picture.add_argument("--out", type=Path, required=True, help="the files, without suffix")
    picture.set_defaults(run=_picture)

    collections = subparsers.add_parser(
        "collections",
        help="compare the verdicts on every collection",
        description=(
            "Test claims on every collection of one protocol, and show the verdicts beside those "
            "of the papers' own experiments; write claims_by_collection.csv and .md."
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
    collections.add_argument(
        "--claims", type=Path, required=True, help="the file written by `claims merge`"
    )
    collections.add_argument(
        "--margin",
        type=float,
        required=True,
        help="treat differences of a metric up to this as equivalent",
    )
    collections.add_argument(
        "--out", type=Path, required=True, help="the file to write, …/claims_by_collection.csv"
    )
    collections.set_defaults(run=_collections)

    page = subparsers.add_parser(
        "count",
        help="write the counts of verdicts into a page",
        description="Write the counts of verdicts between their markers in a Markdown page.",
        epilog="example: directrank claims count paper_tables/real/claims.csv "
        "--page docs/findings.md",
    )
    page.add_argument("file", metavar="CSV", type=Path, help="the file written by `claims merge`")
    page.add_argument("--page", type=Path, required=True, help="the page, such as docs/findings.md")
    page.set_defaults(run=_count)


def _call(function: str, *names: str) -> Callable[[argparse.Namespace], None]:
    """A handler that calls ``module:function`` of this package with the options ``names``."""

    def run(options: argparse.Namespace) -> None:
        module, name = function.split(":")
        write = getattr(import_module(f"directrank.{module}"), name)
        write(*(getattr(options, each) for each in names))

    return run


def _queries(options: argparse.Namespace) -> None:
    from directrank.data.catalog import raw_folder
    from directrank.report.queries import write
    from directrank.system.errors import ConfigError

    named = [text.partition("=") for text in options.runs]
    for name, _, folder in named:
        if not (name and folder):
            raise ConfigError(
                f"'{name}{folder}' is not NAME=RESULTS",
                "write such as RankNet=results/demo/runs/RUN",
            )
    folders = {name: Path(folder) for name, _, folder in named}
    write(folders, options.data, raw_folder(options.raw), options.out)


def _losses_page(options: argparse.Namespace) -> None:
    import pandas as pd

    from directrank.papers.one_protocol.choice import read
    from directrank.papers.one_protocol.choice_page import write

    sizes = options.training_sizes and pd.read_csv(options.training_sizes)
    for path in write(read(options.compared, times=options.times), options.out, sizes):
        print(path)


def add_edition(command: argparse.ArgumentParser, plans: str, figures: str, tables: str) -> None:
    """Add the options that name an edition's plans, results, figures and tables.

    Args:
        command: the parser of a command.
        plans, figures, tables: what each is, for ``--help``.
    """
    _add_plans(command, plans)
    _add_results(command)
    command.add_argument("--figures", type=Path, required=True, help=figures)
    command.add_argument("--tables", type=Path, required=True, help=tables)


def _add_plans(command: argparse.ArgumentParser, what: str) -> None:
    command.add_argument("plans", metavar="PLAN", type=Path, nargs="+", help=what)


def _add_results(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--results", type=Path, required=True, help="the edition's results, such as results/demo"
    )


def _product(options: argparse.Namespace) -> None:
    from directrank.papers.shared.product import build

    written = build(
        options.plan,
        options.results / "runs",
        options.out.with_suffix(""),
        options.prepared,
        claims_file=options.claims,
        values_files=options.values,
    )
    for path in written:
        print(path)


def _measure(options: argparse.Namespace) -> None:
    from directrank.papers.shared.claims import write_claims

    runs = options.results / "runs"
    for path in write_claims(options.plans, runs, options.out, options.margin):
        print(path)


def _merge(options: argparse.Namespace) -> None:
    from directrank.papers.shared.claims import merge
    from directrank.papers.shared.claims_page import write_page

    page = options.out.with_suffix(".md")
    claims = merge(options.files, options.edition, options.out)
    write_page(claims, page, by_collection=options.by_collection)
    print(options.out)
    print(page)


def _picture(options: argparse.Namespace) -> None:
    from directrank.papers.shared.claims import read_claims
    from directrank.papers.shared.overview import draw

    for path in draw(read_claims(options.file), options.out):
        print(path)


def _collections(options: argparse.Namespace) -> None:
    from directrank.papers.one_protocol.by_collection import write

    for path in write(options.files, options.claims, options.margin, options.out):
        print(path)


def _count(options: argparse.Namespace) -> None:
    from directrank.papers.shared.claims import read_claims
    from directrank.papers.shared.claims_page import replace_block

    replace_block(options.page, read_claims(options.file))


def _report(options: argparse.Namespace) -> None:
    from directrank.report.build import write

    claims = options.tables / "claims.csv"
    write(options.plans, options.results, claims, options.figures, options.tables, options.out)
    print(options.out)
