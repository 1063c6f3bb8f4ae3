"""The figures of Bruch2019: the sigmoid, and NDCG against its exponent and the network's depth.

Queries without a relevant document are left out of every mean, as in the paper (section 3.1);
NDCG is in per cent; intervals are Student's t at 95 % over the trials.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.special import expit

from directrank.papers.shared import figures
from directrank.papers.shared.evidence import (
    Dataset,
    Evidence,
    FinishedRun,
    data_sentence,
    origin_line,
)
from directrank.papers.shared.findings import MORE, Finding, Outcome, computed
from directrank.papers.shared.format import listed, spread
from directrank.papers.shared.product import FigureResult
from directrank.stats.estimates import mean_interval
from directrank.study.specification import value_at
from directrank.system.errors import DataError

CUTOFFS = (1, 5, 10)

#: The metric by which the paper chose α (section 3.3).
CHOOSING = "NDCG@5"


def ndcg(run: FinishedRun, split: str, cutoff: int) -> np.ndarray:
    """Mean NDCG@cutoff in per cent over the queries with a relevant document, ``[trials]``."""
    return 100 * run.trial_means(split, f"ndcg@{cutoff}", "exclude")


def alpha(run: FinishedRun) -> float:
    """The sigmoid exponent with which a run was trained."""
    return float(_setting(run, "loss.alpha"))


def width(run: FinishedRun) -> int:
    """The width of a run's first hidden layer."""
    return int(_setting(run, "model.hidden")[0])


def depth(run: FinishedRun) -> str:
    """The paper's name of a run's network: B and the width of the first hidden layer."""
    return f"B{width(run)}"


def _setting(run: FinishedRun, path: str) -> Any:
    value = value_at(run.result.spec, path)
    if value is None:
        raise DataError(
            f"this run's specification has no '{path}'",
            "set it in the experiment",
            file=run.result.folder,
        )
    return value


def sigmoid_curves() -> dict[int, tuple[np.ndarray, np.ndarray]]:
    """α → score differences ``[201]`` and their sigmoid (equation 6), for the α of Figure 1."""
    delta = np.linspace(-5, 5, 201)
    return {a: (delta, expit(a * delta)) for a in (1, 5, 10)}


def figure1(evidence: Evidence) -> FigureResult:
    """Figure 1: the indicator and its sigmoid approximations (equation 6); analytic."""
    curves = [("Indicator", np.array([-5, 0, 0, 5.0]), np.array([0, 0, 1, 1.0]))]
    curves += [(f"α = {a}", *curve) for a, curve in sigmoid_curves().items()]
    figure, axes = figures.new_figure(height=2.0)
    colors = (figures.BLACK, figures.BLUE, figures.VERMILLION, figures.GREEN)
    for (label, x, y), color, line in zip(curves, colors, ("-", "--", "-.", ":"), strict=True):
        axes.plot(x, y, color=color, linestyle=line, label=label)
    axes.set(
        xlabel="Δ",
        ylabel="indicator and sigmoid",
        xticks=range(-4, 5, 2),
        yticks=np.linspace(0, 1, 5),
    )
    axes.legend(loc="lower right")
    data = pd.concat(
        [pd.DataFrame({"curve": label, "delta": x, "value": y}) for label, x, y in curves]
    )
    caption = (
        "The sigmoid approximation 1 / (1 + exp(−αΔ)) of the indicator function Δ > 0 for several "
        f"values of α. The curves are analytic. Edition {evidence.edition}."
    )
    return FigureResult(figure, data, caption)


#: What Figure 2 shows.
EXPONENT = "Effect of the sigmoid exponent α of ApproxNDCG with a network of one hidden layer"


def figure2(evidence: Evidence, experiment: str = "alpha_sweep") -> FigureResult:
    """Figure 2: NDCG on the validation set against the sigmoid exponent α."""
    runs = sorted(evidence.runs(experiment), key=alpha)
    rows = _rows(evidence, runs, "alpha", [f"{alpha(run):g}" for run in runs])
    return _sweep(evidence, runs, rows, "metric", "α", EXPONENT)


def figure2_width(evidence: Evidence) -> FigureResult:
    """Figure 2 for several widths of the hidden layer, which the paper does not give: NDCG@5."""
    runs = sorted(evidence.runs("alpha_width_sweep"), key=lambda run: (width(run), alpha(run)))
    rows = _rows(evidence, runs, "alpha", [f"{alpha(run):g}" for run in runs], (5,))
    rows.insert(rows.columns.get_loc("metric"), "width", [f"{width(run)} units" for run in runs])
    return _sweep(evidence, runs, rows, "width", "α", f"{EXPONENT} of different widths")


def figure3(evidence: Evidence, experiment: str = "depth_sweep") -> FigureResult:
    """Figure 3: NDCG on the validation set against the depth of the network."""
    runs = sorted(evidence.runs(experiment), key=lambda run: int(depth(run)[1:]))
    what = "Effect of the network's depth"
    alphas = sorted({alpha(run) for run in runs})
    if len(alphas) == 1:
        what += f" with ApproxNDCG and α = {alphas[0]:g}"
    rows = _rows(evidence, runs, "model", [depth(run) for run in runs])
    networks = (
        "The network B64 has hidden layers of 64, 32 and 16 units; every larger network has one "
        "more layer in front, of twice the width. "
    )
    return _sweep(evidence, runs, rows, "metric", "Model", what, networks)


def _rows(
    evidence: Evidence,
    runs: Sequence[FinishedRun],
    column: str,
    labels: Sequence[str],
    cutoffs: Sequence[int] = CUTOFFS,
) -> pd.DataFrame:
    """NDCG on the validation set with its interval, a row per run and cut-off."""
    rows = []
    for label, run in zip(labels, runs, strict=True):
        for cutoff in cutoffs:
            interval = mean_interval(ndcg(run, "vali", cutoff))
            rows.append(
                evidence.about(runs[0].dataset)
                | {
                    "split": "validation",
                    column: label,
                    "metric": f"NDCG@{cutoff}",
                    "mean": interval.mean,
                    "half_width": interval.half_width,
                    "low": interval.low,
                    "high": interval.high,
                    "trials": interval.n,
                }
            )
    return pd.DataFrame(rows)


def _sweep(
    evidence: Evidence,
    runs: Sequence[FinishedRun],
    data: pd.DataFrame,
    lines: str,
    axis: str,
    what: str,
    remark: str = "",
) -> FigureResult:
    """A line with intervals for each value of the column ``lines``, over equal steps."""
    ranks = listed([f"{cutoff}" for cutoff in CUTOFFS if f"NDCG@{cutoff}" in set(data["metric"])])
    figure = draw_sweep(data, lines, axis)
    origin = origin_line([runs[0].dataset], evidence.edition)
    figures.small_print(figure, f"{of_sweep(data)}; {origin}")
    caption = _sweep_caption(evidence, runs, what, ranks, remark)
    return FigureResult(figure, data, caption, finding=seen_in_sweep(data, lines))


def draw_sweep(data: pd.DataFrame, lines: str, axis: str) -> Figure:
    """A frame for each metric, of the same range, with a curve for each value of ``lines``."""
    steps = list(dict.fromkeys(data[_steps(data)]))
    names = list(dict.fromkeys(data["metric"]))
    figure, frames = figures.new_figure(
        height=1.3 + 1.1 * len(names), nrows=len(names), sharex=True, squeeze=False
    )
    for axes, metric in zip(frames.flat, names, strict=True):
        of_metric = data[data["metric"] == metric]
        for number, (name, curve) in enumerate(of_metric.groupby(lines, sort=False)):
            # Side by side by a little, so that the bars of close curves can be told apart.
            x = np.arange(len(steps)) + (0.08 * (number - 1) if lines != "metric" else 0)
            label = "_" if lines == "metric" else str(name)
            figures.interval_line(
                axes, x, curve["mean"], curve["half_width"], label=label, series=number
            )
        axes.set_ylabel(f"{metric} (%)")
        axes.set_xticks(np.arange(len(steps)), steps)
        axes.grid(False, axis="x")
    _same_range(list(frames.flat))
    for axes in frames.flat:
        figures.label_ends(axes)
    frames[-1, 0].set_xlabel(axis)
    figure.align_ylabels()
    return figure


def _same_range(frames: Sequence[Axes]) -> None:
    """Give all frames a y axis as long as the longest, around the middle of their own."""
    limits = [axes.get_ylim() for axes in frames]
    longest = max(high - low for low, high in limits)
    for axes, (low, high) in zip(frames, limits, strict=True):
        axes.set_ylim((low + high - longest) / 2, (low + high + longest) / 2)


def seen_in_sweep(data: pd.DataFrame, lines: str) -> str:
    """How much NDCG changes along the axis, in a few words."""
    column = _steps(data)
    at = "with " if column == "model" else "at α\u00a0=\u00a0"
    if lines != "metric":
        curves = data.groupby(lines, sort=False)["mean"]
        ranges = curves.max() - curves.min()
        widest = ranges.idxmax()
        return f"{data['metric'].iloc[0]} varies most with {widest}, by {ranges[widest]:.2f} points"
    curve = data[data["metric"] == CHOOSING].set_index(column)
    means, half_width = curve["mean"], curve["half_width"].median()
    intervals = "" if np.isnan(half_width) else f" (intervals ±\u00a0{half_width:.2f})"
    return (
        f"{CHOOSING} is highest {at}{means.idxmax()} and {means.max() - means.min():.2f} points "
        f"lower {at}{means.idxmin()}{intervals}"
    )


def of_sweep(data: pd.DataFrame) -> str:
    """What marks and bars are, for the foot of the picture."""
    bars = ", with 95% intervals" if data["half_width"].notna().any() else ""
    return f"{data['split'].iloc[0].capitalize()} set, means over trials{bars}"


def _steps(data: pd.DataFrame) -> str:
    """The column of the axis."""
    return "model" if "model" in data else "alpha"


def _sweep_caption(
    evidence: Evidence, runs: Sequence[FinishedRun], what: str, ranks: str, remark: str
) -> str:
    trials = [run.n_trials for run in runs]
    marks = f"Marks are means over {spread(trials, 'trial')}, and bars their 95% t intervals."
    return (
        f"{what}: NDCG at rank {ranks} on the validation set. {remark}"
        f"{marks if min(trials) > 1 else 'Marks are single trials, without intervals.'} "
        "Queries without a relevant document are left out. "
        f"{data_sentence(runs, 'vali', 'validation set')} "
        "The paper gives this figure's values only as a picture, so none are drawn beside ours. "
        f"Edition {evidence.edition}."
    )


def claim_sigmoid(evidence: Evidence) -> Outcome:
    """A larger α brings the sigmoid closer to the indicator (D01; from Figure 1's data)."""
    curves = sigmoid_curves()
    distances = {
        alpha: float(np.abs(values - (delta > 0)).mean())
        for alpha, (delta, values) in curves.items()
    }
    findings = [
        Finding(
            comparison=f"mean distance from the indicator at α = {low} − at α = {high}",
            claimed=MORE,
            dataset=Dataset("bruch2019_figure1", "score differences of Figure 1", "generated"),
            unit="",
            measurement=computed(
                distances[low] - distances[high], f"{len(curves[low][0])} values of Δ"
            ),
        )
        for low, high in itertools.pairwise(curves)
    ]
    return Outcome(findings)
