"""Burges2006 in one picture: the slopes and speed-ups of Figure 1."""

from __future__ import annotations

from functools import partial

from directrank.papers.burges2006.speed import NETS
from directrank.papers.shared import summary
from directrank.papers.shared.summary import Panel

PANELS = (
    Panel(
        title="Figure 1, slopes",
        axis="slope",
        tables=("table_figure1",),
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
        tables=("table_figure1",),
        series=lambda rows: rows["net"].map(NETS) + " nets",
        cell=("net", "quantity"),
        bars="95% interval from the spread of the epochs",
        where=lambda rows: rows["quantity"].str.startswith("speed-up"),
        value="value",
        timed=True,
    ),
)

figure = partial(summary.figure, panels=PANELS)
