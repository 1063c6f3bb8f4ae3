"""All methods by how far they are below the best: a row per loss, a column per scorer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpec
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from directrank.papers.one_protocol.methods import ALONE, NEURAL, SCORERS, TITLES, in_table
from directrank.papers.one_protocol.protocol import comparison
from directrank.papers.shared import figures
from directrank.papers.shared.evidence import Evidence, origin_line
from directrank.papers.shared.format import minus, number
from directrank.papers.shared.product import FigureResult
from directrank.papers.shared.tables import in_front
from directrank.stats.estimates import of_row

#: How a scorer's methods are drawn: colour and marker, each tells them apart.
LOOKS = {
    "linear": {"color": figures.BLUE, "marker": "o"},
    "tower": {"color": figures.ORANGE, "marker": "s"},
    "context": {"color": figures.GREEN, "marker": "^"},
    "trees": {"color": figures.BLACK, "marker": "D"},
    "untrained": {"color": figures.PURPLE, "marker": "X"},
}

#: The height of a row, of a heading with the space above it, of an axis, and of the signs that are
#: explained at the foot, in inches.
_ROW, _HEADING, _FOOT, _SIGNS = 0.135, 0.35, 0.5, 0.7

#: The share of methods that the axis is wide enough for; an arrow stands for any further one.
_SHOWN = 0.9

_SHADE = "#DDEBF5"


def figure(evidence: Evidence, dataset: str) -> FigureResult:
    """Every method's mean less the highest one, with its interval."""
    study = comparison(evidence, dataset)
    gaps = gaps_of(study.every_pair, study.labels)
    order = gaps["number"].to_numpy()
    means = np.array([study.over_queries("ndcg@10")[place].mean for place in order])
    data = in_front(study.names.iloc[order], study.about).assign(
        metric="NDCG@10",
        mean=means,
        difference=gaps["difference"].to_numpy(),
        half_width=gaps["half_width"].to_numpy(),
        first_place=in_table(study.places[order, 0]),
        last_place=in_table(study.places[order, 1]),
        may_be_best=study.may_be_best[order],
        distance_of_controls=study.distance,
        queries=study.n_queries,
    )
    best = study.labels[order[0]]
    possible = int(study.may_be_best.sum())
    picture = draw(data, best)
    figures.small_print(picture, origin_line([study.dataset], study.edition))
    ranked = len(study.ranked)
    untrained = len(data) - ranked
    methods = f"all {ranked} trained methods" + (
        f" and {untrained} that learn nothing" if untrained else ""
    )
    caption = (
        f"Mean NDCG@10 of {methods} over {study.size}, minus that of {best}, the "
        f"highest ({number(means[0])}), with the 95% interval of the difference, which is not "
        "corrected. Losses are ordered by their mean over the scorers. Filled: the methods that "
        f"may be the best, {possible}; the best is among them with 95% confidence. Shaded: the "
        "distance of the controls. An arrow stands for a method that is further below, with its "
        f"difference. {study.standard} Queries without a relevant document are left out. "
        f"{study.scale()}"
    )
    headline = f"{study.dataset.short}: {possible} of {ranked} methods may be the best"
    return FigureResult(picture, data, caption, headline=headline)


def gaps_of(pairs: pd.DataFrame, labels: Sequence[str]) -> pd.DataFrame:
    """The difference of every method from the one with the highest mean, the largest first.

    Args:
        pairs: every pair of methods: ``a``, ``b``, ``difference``, ``error`` and ``freedom``.
        labels: of the methods.

    Returns:
        ``number``, ``difference`` (never above zero) and ``half_width`` of its interval.
    """
    table = np.zeros((len(labels), len(labels)))
    table[pairs["a"], pairs["b"]] = pairs["difference"]
    table[pairs["b"], pairs["a"]] = -pairs["difference"]
    best = int(table.mean(axis=1).argmax())
    own = pairs[(pairs["a"] == best) | (pairs["b"] == best)]
    rows = [(best, 0.0, 0.0)]
    for row in own.itertuples():
        other = row.b if row.a == best else row.a
        half_width = of_row(row).interval().half_width
        rows.append((other, table[other, best], half_width))
    frame = pd.DataFrame(rows, columns=["number", "difference", "half_width"])
    return frame.sort_values("difference", ascending=False, kind="stable", ignore_index=True)


def rows_of(data: pd.DataFrame, scorers: Sequence[str]) -> list[str]:
    """The methods of some scorers, the highest mean over these first.

    Args:
        data: ``method``, ``scorer`` in print, and ``difference``.
        scorers: by their names in experiments.
    """
    own = data[data["scorer"].isin([SCORERS[scorer] for scorer in scorers])]
    means = own.groupby("method", sort=False)["difference"].mean()
    return [str(name) for name in means.sort_values(ascending=False, kind="stable").index]


def draw(data: pd.DataFrame, best: str, marks: pd.DataFrame | None = None) -> Figure:
    """The picture: losses with a column per scorer, below them what has no scorer.

    Args:
        data: ``method``, ``scorer`` in print, ``difference``, ``half_width``, ``may_be_best`` and
            ``distance_of_controls``; a row per method.
        best: the name of the method from which differences are.
        marks: further differences of each method, which are drawn as grey lines; a column each.
    """
    columns = [one for one in NEURAL if (data["scorer"] == SCORERS[one]).any()]
    losses, alone = rows_of(data, NEURAL), rows_of(data, ALONE)
    heights = [_HEADING + _ROW * len(rows) for rows in (losses, alone) if rows]
    panel_rows = len(heights)
    beside = len(columns) > 1 and bool(alone)
    total = sum(heights) + _FOOT * panel_rows + (0.0 if beside else _SIGNS)
    heights += [] if beside else [_SIGNS]
    picture = figures.empty_figure(2 * figures.COLUMN, total)
    grid = GridSpec(len(heights), max(1, len(columns)), picture, height_ratios=heights)
    limits = _limits(data)
    panels = []
    for place, scorer in enumerate(columns):
        axes = picture.add_subplot(grid[0, place])
        axes.set_title(TITLES[scorer], loc="left")
        _draw_panel(axes, data, losses, [scorer], limits, marks, labelled=place == 0)
        panels.append(axes)
    if alone:
        axes = picture.add_subplot(grid[panel_rows - 1, 0])
        present = [one for one in ALONE if (data["scorer"] == SCORERS[one]).any()]
        heading = " and ".join(TITLES[one].lower() for one in present)
        axes.set_title(heading.capitalize(), loc="left")
        _draw_panel(axes, data, alone, present, limits, marks, labelled=True)
        panels.append(axes)
    line = "\n" if len(columns) > 1 else " "
    for axes in panels:
        axes.set_xlabel(f"NDCG@10, minus that of{line}{best}", fontsize=6.5)
    below = grid[-1, 1:] if beside else grid[-1, :]
    _explain(picture.add_subplot(below), marks is not None, 1 if beside else 2)
    return picture


def _limits(data: pd.DataFrame) -> tuple[float, float]:
    """The ends of the axis: wide enough for most methods, so that few do not squeeze the rest."""
    below, far = -data["difference"], float(data["distance_of_controls"].iloc[0])
    half = data["half_width"].fillna(0.0)
    low = max(float((below + half).quantile(_SHOWN)), 1.5 * far) or 0.01
    high = max(float((half - below).max()), 0.05 * low)
    return -1.04 * low, min(1.04 * high, 0.6 * low)


def _draw_panel(
    axes: Axes,
    data: pd.DataFrame,
    rows: Sequence[str],
    scorers: Sequence[str],
    limits: tuple[float, float],
    marks: pd.DataFrame | None,
    labelled: bool,
) -> None:
    """The methods of ``scorers`` in these rows."""
    axes.set(xlim=limits, ylim=(len(rows) - 0.4, -0.6))
    axes.axvspan(-data["distance_of_controls"].iloc[0], 0, color=_SHADE, linewidth=0, zorder=0)
    axes.axvline(0, color=figures.BLACK, linewidth=0.6)
    axes.set_yticks(range(len(rows)), rows if labelled else [])
    axes.tick_params(axis="y", labelsize=6, length=0)
    axes.tick_params(axis="x", labelsize=6)
    axes.grid(axis="y", visible=False)
    axes.xaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
    axes.xaxis.set_major_formatter(lambda value, _: minus(f"{value:g}"))
    for scorer in scorers:
        look: dict[str, Any] = LOOKS[scorer]
        for place, own in data[data["scorer"] == SCORERS[scorer]].iterrows():
            y = rows.index(own["method"])
            if own["difference"] < limits[0]:
                face = look["color"] if own["may_be_best"] else "white"
                sign = {"color": look["color"], "markerfacecolor": face, "markeredgewidth": 0.7}
                axes.plot(limits[0], y, "<", markersize=3.5, clip_on=False, **sign)
                text = minus(f"   {own['difference']:.3f}")
                axes.text(limits[0], y, text, va="center", fontsize=5, color=look["color"])
                continue
            if marks is not None:
                single = marks.loc[place].to_numpy()
                shown = single[(single >= limits[0]) & (single <= limits[1])]
                axes.plot(shown, [y] * len(shown), "|", color="#999999", markersize=4)
                for end, head, far in (
                    (limits[0], "<", single < limits[0]),
                    (limits[1], ">", single > limits[1]),
                ):
                    if far.any():
                        grey: dict[str, Any] = {"color": "#999999", "markersize": 2.2}
                        axes.plot(end, y, head, clip_on=False, **grey)
            axes.errorbar(
                own["difference"],
                y,
                xerr=np.nan_to_num(own["half_width"]),
                linestyle="none",
                markersize=3.4,
                elinewidth=1.0,
                capsize=0,
                markerfacecolor=look["color"] if own["may_be_best"] else "white",
                markeredgewidth=0.7,
                **look,
            )


def _explain(axes: Axes, marked: bool, columns: int) -> None:
    """What the signs mean, in a place of the picture without a panel."""
    sign: dict[str, Any] = {"linestyle": "none", "marker": "o", "color": "#555555", "markersize": 4}
    handles = [
        Line2D([], [], label="may be the best", **sign),
        Line2D([], [], markerfacecolor="white", label="significantly behind another one", **sign),
        Line2D([], [], color="#555555", label="95 % interval of the difference"),
        Line2D([], [], label="further below", **sign | {"marker": "<"}),
        Patch(color=_SHADE, label="as near as two controls may be"),
    ]
    if marked:
        tick = sign | {"marker": "|", "color": "#999999", "markersize": 6}
        handles.append(Line2D([], [], label="on a single collection (arrowhead: outside)", **tick))
    axes.axis("off")
    axes.legend(handles=handles, loc="center left" if columns == 1 else "center", ncols=columns,
                frameon=False)  # fmt: skip
