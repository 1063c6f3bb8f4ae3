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
    column = "model" if "model" in data else "alpha"
    figure, axes = figures.new_figure(height=2.5)
    _draw_sweep(axes, data, lines, list(dict.fromkeys(data[column])))
    ranks = listed([f"{cutoff}" for cutoff in CUTOFFS if f"NDCG@{cutoff}" in set(data["metric"])])
    single = data["metric"].nunique() == 1
    axes.set(xlabel=axis, ylabel=f"{data['metric'].iloc[0]} (%)" if single else "NDCG (%)")
    figures.small_print(figure, origin_line([runs[0].dataset], evidence.edition))
    return FigureResult(figure, data, _sweep_caption(evidence, runs, what, ranks, remark))


def _draw_sweep(axes: Axes, data: pd.DataFrame, lines: str, labels: Sequence[str]) -> None:
    x = np.arange(len(labels))
    for number, (name, curve) in enumerate(data.groupby(lines, sort=False)):
        # Side by side by a little, so that the bars of close curves can be told apart.
        shift = 0.08 * (number - 1)
        figures.interval_line(
            axes, x + shift, curve["mean"], curve["half_width"], label=str(name), series=number
        )
    axes.set_xticks(x, labels)
    axes.grid(False, axis="x")
    figures.regular_ticks(axes, preferred=0.5)
    figures.label_ends(axes)


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
            measurements=[
                computed(distances[low] - distances[high], f"{len(curves[low][0])} values of Δ")
            ],
        )
        for low, high in itertools.pairwise(curves)
    ]
    return Outcome(findings)
