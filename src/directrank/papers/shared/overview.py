"""One picture of an edition: every claim in words, what the paper says, our effect, the verdict."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from directrank.papers.shared.claim_rows import name_of
from directrank.papers.shared.claims import OVERALL
from directrank.papers.shared.figures import (
    BLACK,
    BLUE,
    GREEN,
    VERMILLION,
    empty_figure,
    new_figure,
    render,
    style,
)
from directrank.papers.shared.format import minus, paper_name
from directrank.papers.shared.verdicts import (
    CONTRADICTED,
    INCONCLUSIVE,
    OTHER,
    OWN,
    RECOMPUTED,
    SUPPORTED,
    TREND,
)
from directrank.system.io import write_bytes, write_csv

TITLE = "The claims of five papers: what they say, and what we measured"

LEGEND = """\
Shaded: the values that agree with the claim. Marker: our effect, with its
95 % interval, in the comparison on which the verdict rests. As stated: how
many of a claim's comparisons agree with it, significantly or not."""

#: Units of effects that are drawn → points of the metric in one unit.
POINTS = {"NDCG": 100.0, "nDCG": 100.0, "AP": 100.0, "MAP": 100.0, "NDCG (%)": 1.0}

#: Points at which the axis ends; an interval that goes on ends in an arrow.
EDGE = 10.0

#: The verdicts from top to bottom, with the look of an effect; shape and colour both tell them.
VERDICTS: dict[str, dict[str, Any]] = {
    SUPPORTED: {"color": GREEN, "marker": "o"},
    CONTRADICTED: {"color": VERMILLION, "marker": "X"},
    TREND: {"color": BLUE, "marker": ">", "markerfacecolor": "white"},
    INCONCLUSIVE: {"color": "#777777", "marker": "s", "markerfacecolor": "white"},
}

#: What the rightmost column calls the data on which a verdict rests.
_DATA = {OWN: "the paper's", OTHER: "other real", RECOMPUTED: "artificial"}

_HALF_ROW = 0.36


def table(claims: pd.DataFrame) -> pd.DataFrame:
    """What the picture shows: a row for each claim that was measured on data that count.

    Args:
        claims: the verdicts of an edition (:func:`directrank.papers.shared.claims.read_claims`).

    Returns:
        ``claim``, ``paper``, ``name``, ``verdict``, ``group`` (the kind of data), ``dataset``,
        ``claimed``, ``comparisons`` (how many are as stated), and ``effect``, ``low``, ``high`` of
        the comparison on which the verdict rests, in ``unit``; by verdict, then by paper.
    """
    rows = claims[(claims["comparison"] == OVERALL) & claims["verdict"].isin(list(VERDICTS))]
    rows = rows.assign(
        name=[name_of(row) for row in rows.itertuples()],
        comparisons=rows["outcome"].str.removesuffix(" comparisons as stated"),
        order=rows["verdict"].map(list(VERDICTS).index),
    ).sort_values(["order", "paper", "claim"], kind="stable")
    # Measured times are in a file of their own: no two runs measure the same.
    rows.loc[rows["unit"] == "times", ["effect", "low", "high"]] = math.nan
    columns = ["claim", "paper", "name", "verdict", "group", "dataset", "claimed", "comparisons"]
    return rows[[*columns, "effect", "low", "high", "unit"]].reset_index(drop=True)


def draw(claims: pd.DataFrame, stem: str | Path) -> list[Path]:
    """Draw the picture and write ``<stem>.png``, ``.pdf``, ``.svg`` and ``.csv``.

    Args:
        claims: the verdicts of an edition.
        stem: the files' path without suffix.

    Returns:
        The files.
    """
    shown, stem = table(claims), Path(stem)
    with style():
        pictures = render(_figure(shown), TITLE, caption(claims, shown))
    paths = [stem.with_name(f"{stem.name}.{kind}") for kind in pictures]
    for path, content in zip(paths, pictures.values(), strict=True):
        write_bytes(path, content)
    paths.append(stem.with_name(f"{stem.name}.csv"))
    write_csv(paths[-1], shown)
    return paths


def caption(claims: pd.DataFrame, shown: pd.DataFrame) -> str:
    """What is drawn, and how many claims are left out."""
    overall = claims[claims["comparison"] == OVERALL]
    return (
        f"Of the {len(overall)} claims that we found in the papers, the {len(shown)} that edition "
        f"{overall['edition'].iloc[0]} measures, by verdict. Shaded: the values that agree with "
        "the claim. The marker is the effect, in points of the metric (hundredths), of the "
        "comparison on which the verdict rests, with its 95 % interval; the paper's claim may "
        "consist of several, of which the second column counts those that agree with it, "
        "significantly or not."
    )


def _figure(shown: pd.DataFrame) -> Figure:
    heads = shown["verdict"].ne(shown["verdict"].shift())
    places = (shown.index + 1.4 * heads.cumsum()).to_numpy(dtype=float)
    if not len(shown):
        figure, axes = new_figure(7.2, 0.8)
        axes.set_axis_off()
        axes.text(0, 0.5, "No claim was measured on data that count.", va="center")
        return figure
    # With few claims, headings and axis need more room than the rows.
    height = max(0.142 * (places[-1] + 3.4), 0.12 * (places[-1] + 1.2) + 0.66)
    figure = empty_figure(7.2, height)
    first, last = 0.432, 0.802  # the columns have fixed widths
    figure.set_layout_engine("none")
    axes = figure.add_axes((first, 0.38 / height, last - first, 1 - 0.66 / height))
    figure.text(0.008, 1 - 0.14 / height, TITLE, fontsize=8.5, weight="bold", va="center")
    axes.set(xlim=(-EDGE, EDGE), ylim=(places[-1] + 0.8, places[0] - 1.8))
    axes.set_xticks(range(-10, 11, 5), [minus(str(tick)) for tick in range(-10, 11, 5)])
    axes.set_xlabel("effect in points of the metric; shaded: as claimed")
    axes.set_yticks([])
    axes.grid(axis="y", visible=False)
    axes.spines["left"].set_visible(False)
    axes.axvline(0, color=BLACK, linewidth=0.6)

    def write(x: float, y: float, words: str, **look: Any) -> None:
        """Write ``words`` at a share ``x`` of the figure's width, in the row ``y``."""
        place = ((x - first) / (last - first), y)
        transform = axes.get_yaxis_transform()
        axes.text(*place, words, transform=transform, va="center", fontsize=6.2, **look)

    figure.text(0.008, 0.2 / height, LEGEND, fontsize=5.5, va="center", color="#444444")
    write(first - 0.012, places[0] - 1.05, "as stated", ha="right", style="italic")
    write(last + 0.012, places[0] - 1.05, "data · paper", style="italic")
    for row, place, head in zip(shown.itertuples(), places, heads, strict=True):
        look = VERDICTS[row.verdict]
        if head:
            number = int((shown["verdict"] == row.verdict).sum())
            words = f"{row.verdict[0].upper()}{row.verdict[1:]} ({number})"
            write(0.008, place - 1.05, words, color=look["color"], weight="bold")
        write(0.008, place, row.name)
        write(first - 0.012, place, row.comparisons, ha="right")
        write(last + 0.012, place, f"{_data(row)} · {paper_name(row.paper)}")
        _effect(axes, row, place, look)
    return figure


def _data(row: Any) -> str:
    """The data on which a verdict rests, in a word."""
    # Titles have commas in brackets only.
    return "several" if ", " in re.sub(r"\(.*?\)", "", row.dataset) else _DATA[row.group]


def _effect(axes: Axes, row: Any, place: float, look: dict[str, Any]) -> None:
    """The values that agree with a claim, and the effect; in words if it is in other units."""
    scale = POINTS.get(row.unit) if isinstance(row.unit, str) else None
    if scale is None or math.isnan(row.effect):
        axes.text(0.3, place, _words(row), fontsize=6.2, va="center", color=look["color"])
        return
    low, high = agreeing(row.claimed)
    band = (max(low * scale, -EDGE), min(high * scale, EDGE))
    axes.fill_betweenx(
        (place - _HALF_ROW, place + _HALF_ROW), *band, color="#E9EDF2", linewidth=0, zorder=0
    )
    ends = [row.effect if math.isnan(end) else end for end in (row.low, row.high)]
    drawn = [min(max(end * scale, -EDGE), EDGE) for end in ends]
    axes.plot(drawn, [place, place], color=look["color"], linewidth=1.1)
    for end, inside in zip(ends, drawn, strict=True):
        if end * scale != inside:
            arrow = "<" if inside < 0 else ">"
            axes.plot(inside, place, arrow, color=look["color"], markersize=3, clip_on=False)
    axes.plot(row.effect * scale, place, markersize=4, linestyle="none", **look)


def _words(row: Any) -> str:
    """An effect that is no difference of a metric."""
    if math.isnan(row.effect):
        return "a ratio of times"
    size = f"{row.effect:.0f}" if abs(row.effect) >= 100 else f"{row.effect:.2g}"
    return minus(f"{size} ({row.unit.strip('()')})" if isinstance(row.unit, str) else size)


def agreeing(claimed: str) -> tuple[float, float]:
    """The values that agree with a claim, from the words in which a verdict states them.

    >>> agreeing("above 0"), agreeing("at least 0.075"), agreeing("equivalent, within ±0.01")
    ((0.0, inf), (0.075, inf), (-0.01, 0.01))
    >>> agreeing("4.59 to 5.61"), agreeing("at most 0.01")
    ((4.59, 5.61), (-inf, 0.01))
    """
    numbers = [float(number) for number in re.findall(r"\d+(?:\.\d+)?", claimed)]
    if "±" in claimed:
        return -numbers[0], numbers[0]
    if " to " in claimed:
        return numbers[0], numbers[1]
    if claimed.startswith("at most"):
        return -math.inf, numbers[0]
    return numbers[0], math.inf
