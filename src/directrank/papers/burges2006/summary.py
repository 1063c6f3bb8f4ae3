"""Burges2006 in one picture: the slopes of Figure 1 and the speed-ups."""

from __future__ import annotations

from functools import partial

from directrank.papers.burges2006.speed import NETS, TITLES
from directrank.papers.shared import summary
from directrank.papers.shared.summary import Panel

#: What a legend says of the data of a table; the caption names them.
_DATA = {"table_speed": "", "table_speed_cubic": ", artificial data"}

PANELS = (
    Panel(
        title="Figure 1, slopes",
        axis="slope",
        tables=("table_figure1",),
        row=lambda rows: rows["quantity"].str.removeprefix("slope, ").map(TITLES),
        cell=("net", "quantity"),
        bars="half widths that reach the farther end of the range over processes",
        where=lambda rows: rows["quantity"].str.startswith("slope"),
        value="value",
        timed=True,
    ),
    Panel(
        title="Section 6.1, speed-up",
        axis="factor",
        tables=("table_speed", "table_speed_cubic"),
        row=lambda rows: rows["net"].map(NETS) + " nets" + rows["table"].map(_DATA),
        cell=("net", "quantity"),
        bars="half widths that reach the farther end of the range over processes",
        where=lambda rows: rows["quantity"].str.startswith("speed-up"),
        value="value",
        timed=True,
    ),
)

figure = partial(summary.figure, panels=PANELS)
