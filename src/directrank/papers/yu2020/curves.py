"""Figure 1 of Yu2020: the sigmoid, its derivative, and the twin sigmoid; no training."""

from __future__ import annotations

from typing import Any

import pandas as pd
import torch
from torch import Tensor

from directrank.papers.shared import figures
from directrank.papers.shared.evidence import Evidence
from directrank.papers.shared.product import FigureResult
from directrank.relaxations.sigmoid import SigmoidRanking
from directrank.relaxations.twin import TwinRanking

#: Steepness of the curves of Figure 1 (a) and (b); the paper's values did not survive in its text.
FIGURE1_ALPHAS = (1, 5, 10)


def sigmoid_of_pair(z: Tensor, alpha: float) -> tuple[Tensor, Tensor]:
    """What the sigmoid makes of a score difference, and its derivative, from the library's ranks.

    Args:
        z: score differences ``[n]``.
        alpha: steepness.

    Returns:
        Output and derivative, ``[n]`` each.
    """
    scores, everyone = _pairs(z)
    ranks = SigmoidRanking(scores, everyone, alpha=alpha).ranks(everyone)[:, 0]
    return _output_and_gradient(ranks, scores)


def twin_of_pair(z: Tensor, gradient: str) -> tuple[Tensor, Tensor]:
    """Likewise of the twin sigmoid with a gradient type, for a document that is better (u = 1)."""
    scores, everyone = _pairs(z)
    labels = torch.tensor([1.0, 0.0], dtype=scores.dtype).expand_as(scores)
    ranking = TwinRanking(scores, labels, everyone, gradient=gradient, break_ties=False)
    return _output_and_gradient(ranking.ranks[:, 0], scores)


def _pairs(z: Tensor) -> tuple[Tensor, Tensor]:
    """Lists of two documents whose scores differ by z."""
    scores = torch.stack([z, torch.zeros_like(z)], 1).requires_grad_()
    return scores, torch.ones_like(scores, dtype=torch.bool)


def _output_and_gradient(ranks: Tensor, scores: Tensor) -> tuple[Tensor, Tensor]:
    (gradient,) = torch.autograd.grad(ranks.sum(), scores)
    return 2 - ranks.detach(), -gradient[:, 0]


def sigmoid_figure(evidence: Evidence, derivative: bool) -> FigureResult:
    """Figure 1 (a), the sigmoid, which gets steeper with α, or (b), its derivative."""
    if derivative:
        axis = "dσ(z) / dz"
        what = "The derivative of the sigmoid 1 / (1 + exp(−αz)) for several α; its peak is α / 4."
    else:
        axis = "σ(z)"
        what = "The sigmoid 1 / (1 + exp(−αz)), which replaces the indicator z > 0, for several α."
    z = _differences()
    figure, axes = figures.new_figure(height=2.0)
    frames = []
    for number, alpha in enumerate(FIGURE1_ALPHAS):
        values = sigmoid_of_pair(z, float(alpha))[derivative].numpy()
        label = f"α = {alpha}"
        axes.plot(z.numpy(), values, label=label, **figures.line(number))
        frames.append(pd.DataFrame({"curve": label, "z": z.numpy(), "value": values}))
    axes.set(xlabel="z", ylabel=axis, xticks=range(-4, 5, 2))
    axes.legend(loc="upper left")
    caption = (
        f"{what} The paper's values of α and range of z are not in its text; these are our "
        f"choice. The curves are analytic. Edition {evidence.edition}."
    )
    return FigureResult(figure, pd.concat(frames, ignore_index=True), caption)


def twin_figure(evidence: Evidence) -> FigureResult:
    """Figure 1 (c): the twin sigmoid's output and its two gradients."""
    z = _differences()
    output, type1 = twin_of_pair(z, "type1")
    curves = {
        "output": output,
        "gradient, type 1": type1,
        "gradient, type 3": twin_of_pair(z, "type3")[1],
    }
    looks: tuple[dict[str, Any], ...] = (
        {"color": figures.BLUE, "linestyle": "-", "linewidth": 1.6, "drawstyle": "steps-mid"},
        {"color": figures.GREEN, "linestyle": "--"},
        {"color": figures.VERMILLION, "linestyle": "-."},
    )
    figure, axes = figures.new_figure(height=2.0)
    frames = []
    for (label, values), look in zip(curves.items(), looks, strict=True):
        axes.plot(z.numpy(), values.numpy(), label=label, **look)
        frames.append(pd.DataFrame({"curve": label, "z": z.numpy(), "value": values.numpy()}))
    axes.set(xlabel="z", ylabel="twin sigmoid", xticks=range(-4, 5, 2))
    axes.legend(loc="upper right", bbox_to_anchor=(1.0, 0.95))
    caption = (
        "The twin sigmoid of a score difference z: its forward output, 1 for z > 0, 1/2 for z = 0 "
        "and 0 for z < 0, and the gradients that it passes backward instead, with α_b = 1: type 1 "
        "(equation 11) and type 3 for the better document (equation 21, u = 1), which for a badly "
        "ordered pair does not vanish but tends to 2α_b. Type 2 equals type 1 here. The curves "
        f"are analytic. Edition {evidence.edition}."
    )
    return FigureResult(figure, pd.concat(frames, ignore_index=True), caption)


def _differences() -> Tensor:
    """From -5 to 5 in steps of 1/40, 0 among them exactly."""
    return torch.arange(-200, 201, dtype=torch.float64) / 40
