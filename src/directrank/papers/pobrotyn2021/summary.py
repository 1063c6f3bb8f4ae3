"""Pobrotyn2021 in one picture: what the paper prints and the edition measures, frame by frame."""

from __future__ import annotations

from functools import partial

from directrank.papers.pobrotyn2021.methods import PARTS, printed_name
from directrank.papers.shared import summary
from directrank.papers.shared.summary import Panel, rows_where

PANELS = (
    Panel(
        title="Table 1, sorting",
        axis="value",
        tables=("table1",),
        row=lambda rows: "τ = " + rows["tau"].replace("lim tau->0", "0"),
        cell=("tau", "place"),
        value="value",
    ),
    Panel(
        title="Table 2, data sets",
        axis="count",
        tables=("table2",),
        row="statistic",
        where=lambda rows: rows["data"] != "stand-in",  # which are smaller on purpose
        cell=("paper_dataset", "statistic"),
        value="value",
        relative=True,
    ),
    *(
        Panel(
            title=f"Table 3, {title}",
            axis="NDCG (points)",
            tables=("table3",),
            row=lambda rows: rows["method"].map(printed_name),
            cell=("paper_dataset", "method", "metric"),
            frame="metric",
            bars="95% intervals over trials",
            where=rows_where("paper_dataset", title),
        )
        for title, _ in PARTS.values()
    ),
)

figure = partial(summary.figure, panels=PANELS)
