"""What figures of papers have in common, and saving them so that equal results give equal bytes.

Colours and fonts are those of :mod:`directrank.system.look`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis, Tick
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter
from matplotlib.transforms import offset_copy

from directrank.system.look import BLACK as BLACK
from directrank.system.look import BLUE as BLUE
from directrank.system.look import GREEN as GREEN
from directrank.system.look import ORANGE as ORANGE
from directrank.system.look import PURPLE as PURPLE
from directrank.system.look import SKY as SKY
from directrank.system.look import VERMILLION as VERMILLION
from directrank.system.look import heading, saved
from directrank.system.look import small_print as small_print
from directrank.system.look import style as style

#: Width of one column of a two-column paper, in inches.
COLUMN = 3.35

#: Height of a line of a figure's title, in inches.
_HEADLINE = 0.14

#: Colour, marker and line of the first, second, … curve: each of the three alone tells them apart.
SERIES: tuple[dict[str, Any], ...] = (
    {"color": BLUE, "marker": "o", "linestyle": "-"},
    {"color": VERMILLION, "marker": "s", "linestyle": "--"},
    {"color": GREEN, "marker": "^", "linestyle": "-."},
    {"color": PURPLE, "marker": "D", "linestyle": ":"},
    {"color": ORANGE, "marker": "v", "linestyle": (0, (5, 1, 1, 1, 1, 1))},
    {"color": SKY, "marker": "P", "linestyle": (0, (8, 2))},
    {"color": BLACK, "marker": "X", "linestyle": (0, (1, 2))},
)

#: The look of values that a paper prints.
PUBLISHED: dict[str, Any] = {
    "linestyle": "none",
    "marker": "D",
    "markersize": 3.4,
    "color": BLACK,
    "markerfacecolor": "none",
    "markeredgewidth": 0.7,
}


def empty_figure(width: float = COLUMN, height: float = 2.3) -> Figure:
    """A figure of ``width`` × ``height`` inches.

    Made without pyplot: nothing is kept between figures. Call it within :func:`style`.
    """
    return Figure(figsize=(width, height))


def new_figure(width: float = COLUMN, height: float = 2.3, **subplots: Any) -> tuple[Figure, Any]:
    """An :func:`empty_figure` and its axes, arranged as ``Figure.subplots`` does."""
    figure = empty_figure(width, height)
    return figure, figure.subplots(**subplots)


def line(number: int) -> dict[str, Any]:
    """The look of curve number ``number`` without its marker."""
    return {key: value for key, value in SERIES[number].items() if key != "marker"}


def headline(figure: Figure, text: str) -> None:
    """What is to be seen, above everything else; the figure grows by its height.

    Call it once everything else is drawn. The figure's legends, which stand above its axes, move
    down: the layout takes no account of both, so that the title has empty lines in their place.
    """
    figure.draw_without_rendering()  # only then the size of legends is known
    legends = [legend.get_window_extent().height / figure.dpi for legend in figure.legends]
    lines = heading(figure, text, math.ceil(max(legends, default=0.0) / _HEADLINE))
    height = 0.05 + _HEADLINE * lines
    figure.set_figheight(figure.get_figheight() + height)
    for legend in figure.legends:
        legend.borderaxespad = 72 * height / float(legend.get_texts()[0].get_fontsize())


def interval_line(
    axes: Axes,
    x: Sequence[float] | np.ndarray,
    mean: Sequence[float] | np.ndarray,
    half_width: Sequence[float] | np.ndarray,
    *,
    label: str,
    series: int,
) -> None:
    """A curve with error bars in the look of number ``series``; a NaN half width draws no bar."""
    look = SERIES[series % len(SERIES)]
    bars = axes.errorbar(
        x,
        mean,
        yerr=np.nan_to_num(np.asarray(half_width, dtype=float)),
        markeredgecolor="white",
        markeredgewidth=0.4,
        elinewidth=0.8,
        capthick=0.8,
        **look,
    )
    bars.lines[0].set_label(label)  # the line alone: a legend is easier to read without the bars


def label_ends(axes: Axes, size: float = 6.5) -> None:
    """Write the label of every labelled curve to the right of the axes, in its colour.

    Labels that would lie upon each other are moved apart; a thin line leads from a label to its
    curve where that ends elsewhere. Call it once all is drawn but the labels.
    """
    root = axes.get_figure(root=True)
    assert root is not None
    root.draw_without_rendering()  # only then places are known
    curves, points = [], []
    for line in axes.get_lines():
        xy = np.asarray(line.get_xydata(), dtype=float)
        numbers = xy[np.isfinite(xy).all(axis=1)]
        if len(numbers) and not str(line.get_label()).startswith("_"):
            curves.append(line)
            points.append(numbers[-1])
    if not curves:
        return
    ends = axes.transData.transform(points) * 72 / root.dpi
    lines = [1 + str(curve.get_label()).count("\n") for curve in curves]
    heights = [size * (1.2 * number + 0.3) for number in lines]  # with a little room between them
    right = max(point[0] for point in points)
    for curve, point, end, place in zip(
        curves, points, ends, _label_places(ends[:, 1], heights), strict=True
    ):
        away = abs(place - end[1]) > size / 2 or ends[:, 0].max() - end[0] > 2 * size
        axes.annotate(
            str(curve.get_label()),
            point,
            (right, point[1]),
            textcoords=offset_copy(axes.transData, root, 9, place - end[1], units="points"),
            va="center",
            fontsize=size,
            color=curve.get_color(),
            annotation_clip=False,
            arrowprops={
                "arrowstyle": "-",
                "color": curve.get_color(),
                "linewidth": 0.4 if away else 0.0,
                "relpos": (0, 0.5),
                "shrinkA": 0,
                "shrinkB": 2,
            },
        )


def _label_places(places: np.ndarray, heights: Sequence[float]) -> np.ndarray:
    """``places`` moved as little as needed for labels of these heights to lie clear, in order."""
    order = np.argsort(places, kind="stable")
    gaps = [(heights[a] + heights[b]) / 2 for a, b in itertools.pairwise(order)]
    shift = np.concatenate([[0.0], np.cumsum(gaps)])
    # What must rise by the gaps is, less the gaps, what must not fall: least squares by pooling.
    pools: list[list[float]] = []
    for value in np.asarray(places)[order] - shift:
        pools.append([float(value)])
        while len(pools) > 1 and np.mean(pools[-2]) > np.mean(pools[-1]):
            pools[-2:] = [pools[-2] + pools[-1]]
    level = np.concatenate([[np.mean(pool)] * len(pool) for pool in pools])
    moved = np.empty(len(order))
    moved[order] = level + shift
    return moved


def whole_ticks(axis: Axis) -> None:
    """Ticks at whole numbers alone, as of epochs."""
    axis.set_major_locator(MaxNLocator(nbins="auto", integer=True))


def plain_log_ticks(axis: Axis) -> None:
    """Ticks of a logarithmic axis as plain numbers, such as 0.001, 200 or 5 000.

    At as many round numbers of each decade as have room for their labels. Call it last.
    """
    axis.set_major_formatter(FuncFormatter(lambda value, _: _plain_number(value)))
    axis.set_minor_formatter(NullFormatter())
    for subs in (tuple(range(1, 10)), (1, 2, 3, 5, 7), (1, 2, 3, 5), (1, 2, 5), (1, 3), (1,)):
        axis.set_major_locator(LogLocator(subs=subs))
        axis.axes.figure.draw_without_rendering()  # type: ignore[union-attr]
        boxes = [tick.label1.get_window_extent().padded(4) for tick in _visible_ticks(axis)]
        touch = any(one.overlaps(other) for one, other in itertools.pairwise(boxes))
        if len(boxes) > 1 and not touch:
            break


def _visible_ticks(axis: Axis) -> list[Tick]:
    """The major ticks within the axis's limits."""
    low, high = axis.get_view_interval()
    return [tick for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]


def _plain_number(value: float) -> str:
    text = np.format_float_positional(value, precision=4, fractional=False, trim="-")
    return f"{float(text):,.0f}".replace(",", "\u00a0") if value >= 1000 else text


def render(figure: Figure, title: str, caption: str) -> dict[str, bytes]:
    """The figure as ``png`` (300 dpi), ``pdf`` and ``svg``, title and caption in their metadata.

    No date, no version and no random id goes in: equal figures are equal files.
    """
    metadata: dict[str, dict[str, Any]] = {
        "png": {"Title": title, "Description": caption, "Software": None},
        "pdf": {
            "Title": title,
            "Subject": caption,
            "Creator": "directrank",
            "Producer": None,
            "CreationDate": None,
        },
        "svg": {"Title": title, "Description": caption, "Creator": "directrank", "Date": None},
    }
    return {kind: saved(figure, kind, facts) for kind, facts in metadata.items()}
