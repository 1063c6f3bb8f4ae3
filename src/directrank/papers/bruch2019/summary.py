"""Bruch2019 in one picture: the cells of Table 1."""

from __future__ import annotations

from functools import partial

from directrank.papers.bruch2019.table1 import TABLE1_PARTS
from directrank.papers.shared import summary
from directrank.papers.shared.summary import Panel, rows_where

PANELS = tuple(
    Panel(
        title=f"Table 1, {title}",
        axis="NDCG (points)",
        tables=("table1",),
        row="method",
        cell=("paper_dataset", "method", "metric"),
        frame="metric",
        bars="95% intervals over trials",
        where=rows_where("paper_dataset", title),
    )
    for title in TABLE1_PARTS.values()
)

figure = partial(summary.figure, panels=PANELS)
