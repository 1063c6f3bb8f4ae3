"""Who can be told from whom: critical-difference diagrams, and all pairs of methods."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from directrank.papers.one_protocol import LEAST_RANKED
from directrank.papers.one_protocol.methods import (
    MARGINS,
    NEURAL,
    SCORERS,
    SIGNIFICANT,
    TITLES,
    Protocol,
    labels_of,
    p_text,
    protocol,
)
from directrank.papers.shared import figures
from directrank.papers.shared.cells import difference, measured
from directrank.papers.shared.evidence import Evidence, origin_line
from directrank.papers.shared.format import p_value, share
from directrank.papers.shared.leads import lead
from directrank.papers.shared.product import FigureResult, TableResult
from directrank.papers.shared.tables import Layout, Section, in_front
from directrank.stats.estimates import Estimate
from directrank.stats.ranks import cliques, critical_difference, friedman

#: How a scorer's methods are drawn: colour and marker, each tells them apart.
LOOKS = {
    "linear": {"color": figures.BLUE, "marker": "o"},
    "tower": {"color": figures.ORANGE, "marker": "s"},
    "context": {"color": figures.GREEN, "marker": "^"},
    "trees": {"color": figures.BLACK, "marker": "D"},
}

#: The panel of all methods, where no scorer has enough to rank.
ALL = "all methods"

#: Pairs that the table of pairs lists at most.
SHOWN = 40

#: Height of a line of labels and of a bar in a critical-difference diagram, in inches.
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
    """Critical-difference diagrams, one panel per scorer, trees in each (Demšar 2006, figure 1)."""
    study = protocol(evidence, dataset)
    panels = _panels(study)
    frames, bars = [], {}
    for scorer, numbers in panels.items():
        frames.append(_panel_data(study, scorer, numbers))
        ranks = frames[-1]["mean_rank"].to_numpy()
        bars[scorer] = cliques(ranks, float(frames[-1]["critical_difference"].iloc[0]))
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
    texts = []
    for scorer, frame, height, ax in zip(panels, frames, heights, axes[:, 0], strict=True):
        _draw_panel(ax, frame, bars[scorer], height, SCORERS.get(scorer, scorer).capitalize())
        first = frame.iloc[0]
        texts.append(
            f"{TITLES.get(scorer, scorer).lower()}: χ² = {first['friedman']:.1f}, "
            f"p {p_text(first['p_value'])}"
        )
    figures.small_print(figure, origin_line([study.dataset], study.evidence.edition))
    trees = ", which include boosted trees (italic)" if study.of("trees") else ""
    elsewhere = "" if ALL in panels else study.elsewhere
    caption = (
        f"Mean rank of each loss in NDCG@10 over {study.ranked}, among the methods of a panel"
        f"{trees}; 1 is the best. A bar joins methods that do not "
        f"differ by Nemenyi's test (CD is the critical difference at {SIGNIFICANT}). Friedman's "
        f"test of equal performance gives, by panel: {'; '.join(texts)}. {study.kind_of_blocks} "
        "are the blocks, and their values are means over trials. Queries without a relevant "
        f"document are left out. {elsewhere}{study.scale()}"
    )
    return FigureResult(figure, pd.concat(frames, ignore_index=True), caption)


def _panels(study: Protocol) -> dict[str, list[int]]:
    """The methods of each scorer with trees; all together if no scorer has enough to rank."""
    trees = study.trees_beside_losses
    panels = {scorer: study.of(scorer) + trees for scorer in NEURAL if study.of(scorer)}
    enough = {name: numbers for name, numbers in panels.items() if len(numbers) >= LEAST_RANKED}
    return enough or {ALL: study.of(*SCORERS)}


def _panel_data(study: Protocol, scorer: str, numbers: Sequence[int]) -> pd.DataFrame:
    """The methods of a panel with their mean ranks, the best first."""
    test = friedman(study.blocks[list(numbers)].to_numpy())
    frame = pd.DataFrame(
        {
            "panel": SCORERS.get(scorer, scorer),
            **study.names.iloc[list(numbers)].to_dict("list"),
            "mean_rank": test.mean_ranks,
            "critical_difference": critical_difference(len(numbers), test.blocks, SIGNIFICANT),
            "friedman": test.statistic,
            "p_value": test.p_value,
            "queries": test.blocks,
        }
    )
    return in_front(frame, study.about).sort_values("mean_rank", kind="stable", ignore_index=True)


def _draw_panel(
    axes: Axes, frame: pd.DataFrame, groups: Sequence[tuple[int, int]], height: float, title: str
) -> None:
    """One diagram; y is in inches downwards from the scale of ranks."""
    ranks = frame["mean_rank"].to_numpy()
    difference = float(frame["critical_difference"].iloc[0])
    low, high = int(np.floor(ranks[0])), int(np.ceil(ranks[-1]))
    high = max(high, low + int(np.ceil(difference)), low + 1)
    # Labels take as much of the width as they need on either side.
    margin = (1.1 if frame["panel"].iloc[0] == ALL else 0.62) * (high - low)
    axes.set(xlim=(low - margin, high + margin), ylim=(height - 0.42, -0.42))
    axes.axis("off")
    axes.text(low - margin, -0.36, title, ha="left", va="center", fontsize=7, weight="bold")
    axes.plot([low, high], [0, 0], color=figures.BLACK, linewidth=0.8)
    ticks = range(low, high + 1, 1 if high - low <= 8 else 2)
    for tick in ticks:
        axes.plot([tick, tick], [-0.03, 0], color=figures.BLACK, linewidth=0.6)
        axes.text(tick, -0.05, str(tick), ha="center", va="bottom", fontsize=6)
    axes.plot([high - difference, high], [-0.25, -0.25], color=figures.VERMILLION, linewidth=1.6)
    axes.text(
        high + 0.02 * margin, -0.25, f" CD {difference:.2f}", ha="left", va="center", fontsize=6
    )
    for number, (first, last) in enumerate(groups):
        y = 0.05 + _BAR * number
        axes.plot(
            [ranks[first] - 0.04, ranks[last] + 0.04],
            [y, y],
            color=figures.BLUE,
            linewidth=2.0,
            solid_capstyle="butt",
            zorder=3,
        )
    names = labels_of(frame) if frame["panel"].iloc[0] == ALL else frame["method"].tolist()
    below = 0.05 + _BAR * len(groups) + 0.06
    half = (len(ranks) + 1) // 2
    for number, row in enumerate(frame.itertuples()):
        left = number < half
        y = below + _LABEL * (number if left else len(ranks) - 1 - number)
        end = low - 0.02 * margin if left else high + 0.02 * margin
        axes.plot([row.mean_rank] * 2 + [end], [0, y, y], color="#777777", linewidth=0.5)
        name = names[number]
        text = f"{name} {row.mean_rank:.1f}" if left else f"{row.mean_rank:.1f} {name}"
        axes.text(
            end,
            y,
            f"{text} " if left else f" {text}",
            ha="right" if left else "left",
            va="center",
            fontsize=5.5,
            style="italic" if row.scorer == SCORERS["trees"] else "normal",
        )


def figure_ranks(evidence: Evidence, dataset: str) -> FigureResult:
    """The mean ranks of all methods together, each with half a critical difference either side."""
    study = protocol(evidence, dataset)
    test = friedman(study.blocks.to_numpy())
    difference = critical_difference(len(study.methods), test.blocks, SIGNIFICANT)
    order = np.argsort(test.mean_ranks, kind="stable")
    ranks = test.mean_ranks[order]
    data = in_front(study.names.iloc[order], study.about).assign(
        mean_rank=ranks,
        low=ranks - difference / 2,
        high=ranks + difference / 2,
        critical_difference=difference,
        queries=test.blocks,
    )
    figure, axes = figures.new_figure(height=0.7 + 0.098 * len(order))
    axes.axvspan(ranks[0] - difference / 2, ranks[0] + difference / 2, color="#DDEBF5", zorder=0)
    for scorer, look in LOOKS.items():
        rows = [row for row, number in enumerate(order) if study.methods[number].variant == scorer]
        if not rows:
            continue
        bars = axes.errorbar(
            ranks[rows],
            rows,
            xerr=difference / 2,
            linestyle="none",
            markersize=3.2,
            elinewidth=0.7,
            capsize=0,
            **look,
        )
        bars.lines[0].set_label(SCORERS[scorer])
    methods = [study.methods[number] for number in order]
    axes.set_yticks(range(len(order)), [one.label for one in methods])
    axes.tick_params(axis="y", labelsize=5.2, length=0)
    axes.set(ylim=(len(order) - 0.4, -0.6), xlabel="mean rank")
    axes.grid(axis="y", visible=False)
    scorer_legend(figure)
    figures.small_print(figure, origin_line([study.dataset], study.evidence.edition))
    within = int((ranks <= ranks[0] + difference).sum()) - 1
    caption = (
        f"Mean rank of all {len(order)} methods in NDCG@10 over {study.ranked}; 1 is the best. "
        f"Lines extend by half of Nemenyi's critical difference ({difference:.2f} at "
        f"{SIGNIFICANT}) to either side, so two methods differ if their lines do not overlap. The "
        "line of the best "
        f"overlaps with those of {within} of the {len(order) - 1} others (shaded). Friedman's test "
        f"of equal performance gives χ² = {test.statistic:.1f}, p {p_text(test.p_value)}. Values "
        "are means over trials; queries without a relevant document are left out. "
        f"{study.scale()}"
    )
    return FigureResult(figure, data, caption)


def table_pairs(evidence: Evidence, dataset: str) -> TableResult:
    """Every pair of methods: all in the CSV file, those that differ to be read."""
    study = protocol(evidence, dataset)
    ranks = study.mean_ranks
    critical = critical_difference(len(study.methods), len(study.blocks), SIGNIFICANT)
    pairs = study.pairs
    data = pd.DataFrame(
        {
            **study.names.iloc[pairs["a"]].to_dict("list"),
            **study.names.iloc[pairs["b"]].add_prefix("other_").to_dict("list"),
            "metric": "NDCG@10",
            "queries": len(study.values),
            "difference": pairs["difference"],
            "half_width": [
                Estimate(row.difference, row.error, row.freedom).interval().half_width
                for row in pairs.itertuples()
            ],
            "rank_biserial": pairs["effect"],
            "p_value": pairs["p_value"],
            "p_corrected": pairs["p_corrected"],
            "p_equivalent_corrected": study.equivalent(MARGINS[0]),
            "verdict": study.decisions,
            "rank_difference": ranks[pairs["a"]] - ranks[pairs["b"]],
        }
    )
    data = in_front(data.rename(columns={"other_method": "other"}), study.about)
    data["told_apart_by_nemenyi"] = data["rank_difference"].abs() > critical
    sure = data[data["p_corrected"] < SIGNIFICANT]
    clearest = sure.reindex(sure["rank_biserial"].abs().sort_values(ascending=False).index)[:SHOWN]
    caption = (
        f"The {'pairs' if len(sure) <= SHOWN else f'{SHOWN} clearest pairs'} of methods that "
        "differ significantly in NDCG@10, ordered by p: the difference ± the half width of its 95% "
        f"interval, which is not corrected, and p by {study.test} over {study.size} (means over "
        "trials; queries without a relevant document are left out). Significant is p < "
        f"{SIGNIFICANT} after {study.correction} over all {len(pairs)} pairs, including those with "
        "different scorers; all are in the CSV file. “Nemenyi” says whether they differ by that "
        f"test too. {study.elsewhere}{study.scale()}"
    )
    columns = ["Better", "Worse", "difference in NDCG@10", "p", "Nemenyi"]
    lines = [_line(row) for row in clearest.itertuples()] or [["none", *[""] * 4]]
    layout = Layout(
        _told(study, data, sure), caption, columns, [Section("", lines)], [_settled(study, data)]
    )
    return TableResult(data, layout)


def _line(row: Any) -> list[str]:
    """A pair that differs, the better method first."""
    labels = [_label(row.method, row.scorer), _label(row.other, row.other_scorer)]
    better, worse = labels if row.rank_biserial > 0 else labels[::-1]
    gap = row.difference if row.rank_biserial > 0 else -row.difference
    nemenyi = "yes" if row.told_apart_by_nemenyi else "no"
    return [better, worse, difference(gap, row.half_width), p_value(row.p_corrected, 3), nemenyi]


def _told(study: Protocol, data: pd.DataFrame, sure: pd.DataFrame) -> str:
    """How many pairs differ, by which test."""
    nemenyi = int(data["told_apart_by_nemenyi"].sum())
    both = int(sure["told_apart_by_nemenyi"].sum())
    within = int((sure["scorer"] == sure["other_scorer"]).sum())
    return lead(
        f"{share(len(sure), len(data))} pairs of methods differ significantly by {study.test} "
        f"after {study.correction}, {nemenyi} by Nemenyi's test, {both} by both",
        f"{share(within, len(sure))} are pairs of losses with the same scorer, or of trees"
        if len(sure)
        else "",
    )


def _settled(study: Protocol, data: pd.DataFrame) -> str:
    """Of how many pairs something is known: that they differ, or that they do not matter."""
    shares = " and ".join(f"{study.settled(m):.0%} (within ±{m:g})" for m in MARGINS)
    equal = int((data["verdict"] == "equivalent").sum())
    return (
        f"**Settled pairs.** {shares} of the pairs differ significantly or are equivalent within "
        f"the margin by two one-sided tests after {study.correction}; {equal} of {len(data)} are "
        "equivalent and do not differ significantly. The median half width of a difference is "
        f"{measured(data['half_width'].median())}."
    )


def _label(name: str, scorer: str) -> str:
    return name if scorer == SCORERS["trees"] else f"{name} ({scorer})"
