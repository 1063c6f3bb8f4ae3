"""The look of every figure, and saving it so that equal results give equal bytes."""

from __future__ import annotations

import contextlib
import io
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

import matplotlib
import matplotlib.style
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MultipleLocator

#: Width of one column of a two-column paper, in inches.
COLUMN = 3.35

#: Okabe and Ito's palette (2008), told apart with any of the common colour-vision deficiencies.
BLACK = "#000000"
ORANGE = "#E69F00"
SKY = "#56B4E9"
GREEN = "#009E73"
BLUE = "#0072B2"
VERMILLION = "#D55E00"
PURPLE = "#CC79A7"

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

STYLE: dict[str, Any] = {
    "font.family": "DejaVu Sans",  # shipped with matplotlib, so the same everywhere
    "font.size": 7.5,
    "mathtext.fontset": "dejavusans",
    "axes.labelsize": 7.5,
    "axes.titlesize": 7.5,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": "#E3E3E3",
    "grid.linewidth": 0.5,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "lines.linewidth": 1.1,
    "lines.markersize": 4,
    "legend.fontsize": 7,
    "legend.frameon": True,
    "legend.framealpha": 0.9,
    "legend.edgecolor": "#CCCCCC",
    "legend.fancybox": False,
    "legend.handlelength": 2.6,
    "legend.borderpad": 0.4,
    "legend.labelspacing": 0.35,
    "errorbar.capsize": 2,
    "figure.dpi": 100,
    "figure.constrained_layout.use": True,
    "savefig.dpi": 300,
    "pdf.fonttype": 42,
    "svg.fonttype": "path",
    "svg.hashsalt": "directrank",
}


@contextlib.contextmanager
def style() -> Iterator[None]:
    """Matplotlib's defaults plus :data:`STYLE`, whatever the user's own settings are."""
    with matplotlib.style.context(["default", STYLE]):
        yield


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


def small_print(figure: Figure, text: str) -> None:
    """Small text at the figure's foot, such as the warning that the data are a stand-in."""
    lines = textwrap.fill(text, int(21 * figure.get_figwidth()))  # 21 such letters fit an inch
    figure.supxlabel(lines, x=0.99, ha="right", fontsize=5.5, color="#444444")


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


def legend_above(axes: Axes) -> None:
    """The legend as one row over the axes, where it can hide no curve."""
    axes.legend(
        loc="lower center",
        bbox_to_anchor=(0.5, 1.0),
        ncols=len(axes.get_legend_handles_labels()[0]),
        frameon=False,
        columnspacing=1.6,
    )


def regular_ticks(axes: Axes, preferred: float) -> None:
    """Ticks on the y axis every ``preferred``, or a round multiple where that is over 10 steps.

    The limits are widened to whole steps.
    """
    low, high = axes.get_ylim()
    for factor in (1, 2, 4, 10, 20, 40, 100, 200):
        step = preferred * factor
        if (high - low) / step <= 10:
            break
    axes.yaxis.set_major_locator(MultipleLocator(step))
    axes.set_ylim(np.floor(low / step) * step, np.ceil(high / step) * step)


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
    files = {}
    for kind, facts in metadata.items():
        buffer = io.BytesIO()
        figure.savefig(buffer, format=kind, metadata=facts)
        files[kind] = buffer.getvalue()
    return files
