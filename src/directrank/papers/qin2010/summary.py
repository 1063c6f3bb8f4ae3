"""Qin2010 in one picture: what the paper prints and the edition measures, frame by frame."""

from __future__ import annotations

from functools import partial

import pandas as pd

from directrank.papers.qin2010.map import BASELINES
from directrank.papers.shared import summary
from directrank.papers.shared.summary import Panel

#: Number of section 4 in the published file → how the picture calls it.
BOUNDS = {
    "epsilon = max |pi_hat - pi| in Table 1": "ε",
    "bound (n-1)/(exp(delta*alpha)+1), n=5, alpha=100": "bound of ε, n = 5",
    "bound for n=1000, alpha=200": "bound of ε, n = 1000",
    "|AP_hat-AP| bound, beta=100, |D+|=1": "bound of AP's error",
    "|NDCG_hat-NDCG| bound eps/(2 ln 2)": "bound of NDCG's error",
}


def not_in_table4(rows: pd.DataFrame) -> pd.Series:
    """Which rows of the baselines hold a published value that Table 4 does not show too."""
    shown = rows["method"].isin(["Ranking SVM", "ListNet"]) & (rows["metric"] != "MAP")
    return ~shown & rows["method"].isin(BASELINES)


PANELS = (
    Panel(
        title="Section 4, bounds",
        axis="value",
        tables=("table1",),
        row=lambda rows: rows["quantity"].map(BOUNDS),
        cell=("quantity",),
        value="value",
        relative=True,
    ),
    Panel(
        title="Table 2, data sets",
        axis="value",
        tables=("table2",),
        row="statistic",
        where=lambda rows: rows["data"] != "stand-in",  # which are smaller on purpose
        cell=("paper_dataset", "statistic"),
        value="value",
        relative=True,
    ),
    Panel(
        title="Table 3, TD2003 and TD2004",
        axis="MAP",
        tables=("table3",),
        row="method",
        cell=("paper_dataset", "method", "metric"),
        frame="paper_dataset",
        bars="95% intervals over queries",
    ),
    Panel(
        title="Table 4, OHSUMED",
        axis="NDCG",
        tables=("table4",),
        row="method",
        cell=("method", "metric"),
        frame="metric",
        bars="95% intervals over queries",
        where=lambda rows: rows["discount"] == "letor",
    ),
    Panel(
        title="LETOR 3.0, OHSUMED",
        axis="MAP and NDCG",
        tables=("baselines",),
        row="method",
        cell=("method", "metric"),
        frame="metric",
        bars="95% intervals over queries",
        where=not_in_table4,
    ),
)

figure = partial(summary.figure, panels=PANELS)
