"""``directrank product`` and ``directrank claims``: from results to figures, tables, verdicts."""

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
        help="evaluate the papers' claims",
        description="Evaluate every published claim from result files: test, effect, verdict.",
    )
    claims.add_argument(
        "plans", metavar="PLAN", type=Path, nargs="+", help="the products' plans (JSON)"
    )
    _add_results(claims)
    claims.add_argument(
        "--out", type=Path, required=True, help="the files' path; its ending does not matter"
    )
    claims.set_defaults(run=_claims)


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
        for path in build(options.plan, runs, out, prepared_folder=options.prepared):
            print(path)


def _claims(options: argparse.Namespace) -> None:
    with uncollected():
        from directrank.papers.shared.claims import write_claims

    for path in write_claims(options.plans, options.results / "runs", options.out.with_suffix("")):
        print(path)
