"""A paper in one picture: how far what came out here lies from print, a point per table cell.

Where the data are the paper's, a point is ours minus the printed value, and zero is agreement. On
other data levels mean nothing: there each method's distance from the mean of all methods is shown
beside the printed one's, so that a reader sees whether methods stand to each other as in print. The
cells are those of the tables that the edition makes; nothing is run or computed for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

from directrank.papers.shared import figures
from directrank.papers.shared.cells import DIFFERENCES, MET
from directrank.papers.shared.evidence import NOT_COMPARABLE, OTHER_REAL, Evidence
from directrank.papers.shared.format import listed
from directrank.papers.shared.product import FigureResult, TableResult, draw
from directrank.system.errors import DataError

#: A status that is written beside its point → what is written there.
REMARKS = {"not met": "not met", "misprint in the paper": "misprint in the paper"}

#: What is drawn of a cell: ours, the half width of its interval, and print.
DRAWN = ("drawn", "drawn_half_width", "drawn_published")

#: What a run of this study decides of a cell; the rest is known without it.
MEASURED = ("reproduced", "half_width", *DIFFERENCES, *DRAWN)

#: What a picture says of cells that are not of the paper's data.
NOTES = {
    "stand-in": "stand-ins are generated data",
    OTHER_REAL: "other real data are not the paper's own",
}

#: At most so many frames stand side by side, where they are of several panels.
FRAMES = 4

#: Height of a row of cells, and of what stands over and under the rows of a panel, in inches.
_ROW, _AROUND = 0.135, 0.85

_LABELS = Callable[[pd.DataFrame], pd.Series]


@dataclass(frozen=True)
class Panel:
    """Cells of one kind, in a frame per metric.

    Attributes:
        title: e.g. ``Table 4, OHSUMED``.
        axis: what is measured, with its unit.
        tables: the products of the paper that the cells are of.
        row: column of the tables whose values are the rows of a frame, or what makes their labels
            of a table's rows.
        cell: columns that together name a cell.
        frame: likewise for what has a frame of its own, such as the cut-off of a metric; all cells
            share one by default.
        bars: what the error bars are, for the caption; empty where there are none.
        where: which rows of the tables belong here; all by default.
        value: the column of reproduced values.
        relative: whether a difference is told in per cent of the printed value, because those are
            of several scales. Such a panel is left out on other data than the paper's.
        timed: whether the values are measured times, kept in the tables' ``times``.
    """

    title: str
    axis: str
    tables: Sequence[str]
    row: str | _LABELS
    cell: Sequence[str]
    frame: str | _LABELS | None = None
    bars: str = ""
    where: Callable[[pd.DataFrame], pd.Series] | None = None
    value: str = "mean"
    relative: bool = False
    timed: bool = False


@dataclass(frozen=True)
class _Part:
    """The cells of a panel that are drawn alike: of the paper's data, or of other data."""

    panel: Panel
    cells: pd.DataFrame
    comparable: bool

    @property
    def title(self) -> str:
        kinds = [kind for kind in NOT_COMPARABLE if (self.cells["data"] == kind).any()]
        return self.panel.title + (f" (here: {', '.join(kinds)})" if kinds else "")

    @property
    def open(self) -> pd.Series:
        """Which cells differ from the print by more than their interval, or have a remark."""
        half = self.cells["drawn_half_width"].astype(float)
        off = (self.cells["drawn"].abs() > half) & (half > 0)
        return (off | self.cells["status"].isin(list(REMARKS))) & self.comparable

    @property
    def agrees(self) -> bool:
        """Whether at most one of several cells does not meet the print, which words tell better."""
        missed = self.cells["status"] != MET
        return self.comparable and len(missed) > 1 and int(missed.sum()) <= 1

    @property
    def told(self) -> str:
        """That the cells meet the print, and which one does not."""
        missed = self.cells[self.cells["status"] != MET]
        met = len(self.cells) - len(missed)
        if missed.empty:
            return f"{self.title} ({met} cells)"
        (cell,), (status,) = missed["cell"], missed["status"]
        return f"{self.title} ({met} of {len(self.cells)} cells; {cell}: {status})"

    @property
    def frames(self) -> list[str]:
        return list(dict.fromkeys(self.cells["frame"]))

    @property
    def rows(self) -> list[str]:
        return list(dict.fromkeys(self.cells["row"]))

    @property
    def axis(self) -> str:
        if not self.comparable:
            return f"{self.panel.axis} minus the mean of the rows"
        return (
            f"ours − paper, {'% of the printed value' if self.panel.relative else self.panel.axis}"
        )


def in_one_picture(evidence: Evidence, panels: Sequence[Panel]) -> FigureResult:
    """Draw the panels whose tables the edition makes.

    Raises:
        DataError: no cell has both a printed and a reproduced value.
    """
    tables: dict[str, FigureResult | TableResult] = {}
    parts = [part for panel in panels for part in _parts(evidence, panel, tables)]
    if not parts:
        raise DataError(
            "no table of this edition has a value that the paper prints too",
            f"let the edition make one of {', '.join(tables_of(panels))}",
        )
    told = [part for part in parts if part.agrees]
    if len(told) < len(parts):
        parts = [part for part in parts if not part.agrees]
    else:
        told = []
    picture = _picture(parts, evidence.edition)
    data = pd.concat([part.cells for part in parts], ignore_index=True)
    caption = _caption(evidence, parts, told)
    if not any(part.panel.timed for part in parts):
        return FigureResult(picture, data, caption, finding=_seen(parts))
    without_times = data.drop(columns=list(MEASURED))
    return FigureResult(picture, without_times, caption, data, finding=_seen(parts))


def _seen(parts: Sequence[_Part]) -> str:
    """How many cells differ from print or, on other data, how far apart methods are in both."""
    compared = [part for part in parts if part.comparable]
    if compared:
        differ = sum(int(part.open.sum()) for part in compared)
        return (
            f"{differ or 'none'} of {sum(len(part.cells) for part in compared)} cells "
            f"{'differs' if differ == 1 else 'differ'} from the print by more than their interval"
        )
    frames = parts[0].cells.groupby("frame")[["drawn", "drawn_published"]]
    here, printed = (frames.max() - frames.min()).max()
    return (
        f"methods are up to {here:.2g} apart here and up to {printed:.2g} in print "
        f"({parts[0].panel.title})"
    )


def _picture(parts: Sequence[_Part], edition: str) -> Figure:
    bands = _bands(parts)
    heights = [_AROUND + _ROW * max(len(part.rows) for part in band) for band in bands]
    alone = len(parts) == 1 and len(parts[0].frames) == 1
    picture = figures.empty_figure(
        width=(1 if alone else 2) * figures.COLUMN, height=sum(heights) + 0.15
    )
    strips = picture.subfigures(nrows=len(bands), height_ratios=heights, squeeze=False)[:, 0]
    for strip, band in zip(strips, bands, strict=True):
        widths = [1 + len(part.frames) for part in band]  # row labels are as wide as a frame
        places = strip.subfigures(ncols=len(band), width_ratios=widths, squeeze=False)[0]
        for place, part in zip(places, band, strict=True):
            _draw(place, part)
    kinds = {kind for part in parts for kind in part.cells["data"]}
    notes = [text for kind, text in NOTES.items() if kind in kinds]
    if any(part.open.any() for part in parts):
        notes.append("open circles differ from the print by more than their interval")
    if notes:
        said = "; ".join(notes)
        figures.small_print(picture, f"{said[0].upper()}{said[1:]} (edition {edition})")
    return picture


def rows_where(column: str, value: str) -> Callable[[pd.DataFrame], pd.Series]:
    """For a panel's ``where``: the rows with ``value`` in ``column``."""
    return lambda rows: rows[column] == value


def tables_of(panels: Sequence[Panel]) -> tuple[str, ...]:
    """The products whose cells the panels show: what the product ``summary`` repeats."""
    return tuple(dict.fromkeys(name for panel in panels for name in panel.tables))


def _parts(
    evidence: Evidence, panel: Panel, tables: dict[str, FigureResult | TableResult]
) -> list[_Part]:
    """What is drawn of a panel: its cells of the paper's data, and those of other data."""
    cells = _cells(evidence, panel, tables)
    if cells.empty:
        return []
    other = cells["data"].isin(NOT_COMPARABLE)
    parts = []
    if not other.all():
        parts.append(_Part(panel, _against_print(cells[~other], panel.relative), True))
    if not panel.relative:
        rows = cells.groupby("frame")["row"].transform("nunique")
        standing = cells[other & (rows > 1)]  # one method stands nowhere
        if len(standing):
            parts.append(_Part(panel, _against_mean(standing), False))
    return parts


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
    return pd.DataFrame(
        {
            "edition": evidence.edition,
            "panel": panel.title,
            "table": rows["table"],
            "cell": rows[list(panel.cell)].astype(str).agg(", ".join, axis=1),
            "frame": "" if panel.frame is None else _labels(rows, panel.frame),
            "row": _labels(rows, panel.row),
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


def _labels(rows: pd.DataFrame, of: str | _LABELS) -> pd.Series:
    return (rows[of] if isinstance(of, str) else of(rows)).astype(str)


def _against_print(cells: pd.DataFrame, relative: bool) -> pd.DataFrame:
    """``cells`` with :data:`DRAWN`: ours minus the printed value, which lies at zero.

    The half width is that of a difference of two independent values with these intervals.
    """
    scale = 100 / cells["published"] if relative else 1.0
    printed = cells["published_half_width"].astype(float).fillna(0.0)
    return cells.assign(
        drawn=cells["difference"] * scale,
        drawn_half_width=np.hypot(cells["half_width"].astype(float), printed) * scale,
        drawn_published=0.0,
    )


def _against_mean(cells: pd.DataFrame) -> pd.DataFrame:
    """``cells`` with :data:`DRAWN`: ours and the printed value, minus the mean of each frame."""
    means = cells.groupby("frame")[["reproduced", "published"]].transform("mean")
    return cells.assign(
        drawn=cells["reproduced"] - means["reproduced"],
        drawn_half_width=cells["half_width"].astype(float),
        drawn_published=cells["published"] - means["published"],
    )


def _bands(parts: Sequence[_Part]) -> list[list[_Part]]:
    """Parts that stand side by side: neighbours of similar height, as far as the width allows."""
    bands: list[list[_Part]] = []
    for part in parts:
        band = bands[-1] if bands else []
        frames = sum(len(other.frames) for other in [*band, part])
        rows = [len(other.rows) for other in [*band, part]]
        if band and frames <= FRAMES and max(rows) <= min(rows) + 4:
            band.append(part)
        else:
            bands.append([part])
    return bands


def _draw(place: SubFigure, part: _Part) -> None:
    axes = place.subplots(ncols=len(part.frames), sharex=True, sharey=True, squeeze=False)[0]
    place.suptitle(part.title, x=0.01, ha="left", fontsize=7.5)
    place.supxlabel(part.axis, fontsize=7.5)
    for ax, frame in zip(axes, part.frames, strict=True):
        _draw_frame(ax, part, part.cells[part.cells["frame"] == frame])
        ax.set_title(frame)
        ax.tick_params(axis="y", length=0)
    axes[0].set(yticks=range(len(part.rows)), ylim=(len(part.rows) - 0.4, -0.6))
    axes[0].set_yticklabels(part.rows, fontsize=6)
    if not part.comparable:  # beside the title, where it hides nothing
        handles = axes[0].get_legend_handles_labels()[0]
        place.legend(
            handles=handles,
            loc="upper right",
            ncols=2,
            frameon=False,
            borderpad=0,
            fontsize=6.5,
            # Close together, to leave a narrow panel its title.
            handlelength=1.0,
            handletextpad=0.2,
            columnspacing=0.8,
        )


def _draw_frame(axes: Axes, part: _Part, cells: pd.DataFrame) -> None:
    places = cells["row"].map(part.rows.index)
    # Cells that share a row lie a little above and below it.
    same = cells.groupby("row")
    offset = same.cumcount() - (same["row"].transform("size") - 1) / 2
    y = places + 0.6 * offset / same["row"].transform("size")
    axes.axvline(0, color="#777777", linewidth=0.8, zorder=0.5)
    half = cells["drawn_half_width"].astype(float)
    axes.errorbar(
        cells["drawn"],
        y,
        xerr=np.nan_to_num(half),
        linestyle="none",
        color=figures.BLUE,
        elinewidth=0.8,
        capsize=0,
    )
    look: dict[str, Any] = {
        "linestyle": "none",
        "marker": "o",
        "markersize": 3.4,
        "color": figures.BLUE,
    }
    off = part.open[cells.index]
    axes.plot(cells["drawn"][~off], y[~off], label="ours", **look)
    axes.plot(cells["drawn"][off], y[off], markerfacecolor="white", **look)
    if not part.comparable:
        axes.plot(cells["drawn_published"], y, label="paper", **figures.PUBLISHED)
        return
    for remark, at, bar, height in zip(
        cells["status"].map(REMARKS), cells["drawn"], np.nan_to_num(half), y, strict=True
    ):
        if isinstance(remark, str):
            right = at < 0  # towards the middle of the frame
            axes.annotate(
                remark,
                (at + bar if right else at - bar, height),
                (4 if right else -4, 0),
                textcoords="offset points",
                ha="left" if right else "right",
                va="center",
                fontsize=6,
            )


def _caption(evidence: Evidence, parts: Sequence[_Part], told: Sequence[_Part]) -> str:
    total = sum(len(part.cells) for part in parts)
    datasets = [name for part in parts for name in part.cells["dataset"].unique() if name]
    text = f"The {total} cells of this edition's tables for which a printed value is known. "
    if told:
        text += (
            "Not drawn, because the cells agree with the print, within its rounding or their "
            f"interval: {'; '.join(part.told for part in told)}. "
        )
    if any(part.comparable for part in parts):
        text += (
            "On the paper's data, marks are differences, our value minus the printed one, so zero "
            "means agreement; a mark is open if its interval excludes zero. "
        )
    if not all(part.comparable for part in parts):
        text += (
            "On other data the values themselves cannot be compared. Marks there are the distance "
            "of each method from the mean of all methods in the panel, with our values as dots and "
            "the printed ones as diamonds, which shows whether the methods differ from each other "
            "as in the paper. "
        )
    bars: dict[str, dict[str, None]] = {}
    for part in parts:
        if part.panel.bars:
            bars.setdefault(part.panel.bars, {})[part.panel.title] = None
    if bars:
        kinds = [f"{what} ({'; '.join(titles)})" for what, titles in bars.items()]
        text += f"Bars are {listed(kinds)}. "
    if any(part.comparable and part.cells["published_half_width"].notna().any() for part in parts):
        text += "Where the paper prints an interval, that of the difference includes it. "
    if datasets:
        text += f"Data: {', '.join(dict.fromkeys(datasets))}. "
    if any(part.panel.timed for part in parts):
        text += "Times are measured and differ from run to run. "
    return f"{text}Edition {evidence.edition}."
