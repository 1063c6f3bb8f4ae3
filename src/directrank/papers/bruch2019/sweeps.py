"""Figures 2 and 3 of Bruch2019: NDCG against the sigmoid's exponent and the network's depth.

Intervals are Student's t at 95 % over the trials.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from directrank.papers.bruch2019.runs import CUTOFFS, alpha, depth, ndcg
from directrank.papers.shared import figures
from directrank.papers.shared.evidence import Evidence, PlannedRun, data_sentence, standin_line
from directrank.papers.shared.format import spread
from directrank.papers.shared.product import FigureResult
from directrank.stats.intervals import mean_interval
from directrank.system.errors import DataError


def figure2(evidence: Evidence) -> FigureResult:
    """Figure 2: NDCG on the validation set against the sigmoid exponent α."""
    runs = sorted(evidence.runs("alpha_sweep"), key=alpha)
    return _sweep(
        evidence,
        runs,
        column="alpha",
        labels=[f"{alpha(run):g}" for run in runs],
        axis="α",
        what="Effect of the sigmoid exponent α of ApproxNDCG, one hidden layer",
    )


def figure3(evidence: Evidence) -> FigureResult:
    """Figure 3: NDCG on the validation set against the depth of the network."""
    runs = sorted(evidence.runs("depth_sweep"), key=lambda run: int(depth(run)[1:]))
    what = "Effect of the network's depth"
    alphas = sorted({alpha(run) for run in runs})
    if len(alphas) == 1:
        what += f", ApproxNDCG with α = {alphas[0]:g}"
    return _sweep(
        evidence,
        runs,
        column="model",
        labels=[depth(run) for run in runs],
        axis="Model",
        what=what + "; B64 has the hidden layers 64, 32, 16, and each next model one more in front",
    )


def _sweep(
    evidence: Evidence,
    runs: Sequence[PlannedRun],
    column: str,
    labels: Sequence[str],
    axis: str,
    what: str,
) -> FigureResult:
    """NDCG@1, 5, 10 on the validation set with intervals, over equally spaced categories."""
    if not runs:
        raise DataError(f"nothing was run for {evidence.product}", "add runs to its experiment")
    dataset = runs[0].dataset
    rows = []
    for label, run in zip(labels, runs, strict=True):
        for cutoff in CUTOFFS:
            interval = mean_interval(ndcg(run, "vali", cutoff))
            rows.append(
                evidence.about(dataset)
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
    data = pd.DataFrame(rows)
    figure, axes = figures.new_figure(height=2.5)
    _draw_sweep(axes, data, labels)
    axes.set(xlabel=axis, ylabel="NDCG (%)")
    figures.small_print(figure, standin_line([dataset], evidence.edition))
    return FigureResult(figure, data, _sweep_caption(evidence, runs, what))


def _draw_sweep(axes: Axes, data: pd.DataFrame, labels: Sequence[str]) -> None:
    x = np.arange(len(labels))
    for number, (metric, curve) in enumerate(data.groupby("metric", sort=False)):
        # Side by side by a little, so that the bars of close curves can be told apart.
        shift = 0.08 * (number - 1)
        figures.interval_line(
            axes, x + shift, curve["mean"], curve["half_width"], label=metric, series=number
        )
    axes.set_xticks(x, labels)
    axes.grid(False, axis="x")
    figures.regular_ticks(axes, preferred=0.5)
    figures.legend_above(axes)


def _sweep_caption(evidence: Evidence, runs: Sequence[PlannedRun], what: str) -> str:
    trials = [run.n_trials for run in runs]
    text = (
        f"{what}: NDCG at ranks 1, 5, 10 on the validation set, mean over {spread(trials, 'trial')}"
    )
    text += ", bars: 95% t interval" if min(trials) > 1 else ", without interval"
    text += (
        "; queries without a relevant document are left out. "
        f"{data_sentence(runs, 'vali', 'validation set')} "
    )
    return text + (
        "The paper gives this figure's values only as a picture, so none are drawn beside ours. "
        f"Edition {evidence.edition}."
    )
