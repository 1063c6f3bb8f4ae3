"""Figure 1 of Bruch2019: the sigmoid instead of the indicator function."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.special import expit

from directrank.papers.shared import figures
from directrank.papers.shared.evidence import Evidence
from directrank.papers.shared.product import FigureResult


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
