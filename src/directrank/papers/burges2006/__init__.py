"""Burges, Ragno, Le (NIPS 2006): learning to rank with nonsmooth cost functions (LambdaRank)."""

from __future__ import annotations

from directrank.papers.burges2006 import claims, ndcg
from directrank.papers.burges2006.choices import RECIPES, table_lambdas, table_recipe
from directrank.papers.burges2006.speed import NETS, figure1a, figure1b, table_figure1
from directrank.papers.burges2006.speed import claim as claim_speed
from directrank.papers.shared import summary
from directrank.papers.shared.claims import Claim
from directrank.papers.shared.evidence import Evidence
from directrank.papers.shared.product import FigureResult, Product, TableResult
from directrank.papers.shared.summary import Panel

BOTH = ("two_layer", "linear")


def figure2a(evidence: Evidence) -> FigureResult:
    """Figure 2, left: the artificial data."""
    return ndcg.figure(evidence, "artificial", BOTH, "Artificial data from a cubic polynomial")


def figure2b(evidence: Evidence) -> FigureResult:
    """Figure 2, right: in the place of the intranet data."""
    return ndcg.figure(evidence, "intranet", ("linear",), "In the place of intranet search data")


def figure3a(evidence: Evidence) -> FigureResult:
    """Figure 3, left: in the place of the Web data, linear nets."""
    return ndcg.figure(evidence, "web", ("linear",), "In the place of Web data, linear nets")


def figure3b(evidence: Evidence) -> FigureResult:
    """Figure 3, right: in the place of the Web data, two layer nets."""
    return ndcg.figure(evidence, "web", ("two_layer",), "In the place of Web data, two layer nets")


def table_figure2a(evidence: Evidence) -> TableResult:
    """The values of Figure 2, left."""
    return ndcg.table(evidence, "artificial", "Artificial data from a cubic polynomial")


def table_figure2b(evidence: Evidence) -> TableResult:
    """The values of Figure 2, right."""
    return ndcg.table(evidence, "intranet", "In the place of intranet search data")


def table_figure3(evidence: Evidence) -> TableResult:
    """The values of Figure 3."""
    return ndcg.table(evidence, "web", "In the place of Web data")


PAPER = "Burges et al. (2006)"

PRODUCTS = {
    "figure1a": Product(
        "figure",
        f"Figure 1 (left) of {PAPER}: speeding up RankNet training",
        ("speedup",),
        figure1a,
        timed=True,
    ),
    "figure1b": Product(
        "figure",
        f"Figure 1 (right) of {PAPER}: time against number of documents",
        ("lengths",),
        figure1b,
        timed=True,
    ),
    "figure2a": Product(
        "figure",
        f"Figure 2 (left) of {PAPER}: cubic polynomial data",
        ("artificial",),
        figure2a,
    ),
    "figure2b": Product(
        "figure",
        f"Figure 2 (right) of {PAPER}: intranet search data",
        ("intranet",),
        figure2b,
    ),
    "figure3a": Product(
        "figure", f"Figure 3 (left) of {PAPER}: Web data, linear nets", ("web",), figure3a
    ),
    "figure3b": Product(
        "figure", f"Figure 3 (right) of {PAPER}: Web data, two layer nets", ("web",), figure3b
    ),
    "table_figure1": Product(
        "table",
        f"Figure 1 of {PAPER} in numbers: slopes and speed-ups",
        ("lengths",),
        table_figure1,
        timed=True,
    ),
    "table_figure2a": Product(
        "table", f"Figure 2 (left) of {PAPER} in numbers", ("artificial",), table_figure2a
    ),
    "table_figure2b": Product(
        "table", f"Figure 2 (right) of {PAPER} in numbers", ("intranet",), table_figure2b
    ),
    "table_figure3": Product("table", f"Figure 3 of {PAPER} in numbers", ("web",), table_figure3),
    "table_lambdas": Product(
        "table",
        f"Lambda functions of {PAPER}, section 6.2, that the paper does not print",
        ("lambdas",),
        table_lambdas,
    ),
    "table_recipe": Product(
        "table",
        f"What hangs on the reading of the artificial data of {PAPER}",
        tuple(RECIPES),
        table_recipe,
    ),
}

PRODUCTS["summary"] = summary.product(
    PAPER,
    [
        Panel(
            title="Figure 1, slopes",
            axis="slope",
            tables={"table_figure1": table_figure1},
            series="quantity",
            cell=("net", "quantity"),
            bars="95% interval of the fit",
            where=lambda rows: rows["quantity"].str.startswith("slope"),
            value="value",
            timed=True,
        ),
        Panel(
            title="Section 6.1, speed-up",
            axis="factor",
            tables={"table_figure1": table_figure1},
            series=lambda rows: rows["net"].map(NETS) + " nets",
            cell=("net", "quantity"),
            bars="95% interval from the spread of the epochs",
            where=lambda rows: rows["quantity"].str.startswith("speed-up"),
            value="value",
            timed=True,
        ),
    ],
)

CLAIMS = {
    "C22": Claim(("figure1b",), claim_speed, optional=("figure1a",)),
    "C23": Claim(("figure2a",), claims.claim_better, optional=("figure3a", "figure2b")),
    "D15": Claim(("figure2a",), claims.claim_gap),
    "D16": Claim(("table_lambdas",), claims.claim_chosen),
    "D17": Claim(("figure2b",), claims.claim_small),
    "D18": Claim(("figure3a",), claims.claim_linear),
}
