"""Bruch, Zoghi, Bendersky, Najork (SIGIR 2019): revisiting approximate metric optimisation.

Queries without a relevant document are left out of every mean, as in the paper (section 3.1);
NDCG is in per cent; intervals are Student's t at 95 % over the trials.
"""

from __future__ import annotations

from functools import partial

from directrank.papers.bruch2019.claims import (
    claim_alpha,
    claim_depth,
    claim_overfitting,
    claim_rankers,
    claim_sigmoid,
)
from directrank.papers.bruch2019.sweeps import figure1, figure2, figure3
from directrank.papers.bruch2019.table1 import RANKLIB, TABLE1_PARTS, rows_of, table1
from directrank.papers.shared import summary
from directrank.papers.shared.claims import Claim
from directrank.papers.shared.product import Product
from directrank.papers.shared.summary import Panel

CLAIMS: dict[str, Claim] = {
    "C01": Claim(("table1",), partial(claim_rankers, others=(RANKLIB,), above=True)),
    "C02": Claim(("table1",), partial(claim_rankers, others=("λMART_GBM",), above=False)),
    "C03": Claim(
        ("table1",),
        partial(
            claim_rankers,
            others=("ListMLE", "RankNet"),
            above=True,
            parts={"table1_web30k": "Web30K"},  # for Yahoo the paper prints no values
        ),
    ),
    "C04": Claim(("figure2",), claim_alpha),
    "C05": Claim(("figure3",), claim_depth),
    "D01": Claim(("figure1",), claim_sigmoid),
    "D02": Claim(("figure3",), claim_overfitting),
}

SUMMARY = tuple(
    Panel(
        title=f"Table 1, {printed_name}",
        axis="NDCG (%)",
        tables={"table1": table1},
        series="method",
        cell=("paper_dataset", "method", "metric"),
        bars="95% intervals over trials",
        where=partial(rows_of, printed_name=printed_name),
        ranked="metric",
    )
    for printed_name in TABLE1_PARTS.values()
)

PRODUCTS: dict[str, Product] = {
    "figure1": Product(
        "figure",
        "Figure 1 of Bruch et al. (2019): sigmoid approximation of the indicator function",
        (),
        figure1,
    ),
    "figure2": Product(
        "figure",
        "Figure 2 of Bruch et al. (2019): NDCG against the sigmoid exponent",
        ("alpha_sweep",),
        figure2,
    ),
    "figure3": Product(
        "figure",
        "Figure 3 of Bruch et al. (2019): NDCG against the depth of the network",
        ("depth_sweep",),
        figure3,
    ),
    "summary": summary.product("Bruch et al. (2019)", SUMMARY),
    "table1": Product(
        "table",
        "Table 1 of Bruch et al. (2019): ranking models on the test sets",
        tuple(TABLE1_PARTS),
        table1,
    ),
}
