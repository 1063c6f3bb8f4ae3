"""What Pobrotyn2021 says of its relaxation and does not show: temperature and Sinkhorn scaling.

Both figures are computed on lists made for the purpose, as long as those that rankers meet: labels
in Web30K's proportions, scores of standard normal values through Tanh, which is what the paper puts
behind its network. No data, no training; all in float64.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from directrank import losses, metrics
from directrank.lists.conventions import discount
from directrank.papers.shared import figures
from directrank.papers.shared.evidence import Evidence
from directrank.papers.shared.product import FigureResult
from directrank.relaxations.neural_sort import sinkhorn, sorting_matrix
from directrank.system.seeds import numpy_stream

#: Shares of the labels 0 to 4 (Web30K's, rounded).
LABEL_SHARES = (0.52, 0.32, 0.13, 0.02, 0.01)

#: Documents per list: a short one, Web30K's mean, and the length that training cuts to.
TAU_LENGTHS = (30, 120, 240)
SINKHORN_LENGTHS = (10, 40, 120, 240)

#: The temperatures of the interval that the paper searched (section 5.4).
TAUS = tuple(float(10.0**e) for e in np.arange(-2, 2.25, 0.5).round(2))
ROUNDS = (1, 2, 5, 10, 20, 30, 50, 100, 200, 500)

#: Rounds after which a list counts as converged.
CONVERGED = 1000

#: What the paper and the released code stop at (footnote 2).
PAPER_ROUNDS = 30
CODE_ROUNDS = 50
TOLERANCE = 1e-6

#: What the figures are computed on, for their captions.
_LISTS = (
    "The lists are generated: labels in Web30K's proportions, and scores that are tanh of standard "
    "normal values. Nothing is trained."
)

TAU_LISTS = 100
SINKHORN_LISTS = 12


def made_lists(length: int, lists: int, purpose: str) -> tuple[Tensor, Tensor]:
    """Scores and labels ``[lists, length]``, float64; all lists have the same labels."""
    stream = numpy_stream("pobrotyn2021", purpose, length)
    scores = np.tanh(stream.normal(size=(lists, length)))
    counts = np.round(np.cumsum(LABEL_SHARES) * length).astype(int)
    labels = np.searchsorted(counts, np.arange(length), side="right").astype(np.float64)
    labels[-1] = max(labels[-1], 1.0)
    return torch.from_numpy(scores), torch.from_numpy(labels).expand(lists, -1).clone()


def accuracy_and_noise(length: int, taus: Sequence[float]) -> pd.DataFrame:
    """How far NeuralNDCG is from NDCG, and how its gradient scatters, per temperature.

    Returns:
        Columns ``documents``, ``tau``, ``error`` (mean of |NeuralNDCG - NDCG| over the lists),
        ``variance`` (of the gradient over lists that differ in their scores alone, summed over the
        documents) and ``signal`` (squared norm of the mean gradient).
    """
    scores, labels = made_lists(length, TAU_LISTS, "tau")
    exact = metrics.ndcg(scores, labels)
    rows = []
    for tau in taus:
        leaf = scores.clone().requires_grad_()
        value = -losses.neural_ndcg(leaf, labels, tau=tau, iterations=PAPER_ROUNDS)
        (gradient,) = torch.autograd.grad(value.sum(), leaf)
        rows.append(
            {
                "documents": length,
                "tau": tau,
                "error": float((value.detach() - exact).abs().mean()),
                "variance": float(gradient.var(0).sum()),
                "signal": float(gradient.mean(0).square().sum()),
            }
        )
    return pd.DataFrame(rows)


def figure_tau(evidence: Evidence) -> FigureResult:
    """Error of the approximation and variance of its gradient against the temperature."""
    data = pd.concat([accuracy_and_noise(n, TAUS) for n in TAU_LENGTHS], ignore_index=True)
    figure, (left, right) = figures.new_figure(2 * figures.COLUMN, 2.3, ncols=2)
    for number, (length, part) in enumerate(data.groupby("documents")):
        look, label = figures.SERIES[number], f"{length} documents"
        left.loglog(part["tau"], part["error"], label=label, **look)
        right.loglog(part["tau"], part["variance"], label=label, **look)
    left.set(xlabel="temperature τ", ylabel="mean |NeuralNDCG − NDCG|")
    right.set(xlabel="temperature τ", ylabel="total variance of the gradient")
    for axes in (left, right):
        figures.label_ends(axes)
    for axis in (left.xaxis, left.yaxis, right.xaxis):
        figures.plain_log_ticks(axis)
    caption = (
        "Left: the distance between NeuralNDCG and NDCG. Right: the variance of its gradient over "
        f"{TAU_LISTS} lists with the same labels and different scores, summed over documents. "
        f"{_LISTS} Sinkhorn scaling has at most {PAPER_ROUNDS} rounds. Edition {evidence.edition}."
    )
    return FigureResult(figure, data, caption)


def convergence(length: int, rounds: Sequence[int]) -> pd.DataFrame:
    """How far Sinkhorn scaling is from its limit after each number of rounds, at τ = 1.

    Returns:
        One row per number of rounds: ``documents``, ``rounds``, and the median and the maximum over
        the lists of ``off`` (largest |sum - 1| of a column or row), ``error`` (of NeuralNDCG, from
        its value after :data:`CONVERGED` rounds), ``gap`` (|NeuralNDCG - NeuralNDCGᵀ|).
    """
    scores, labels = made_lists(length, SINKHORN_LISTS, "sinkhorn")
    mask = torch.ones_like(scores, dtype=torch.bool)
    weights = discount("log2", torch.arange(1, length + 1, dtype=scores.dtype))
    gains = torch.exp2(labels) - 1
    gains = gains / (gains.sort(descending=True).values * weights).sum(1, keepdim=True)
    plain = sorting_matrix(scores, mask, 1.0)
    transposed = plain.mT.contiguous()
    stages = []
    for before, after in itertools.pairwise((0, *rounds, CONVERGED)):
        plain = sinkhorn(plain, after - before, 0.0)
        transposed = sinkhorn(transposed, after - before, 0.0)
        sums = torch.cat([plain.sum(1), plain.sum(2)], 1)
        stages.append(
            {
                "off": (sums - 1).abs().amax(1),
                "value": torch.einsum("r,bri,bi->b", weights, plain, gains),
                "gap": torch.einsum("r,bri,bi->b", weights, plain - transposed.mT, gains).abs(),
            }
        )
    last = stages.pop()["value"]
    rows = []
    for count, each in zip(rounds, stages, strict=True):
        row: dict[str, float] = {"documents": length, "rounds": count}
        for name, values in {**each, "error": (each["value"] - last).abs()}.items():
            if name != "value":
                row[f"{name}_median"] = float(values.median())
                row[f"{name}_max"] = float(values.max())
        rows.append(row)
    return pd.DataFrame(rows)


def figure_sinkhorn(evidence: Evidence) -> FigureResult:
    """How far Sinkhorn scaling is from converged, and what that does to the two losses."""
    data = pd.concat([convergence(n, ROUNDS) for n in SINKHORN_LENGTHS], ignore_index=True)
    data = data.round(12)  # what is left below is rounding
    figure, (left, right) = figures.new_figure(2 * figures.COLUMN, 2.4, ncols=2)
    for number, (length, part) in enumerate(data.groupby("documents")):
        look, label = figures.SERIES[number], f"{length} documents"
        for axes, column in ((left, "off_median"), (right, "gap_median")):
            above = part[part[column] > 0]  # a zero has no place on a logarithmic axis
            axes.loglog(above["rounds"], above[column], label=label, **look)
    left.axhline(TOLERANCE, color=figures.BLACK, linewidth=0.7)
    left.annotate(
        "tolerance", (1, TOLERANCE), textcoords="offset points", xytext=(2, 2), fontsize=6
    )
    for axes in (left, right):
        for count in (PAPER_ROUNDS, CODE_ROUNDS):
            axes.axvline(count, color="#888888", linewidth=0.7, linestyle=":")
        axes.set_xlabel("rounds of Sinkhorn scaling")
    left.set_ylabel("largest |sum − 1|")
    right.set_ylabel("|NeuralNDCG − NeuralNDCGᵀ|")
    for axes in (left, right):
        figures.plain_log_ticks(axes.xaxis)
    left.legend(loc="lower left")
    caption = (
        "Left: the largest distance of the column and row sums from one, by the number of rounds; "
        "the line is the tolerance of the paper's footnote 2. Right: the distance between "
        "NeuralNDCG and its transpose, which are the same function without scaling and once it has "
        f"converged. Curves are medians of {SINKHORN_LISTS} lists at τ = 1; dotted lines are at "
        f"{PAPER_ROUNDS} rounds, the paper's limit, and {CODE_ROUNDS}, that of its released code. "
        "A curve ends below 1e-12, where only rounding errors are left. "
        f"{_LISTS} Edition {evidence.edition}."
    )
    return FigureResult(figure, data, caption)
