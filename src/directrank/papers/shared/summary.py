"""A paper in one picture: what it prints against what came out here, a point per table cell.

The cells are those of the tables that the edition makes; nothing is run or computed for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import NullFormatter

from directrank.papers.shared import figures
from directrank.papers.shared.differences import COLUMNS as DIFFERENCES
from directrank.papers.shared.differences import of_other_data
from directrank.papers.shared.evidence import NOT_COMPARABLE, OTHER_REAL, Evidence
from directrank.papers.shared.product import FigureResult, TableResult, draw
from directrank.system.errors import DataError

#: Statuses of a value that is computed exactly and either is the printed one or is not.
EXACT = {"met", "not met", "misprint in the paper"}

#: What a run of this study decides of a cell; the rest is known without it.
MEASURED = ("reproduced", "half_width", *DIFFERENCES)

#: What a picture says of cells that are not of the paper's data.
NOTES = {
    "stand-in": "stand-ins are generated data",
    OTHER_REAL: "other real data are not the paper's own",
}

#: So many joint standard errors from print a cell is counted as near it.
NEAR = 2.0


@dataclass(frozen=True)
class Panel:
    """Cells that share a frame.

    Attributes:
        title: e.g. ``Table 4, OHSUMED``.
        axis: what is measured, with its unit.
        tables: the products of the paper that the cells are of.
        series: column of the tables whose values are told apart by colour and marker; or what
            makes those values of a table's rows.
        cell: columns that together name a cell.
        bars: what the error bars are, for the caption; empty where there are none.
        where: which rows of the tables belong here; all by default.
        value: the column of reproduced values.
        log: whether the axes are logarithmic.
        timed: whether the values are measured times, kept in the tables' ``times``.
    """

    title: str
    axis: str
    tables: Sequence[str]
    series: str | Callable[[pd.DataFrame], pd.Series]
    cell: Sequence[str]
    bars: str = ""
    where: Callable[[pd.DataFrame], pd.Series] | None = None
    value: str = "mean"
    log: bool = False
    timed: bool = False


def figure(evidence: Evidence, panels: Sequence[Panel]) -> FigureResult:
    """Draw the panels of which the edition makes a table.

    Raises:
        DataError: no cell has both a printed and a reproduced value.
    """
    tables: dict[str, FigureResult | TableResult] = {}
    drawn = []
    for panel in panels:
        cells = _cells(evidence, panel, tables)
        if len(cells):
            drawn.append((panel, cells))
    if not drawn:
        raise DataError(
            "no table of this edition has a value that the paper prints too",
            f"let the edition make one of {', '.join(tables_of(panels))}",
        )
    columns = min(2, len(drawn))
    rows = math.ceil(len(drawn) / columns)
    picture, axes = figures.new_figure(
        width=columns * figures.COLUMN,
        height=0.35 + 2.3 * rows,
        nrows=rows,
        ncols=columns,
        squeeze=False,
    )
    for frame, (panel, cells) in zip(axes.flat, drawn, strict=False):
        _draw(frame, panel, cells)
    for frame in axes.flat[len(drawn) :]:
        frame.set_axis_off()
    data = pd.concat([cells for _, cells in drawn], ignore_index=True)
    notes = [text for kind, text in NOTES.items() if (data["data"] == kind).any()]
    if notes:
        said = "; ".join(notes)
        said = f"{said[0].upper()}{said[1:]} (edition {evidence.edition})"
        figures.small_print(picture, said)
    # Square frames beside legends: the layout needs to see its own result once.
    picture.draw_without_rendering()
    caption = _caption(evidence, drawn)
    if not any(panel.timed for panel, _ in drawn):
        return FigureResult(picture, data, caption)
    return FigureResult(picture, data.drop(columns=list(MEASURED)), caption, data)


def rows_where(column: str, value: str) -> Callable[[pd.DataFrame], pd.Series]:
    """For a panel's ``where``: the rows with ``value`` in ``column``."""
    return lambda rows: rows[column] == value


def tables_of(panels: Sequence[Panel]) -> tuple[str, ...]:
    """The products whose cells the panels show: what the product ``summary`` repeats."""
    return tuple(dict.fromkeys(name for panel in panels for name in panel.tables))


def _cells(
    evidence: Evidence, panel: Panel, tables: dict[str, FigureResult | TableResult]
) -> pd.DataFrame:
    """The panel's cells that have a printed and a reproduced value, one row each."""
    frames = []
    for name in panel.tables:
        if name not in evidence.repeats:
            continue
        if name not in tables:
            tables[name] = draw(evidence, name)
        times = tables[name].times if panel.timed else None
        source = tables[name].data if times is None else times
        rows = source[source["published"].notna() & source[panel.value].notna()]
        if panel.where is not None:
            rows = rows[panel.where(rows)]
        frames.append(rows.assign(table=name))
    rows = pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()
    if rows.empty:
        return rows
    series = rows[panel.series] if isinstance(panel.series, str) else panel.series(rows)
    return pd.DataFrame(
        {
            "edition": evidence.edition,
            "panel": panel.title,
            "table": rows["table"],
            "cell": rows[list(panel.cell)].astype(str).agg(", ".join, axis=1),
            "series": series.astype(str),
            "dataset": rows.get("dataset", ""),
            "data": rows["data"],
            "published": rows["published"].astype(float),
            "published_half_width": rows.get("published_half_width", math.nan),
            "reproduced": rows[panel.value].astype(float),
            "half_width": rows.get("half_width", math.nan),
            **{column: rows[column] for column in DIFFERENCES},
            "status": rows["status"],
        }
    )


def _draw(axes: Axes, panel: Panel, cells: pd.DataFrame) -> None:
    for number, (name, part) in enumerate(cells.groupby("series", sort=False)):
        look = figures.SERIES[number % len(figures.SERIES)] | {"linestyle": "none"}
        bars = axes.errorbar(
            part["published"],
            part["reproduced"],
            xerr=np.nan_to_num(part["published_half_width"].astype(float)),
            yerr=np.nan_to_num(part["half_width"].astype(float)),
            elinewidth=0.6,
            capsize=0,
            markersize=3.6,
            markeredgecolor="white",
            markeredgewidth=0.3,
            **look,
        )
        bars.lines[0].set_label(name)
    if panel.log:
        axes.set(xscale="log", yscale="log")
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_minor_formatter(NullFormatter())
    axes.set(xlabel=f"{panel.axis}, published", ylabel="reproduced", box_aspect=1)
    if _comparable(cells):
        # The same range on both axes, so that equal values lie on the diagonal.
        low, high = zip(axes.get_xlim(), axes.get_ylim(), strict=True)
        limits = _widened(min(low), max(high), panel.log)
        axes.set(xlim=limits, ylim=limits)
        axes.axline((limits[0], limits[0]), (limits[1], limits[1]), color="#777777",
                    linewidth=0.8, zorder=0.5)  # fmt: skip
    axes.set_title(_title(panel, cells), loc="left")
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize=6.5,
                handletextpad=0.1, borderaxespad=0.2)  # fmt: skip


def _comparable(cells: pd.DataFrame) -> bool:
    """Whether the levels of some cells can be compared with print."""
    return not cells["data"].isin(NOT_COMPARABLE).all()


def _widened(low: float, high: float, log: bool) -> tuple[float, float]:
    """Limits with room for the marks of points at the edge."""
    if log:
        room = (high / low) ** 0.04
        return low / room, high * room
    room = 0.04 * (high - low)
    return low - room, high + room


def _title(panel: Panel, cells: pd.DataFrame) -> str:
    replaced = [kind for kind in NOT_COMPARABLE if (cells["data"] == kind).any()]
    return panel.title + (f" (here: {', '.join(replaced)})" if replaced else "")


def _caption(evidence: Evidence, drawn: Sequence[tuple[Panel, pd.DataFrame]]) -> str:
    total = sum(len(cells) for _, cells in drawn)
    datasets = [name for _, cells in drawn for name in cells["dataset"].unique() if name]
    text = (
        f"Published against reproduced: {total} cells of the tables that this edition makes and "
        "whose printed value is known; on the diagonal both are equal. "
    )
    if not all(_comparable(cells) for _, cells in drawn):
        text += "On other data levels differ: those panels have no diagonal, and a range per axis. "
    bars = list(dict.fromkeys(f"{panel.title}: {panel.bars}" for panel, _ in drawn if panel.bars))
    if bars:
        text += f"Bars, {'; '.join(bars)}. "
    said = [_agreement(panel, cells) for panel, cells in drawn if not of_other_data(cells)]
    text += " ".join(said)
    if datasets:
        text += f" Data: {', '.join(dict.fromkeys(datasets))}."
    if any(panel.timed for panel, _ in drawn):
        text += " Times are measured and differ from run to run."
    return f"{text} Edition {evidence.edition}."


def _agreement(panel: Panel, cells: pd.DataFrame) -> str:
    """How well the panel agrees with print; the cells are of the paper's data."""
    if set(cells["status"]) <= EXACT:
        met = int((cells["status"] == "met").sum())
        return f"{panel.title}: {met} of {len(cells)} met."
    known = cells["difference_in_se"].dropna().abs()
    if known.empty:
        return f"{panel.title}: no standard error is known."
    return (
        f"{panel.title}: {int((known <= NEAR).sum())} of {len(known)} within {NEAR:g} standard "
        f"errors, the farthest {known.max():.1f}."
    )
