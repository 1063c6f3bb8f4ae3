"""``directrank draw``: make the products of a paper, each in a process of its own."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from directrank.cli.forked import imported, run_all
from directrank.cli.products import add_edition
from directrank.system.processes import Command

if TYPE_CHECKING:
    from directrank.papers.shared.product import Product

#: What products share, beside the modules of their own.
MODULES = (
    "directrank.papers.shared.claims",
    "directrank.papers.shared.summary",
    "matplotlib.backends.backend_agg",
    "matplotlib.backends.backend_pdf",
    "matplotlib.backends.backend_svg",
    "pyarrow.dataset",
    "pyarrow.parquet",
    "scipy.stats",
)


def add_parsers(subparsers: argparse._SubParsersAction) -> None:
    """Add the command of this module."""
    draw = subparsers.add_parser(
        "draw",
        help="test the claims of a paper and make its figures and tables",
        description=(
            "Make the products of a paper one after another, each with `directrank product` in a "
            "process of its own. Its claims are tested first, because products quote verdicts."
        ),
        epilog=(
            "example: directrank draw results/demo/plan/bruch2019/*.json --results results/demo "
            "--figures figures/demo --tables paper_tables/demo --logs logs/demo --margin 0.01"
        ),
    )
    add_edition(
        draw,
        "the plans of the products (JSON)",
        "the folder of the edition's figures",
        "the folder of the edition's tables",
    )
    draw.add_argument(
        "--prepared",
        type=Path,
        default=Path("data/prepared"),
        help="the folder of prepared data sets (default: %(default)s)",
    )
    draw.add_argument(
        "--logs", type=Path, required=True, help="the folder of the logs, one per product"
    )
    draw.add_argument(
        "--margin",
        type=float,
        help="test the paper's claims, treating differences of a metric up to this as equivalent",
    )
    draw.add_argument(
        "--values",
        metavar="FILE",
        type=Path,
        nargs="*",
        default=[],
        help="the values per query of each collection, for products that are made from them",
    )
    draw.set_defaults(run=_draw, forks=True)


def _draw(options: argparse.Namespace) -> None:
    with imported(*MODULES):
        from directrank.papers.shared.evidence import read_plan
        from directrank.papers.shared.product import RENDERING, modules_of, product

    plans = {path: read_plan(path) for path in options.plans}
    products = {path: product(plan["paper"], plan["product"]) for path, plan in plans.items()}
    modules = set[str]().union(*(modules_of(p["paper"], p["product"]) for p in plans.values()))
    with imported(RENDERING, *sorted(modules)):
        commands = list(_commands(plans, products, options))
    run_all(commands, len(commands))


def _commands(
    plans: Mapping[Path, Mapping[str, Any]],
    products: Mapping[Path, Product],
    options: argparse.Namespace,
) -> Iterator[Command]:
    """The commands that make the products, those first on whose files others depend."""
    paper = next(iter(plans.values()))["paper"]
    claims = options.tables / paper / "claims.csv"
    results: list[object] = ["--results", options.results]
    if options.margin is not None:
        measure = ["claims", "measure", *plans, *results]
        measure += ["--margin", options.margin, "--out", claims]
        yield Command(f"claims of {paper}", measure, options.logs / f"claims/{paper}.log")
    results += ["--prepared", options.prepared]
    for path in sorted(plans, key=lambda path: products[path].kind != "values"):
        item, name = products[path], plans[path]["product"]
        top = options.figures if item.kind == "figure" else options.tables
        out = top / paper / f"{name}{item.suffixes[0]}"
        make = ["product", path, *results, "--out", out]
        make += ["--claims", claims] if item.claims else []
        make += ["--values", *options.values] if item.reads else []
        yield Command(name, make, options.logs / f"{item.kind}/{paper}/{name}.log")
