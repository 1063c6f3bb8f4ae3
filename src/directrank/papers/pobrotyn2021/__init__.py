"""Pobrotyn, Białobrzeski (2021): NeuralNDCG. Its figures, tables and claims by name.

The modules beside this one import functions from their own modules, not through the registries, so
that the workflow draws figures again when one of them changes.
"""

from __future__ import annotations

from functools import partial

import pandas as pd

from directrank.papers.pobrotyn2021.analytic import (
    TABLE2_DATASETS,
    claim_curves,
    figure1,
    figure2,
    table1,
    table2,
)
from directrank.papers.pobrotyn2021.claims import (
    claim_above_approx,
    claim_best,
    claim_on_par,
    claim_smoothness,
)
from directrank.papers.pobrotyn2021.network import table_network
from directrank.papers.pobrotyn2021.selection import SMOOTHNESS, table_selection
from directrank.papers.pobrotyn2021.sinkhorn import table_sinkhorn, table_transpose
from directrank.papers.pobrotyn2021.sorting import figure_sinkhorn, figure_tau
from directrank.papers.pobrotyn2021.table3 import (
    PARTS,
    printed_name,
    rows_of,
    table3,
    table_ohsumed,
)
from directrank.papers.pobrotyn2021.time import table_time
from directrank.papers.shared import summary
from directrank.papers.shared.claims import Claim
from directrank.papers.shared.product import Product
from directrank.papers.shared.summary import Panel

CLAIMS: dict[str, Claim] = {
    "C19": Claim((), claim_above_approx, optional=("table3", "table_ohsumed")),
    "C20": Claim((), claim_best, optional=("table3", "table_ohsumed")),
    "C21": Claim(("figure1", "figure2"), claim_curves),
    "D13": Claim((), claim_on_par, optional=("table3", "table_ohsumed")),
    "D14": Claim(("table_selection",), claim_smoothness),
}

#: Loss → the family by which the summary sets it apart.
_FAMILIES = dict.fromkeys(("ListNet", "ListMLE", "RMSE"), "listwise, RMSE")


def _family(rows: pd.DataFrame) -> pd.Series:
    return rows["method"].str.partition("@")[0].replace(_FAMILIES).map(printed_name)


#: What the paper prints and the edition measures, frame by frame.
SUMMARY = (
    Panel(
        title="Table 1, sorting",
        axis="value",
        tables={"table1": table1},
        series=lambda rows: "τ: " + rows["tau"].replace("lim tau->0", "0"),
        cell=("tau", "place"),
        value="value",
    ),
    Panel(
        title="Table 2, data sets",
        axis="count",
        tables={"table2": table2},
        series="statistic",
        where=lambda rows: rows["data"] != "stand-in",  # which are smaller on purpose
        cell=("paper_dataset", "statistic"),
        value="value",
        log=True,
    ),
    *(
        Panel(
            title=f"Table 3, {title}",
            axis="NDCG (%)",
            tables={"table3": table3},
            series=_family,
            cell=("paper_dataset", "method", "metric"),
            bars="95% intervals over trials",
            where=partial(rows_of, title=title),
            ranked="metric",
        )
        for title, _ in PARTS.values()
    ),
)

_OF = "of Pobrotyn and Białobrzeski (2021)"
_TO = "Beyond Pobrotyn and Białobrzeski (2021)"

PRODUCTS: dict[str, Product] = {
    "summary": summary.product("Pobrotyn and Białobrzeski (2021)", SUMMARY),
    "figure1": Product("figure", f"Figure 1 {_OF}: NeuralNDCG and Sinkhorn scaling", (), figure1),
    "figure2": Product("figure", f"Figure 2 {_OF}: NeuralNDCG and the temperature", (), figure2),
    "figure_tau": Product(
        "figure", f"{_TO}: error and variance of the gradient by temperature", (), figure_tau
    ),
    "figure_sinkhorn": Product(
        "figure", f"{_TO}: how far Sinkhorn scaling is from converged", (), figure_sinkhorn
    ),
    "table1": Product("table", f"Table 1 {_OF}: approximate sorting with NeuralSort", (), table1),
    "table2": Product(
        "table",
        f"Table 2 {_OF}: statistics of the data sets",
        (),
        table2,
        data=tuple(TABLE2_DATASETS.values()),
    ),
    "table3": Product("table", f"Table 3 {_OF}: test NDCG by loss", tuple(PARTS), table3),
    "table_ohsumed": Product(
        "table", f"{_TO}: the losses of Table 3 on OHSUMED", ("ohsumed_losses",), table_ohsumed
    ),
    "table_transpose": Product(
        "table",
        f"{_TO}: NeuralNDCG and its transpose in training",
        ("sinkhorn_web30k", "table3_web30k"),
        partial(table_transpose, pairs="sinkhorn_web30k", rows="table3_web30k"),
    ),
    "table_transpose_ohsumed": Product(
        "table",
        f"{_TO}: NeuralNDCG and its transpose in training on OHSUMED",
        ("sinkhorn_ohsumed",),
        partial(table_transpose, pairs="sinkhorn_ohsumed", rows=None),
    ),
    "table_sinkhorn": Product(
        "table",
        f"{_TO}: the effect of Sinkhorn scaling on training",
        ("sinkhorn_web30k",),
        partial(table_sinkhorn, pairs="sinkhorn_web30k"),
    ),
    "table_sinkhorn_ohsumed": Product(
        "table",
        f"{_TO}: the effect of Sinkhorn scaling on training on OHSUMED",
        ("sinkhorn_ohsumed",),
        partial(table_sinkhorn, pairs="sinkhorn_ohsumed"),
    ),
    "table_selection": Product(
        "table",
        f"{_TO}: smoothness chosen on validation and on test",
        tuple(SMOOTHNESS),
        table_selection,
    ),
    "table_network": Product(
        "table",
        f"{_TO}: the gain of the ranker and the gain of the loss",
        ("table3_web30k", "plain_web30k"),
        table_network,
    ),
    "table_time": Product(
        "table",
        f"{_TO}: what each loss costs in training",
        tuple(PARTS),
        table_time,
        timed=True,
    ),
}
