"""Who can be told from whom: diagrams of differences, and all pairs of methods."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from directrank.papers.one_protocol import LEAST_RANKED
from directrank.papers.one_protocol.methods import (
    ALONE,
    NEURAL,
    PRIMARY,
    SCORERS,
    Comparison,
    labels_of,
)
from directrank.papers.one_protocol.protocol import comparison
from directrank.papers.shared import figures
from directrank.papers.shared.cells import difference, measured
from directrank.papers.shared.evidence import Evidence, origin_line
from directrank.papers.shared.format import p_value, share
from directrank.papers.shared.leads import lead
from directrank.papers.shared.product import FigureResult, TableResult
from directrank.papers.shared.tables import Layout, Section, in_front
from directrank.stats.decisions import BETTER, EQUIVALENT, TURNED, in_words
from directrank.stats.estimates import Estimate

#: How a scorer's methods are drawn: colour and marker, each tells them apart.
LOOKS = {
    "linear": {"color": figures.BLUE, "marker": "o"},
    "tower": {"color": figures.ORANGE, "marker": "s"},
    "context": {"color": figures.GREEN, "marker": "^"},
    "trees": {"color": figures.BLACK, "marker": "D"},
    "untrained": {"color": figures.PURPLE, "marker": "X"},
}

#: The panel of all methods, where no scorer has enough to compare.
ALL = "all methods"

#: Pairs that the table of pairs lists at most.
SHOWN = 40

#: Height of a line of labels and of a bar in a diagram of differences, in inches.
_LABEL, _BAR = 0.105, 0.05


def scorer_legend(figure: Figure) -> None:
    """The scorers' markers in one row over the figure's axes."""
    figure.legend(
        *figure.axes[0].get_legend_handles_labels(),
        loc="outside upper center",
        ncols=len(SCORERS),
        frameon=False,
        handlelength=1.0,
        columnspacing=1.4,
    )


def figure_difference(evidence: Evidence, dataset: str) -> FigureResult:
    """The losses of each scorer, with trees, by their means; bars join those that are tied."""
    study = comparison(evidence, dataset)
    panels = _panels(study)
    means = np.array([estimate.mean for estimate in study.over_queries(PRIMARY)])
    frames, bars = [], {}
    for scorer, numbers in panels.items():
        order = sorted(numbers, key=lambda number: -means[number])
        frames.append(_panel_data(study, scorer, order, means))
        bars[scorer] = ties(study.verdicts[np.ix_(order, order)])
    heights = [
        0.5 + _BAR * len(bars[scorer]) + _LABEL * (len(numbers) + 1) / 2
        for scorer, numbers in panels.items()
    ]
    figure, axes = figures.new_figure(
        height=sum(heights) + 0.25,
        nrows=len(panels),
        squeeze=False,
        gridspec_kw={"height_ratios": heights},
    )
    for scorer, frame, height, ax in zip(panels, frames, heights, axes[:, 0], strict=True):
        _draw_panel(ax, frame, bars[scorer], height, SCORERS.get(scorer, scorer).capitalize())
    figures.small_print(figure, origin_line([study.dataset], study.edition))
    trees = ", beside boosted trees (italic)" if study.of("trees") else ""
    elsewhere = "" if ALL in panels else study.elsewhere
    caption = (
        f"The losses of each scorer by their mean NDCG@10 over {study.size}{trees}. A bar joins "
        f"neighbours of which no two differ. {study.standard} Queries without a relevant document "
        f"are left out. {elsewhere}{study.scale()}"
    )
    return FigureResult(figure, pd.concat(frames, ignore_index=True), caption)


def ties(verdicts: np.ndarray) -> list[tuple[int, int]]:
    """The largest groups of neighbours of which no two differ.

    Args:
        verdicts: ``[k, k]``, 0 where two are tied, in order.

    Returns:
        First and last position of each group of at least two; no group lies within another.

    >>> ties(np.array([[0, 0, 1], [0, 0, 0], [-1, 0, 0]]))
    [(0, 1), (1, 2)]
    """
    groups: list[tuple[int, int]] = []
    for first in range(len(verdicts)):
        last = first
        while last + 1 < len(verdicts) and not verdicts[first : last + 1, last + 1].any():
            last += 1
        if last > first and (not groups or last > groups[-1][1]):
            groups.append((first, last))
    return groups


def _panels(study: Comparison) -> dict[str, list[int]]:
    """The methods of each scorer with trees; all together if no scorer has enough to compare."""
    trees = study.trees_beside_losses
    panels = {scorer: study.of(scorer) + trees for scorer in NEURAL if study.of(scorer)}
    enough = {name: numbers for name, numbers in panels.items() if len(numbers) >= LEAST_RANKED}
    return enough or {ALL: list(range(len(study.labels)))}


def _panel_data(
    study: Comparison, scorer: str, order: Sequence[int], means: np.ndarray
) -> pd.DataFrame:
    """The methods of a panel with their means and places, the best first."""
    frame = pd.DataFrame(
        {
            "panel": SCORERS.get(scorer, scorer),
            **study.names.iloc[list(order)].to_dict("list"),
            "metric": "NDCG@10",
            "mean": means[list(order)],
            "first_place": study.places[list(order), 0],
            "last_place": study.places[list(order), 1],
            "distance_of_controls": study.distance,
            "queries": study.n_queries,
        }
    )
    return in_front(frame, study.about)


def _draw_panel(
    axes: Axes, frame: pd.DataFrame, groups: Sequence[tuple[int, int]], height: float, title: str
) -> None:
    """One diagram; y is in inches downwards from the scale, on which the best is to the left."""
    means = frame["mean"].to_numpy()
    ticks = MaxNLocator(3, steps=[1, 2, 5, 10]).tick_values(means[-1], means[0])
    low, high = min(ticks[0], means[-1]), max(ticks[-1], means[0])
    # Labels take as much of the width as they need on either side.
    margin = (1.1 if frame["panel"].iloc[0] == ALL else 0.62) * (high - low)
    axes.set(xlim=(high + margin, low - margin), ylim=(height - 0.42, -0.42))
    axes.axis("off")
    axes.text(high + margin, -0.36, title, ha="left", va="center", fontsize=7, weight="bold")
    axes.plot([low, high], [0, 0], color=figures.BLACK, linewidth=0.8)
    for tick in ticks:
        axes.plot([tick, tick], [-0.03, 0], color=figures.BLACK, linewidth=0.6)
        axes.text(tick, -0.05, f"{tick:g}", ha="center", va="bottom", fontsize=6)
    far = float(frame["distance_of_controls"].iloc[0])
    if far:
        axes.plot([low, low + far], [-0.25, -0.25], color=figures.VERMILLION, linewidth=1.6)
        axes.text(low, -0.25, " controls", ha="left", va="center", fontsize=6)
    reach = 0.005 * (high - low)
    for number, (first, last) in enumerate(groups):
        y = 0.05 + _BAR * number
        axes.plot(
            [means[first] + reach, means[last] - reach],
            [y, y],
            color=figures.BLUE,
            linewidth=2.0,
            solid_capstyle="butt",
            zorder=3,
        )
    names = labels_of(frame) if frame["panel"].iloc[0] == ALL else frame["method"].tolist()
    below = 0.05 + _BAR * len(groups) + 0.06
    half = (len(means) + 1) // 2
    for number, row in enumerate(frame.itertuples()):
        left = number < half
        y = below + _LABEL * (number if left else len(means) - 1 - number)
        end = high + 0.02 * margin if left else low - 0.02 * margin
        axes.plot([row.mean] * 2 + [end], [0, y, y], color="#777777", linewidth=0.5)
        text = f"{names[number]} {row.mean:.3f}" if left else f"{row.mean:.3f} {names[number]}"
        axes.text(
            end,
            y,
            f"{text} " if left else f" {text}",
            ha="right" if left else "left",
            va="center",
            fontsize=5.5,
            style="italic" if row.scorer == SCORERS["trees"] else "normal",
        )


def figure_gaps(evidence: Evidence, dataset: str) -> FigureResult:
    """Every method's mean less the highest one, with its interval."""
    study = comparison(evidence, dataset)
    gaps = gaps_of(study.pairs, study.labels)
    data = in_front(study.names.iloc[gaps["number"]], study.about).assign(
        metric="NDCG@10",
        difference=gaps["difference"].to_numpy(),
        half_width=gaps["half_width"].to_numpy(),
        first_place=study.places[gaps["number"], 0],
        last_place=study.places[gaps["number"], 1],
        may_be_best=study.may_be_best[gaps["number"]],
        distance_of_controls=study.distance,
        queries=study.n_queries,
    )
    scorers = [_SCORER_OF[title] for title in data["scorer"]]
    labels = [study.labels[number] for number in gaps["number"]]
    figure = draw_gaps(data, labels, scorers)
    figures.small_print(figure, origin_line([study.dataset], study.edition))
    caption = (
        f"Mean NDCG@10 of all {len(data)} methods over {study.size}, less that of {labels[0]}, the "
        "highest, with the 95% interval of the difference, which is not corrected. Filled: the "
        f"methods that may be the best, {int(study.may_be_best.sum())}; the best is among them "
        "with 95% confidence. Shaded: the distance of the controls. "
        f"{study.standard} Queries without a relevant document are left out. {study.scale()}"
    )
    return FigureResult(figure, data, caption)


#: A scorer's name in print → in experiments.
_SCORER_OF = {title: scorer for scorer, title in SCORERS.items()}


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
        half_width = Estimate(row.difference, row.error, row.freedom).interval().half_width
        rows.append((other, table[other, best], half_width))
    frame = pd.DataFrame(rows, columns=["number", "difference", "half_width"])
    return frame.sort_values("difference", ascending=False, kind="stable", ignore_index=True)


def draw_gaps(
    data: pd.DataFrame,
    labels: Sequence[str],
    scorers: Sequence[str],
    marks: pd.DataFrame | None = None,
) -> Figure:
    """A row per method: its difference from the best with the interval.

    Args:
        data: ``difference``, ``half_width``, ``may_be_best`` and ``distance_of_controls``.
        labels: of the methods.
        scorers: of each, by their names in experiments.
        marks: further differences of each method, which are drawn as grey lines; a column each.
    """
    figure, axes = figures.new_figure(height=0.7 + 0.098 * len(data))
    axes.axvspan(-data["distance_of_controls"].iloc[0], 0, color="#DDEBF5", zorder=0)
    for _, own in marks.items() if marks is not None else ():
        axes.plot(own, range(len(data)), "|", color="#999999", markersize=3)
    for scorer, look in LOOKS.items():
        shown = np.array([one == scorer for one in scorers])
        if not shown.any():
            continue
        axes.plot([], [], linestyle="none", markersize=3.2, label=SCORERS[scorer], **look)
        for filled in (True, False):
            rows = np.flatnonzero(shown & (data["may_be_best"].to_numpy() == filled))
            axes.errorbar(
                data["difference"].iloc[rows],
                rows,
                xerr=data["half_width"].iloc[rows],
                linestyle="none",
                markersize=3.2,
                elinewidth=0.7,
                capsize=0,
                markerfacecolor=look["color"] if filled else "white",
                markeredgewidth=0.7,
                **look,
            )
    axes.set_yticks(range(len(data)), labels)
    axes.tick_params(axis="y", labelsize=5.2, length=0)
    axes.set(ylim=(len(data) - 0.4, -0.6), xlabel="NDCG@10, less that of the first")
    axes.grid(axis="y", visible=False)
    scorer_legend(figure)
    return figure


def table_pairs(evidence: Evidence, dataset: str) -> TableResult:
    """Every pair of methods: all in the CSV file, those that differ to be read."""
    study = comparison(evidence, dataset)
    pairs, margin = study.pairs, study.margin
    data = pd.DataFrame(
        {
            **study.names.iloc[pairs["a"]].to_dict("list"),
            **study.names.iloc[pairs["b"]].add_prefix("other_").to_dict("list"),
            "metric": "NDCG@10",
            "queries": study.n_queries,
            "difference": pairs["difference"],
            "half_width": [
                Estimate(row.difference, row.error, row.freedom).interval().half_width
                for row in pairs.itertuples()
            ],
            "p_value": pairs["p_value"],
            "p_corrected": pairs["p_differs"],
            "p_beyond_corrected": pairs["p_beyond"],
            "p_equivalent_corrected": pairs["p_within"],
            "verdict": pairs["verdict"],
            "size": pairs["size"],
            "tied": study.verdicts[pairs["a"], pairs["b"]] == 0,
        }
    )
    data = in_front(data.rename(columns={"other_method": "other"}), study.about)
    sure = data[~data["tied"]]
    clearest = sure.reindex(sure["p_corrected"].sort_values(kind="stable").index)[:SHOWN]
    caption = (
        f"The {'pairs' if len(sure) <= SHOWN else f'{SHOWN} clearest pairs'} of methods that "
        "differ significantly in NDCG@10, ordered by p: the difference ± the half width of its 95% "
        f"interval, which is not corrected, and p, corrected over all {len(pairs)} pairs, also of "
        f"different scorers; all are in the CSV file. {study.standard} Queries without a relevant "
        f"document are left out; there are {study.size}. {study.elsewhere}{study.scale()}"
    )
    columns = ["Better", "Worse", "difference in NDCG@10", "p", "verdict"]
    lines = [_line(row, margin) for row in clearest.itertuples()] or [["none", *[""] * 4]]
    layout = Layout(
        _told(data, sure, margin), caption, columns, [Section("", lines)], [_settled(study, data)]
    )
    return TableResult(data, layout)


def _line(row: Any, margin: float) -> list[str]:
    """A pair that differs, the better method first."""
    labels = [_label(row.method, row.scorer), _label(row.other, row.other_scorer)]
    ahead = row.verdict == BETTER
    better, worse = labels if ahead else labels[::-1]
    gap = difference(abs(row.difference), row.half_width)
    said = in_words(BETTER, row.size, margin)
    return [better, worse, gap, p_value(row.p_corrected, 3), said]


def _told(data: pd.DataFrame, sure: pd.DataFrame, margin: float) -> str:
    """How many pairs differ, and by how much."""
    within = int((sure["scorer"] == sure["other_scorer"]).sum())
    beyond = int((sure["size"] == "more than the margin").sum())
    return lead(
        f"{share(len(sure), len(data))} pairs of methods differ significantly and by more than the "
        f"controls, {beyond} of them by more than {margin:g}",
        f"{share(within, len(sure))} are pairs of losses with the same scorer, or of trees"
        if len(sure)
        else "",
    )


def _settled(study: Comparison, data: pd.DataFrame) -> str:
    """Of how many pairs something is known: that they differ, or that they do not matter."""
    counts = data["verdict"].value_counts()
    differ = int(sum(counts.get(word, 0) for word in TURNED))
    near = differ - int((~data["tied"]).sum())
    return (
        f"**What is known of all pairs.** {differ} of {len(data)} differ significantly, {near} of "
        f"them by no more than the controls, which count as tied; {counts.get(EQUIVALENT, 0)} are "
        f"equivalent within {study.margin:g} by two one-sided tests, and of "
        f"{counts.get('cannot tell', 0)} neither is known. The median half width of a difference "
        f"is {measured(data['half_width'].median(), digits=4)}."
    )


def _label(name: str, scorer: str) -> str:
    return name if scorer in [SCORERS[one] for one in ALONE] else f"{name} ({scorer})"
