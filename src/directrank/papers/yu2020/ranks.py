"""Figure 1 and Tables 1 to 3 of Yu2020, which need no training, and claim C18.

Tables 2 and 3 measure ranks by the sum over a list's documents of the absolute error, averaged over
random lists. Scores are float32: the ties behind Table 3's 0.03 are those of that type.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from directrank.lists.sorting import descending_order, inverse
from directrank.papers.shared import figures
from directrank.papers.shared.cells import (
    MET,
    NOT_MET,
    add_differences,
    measured,
    printed,
    standard_error,
)
from directrank.papers.shared.evidence import Dataset, Evidence
from directrank.papers.shared.findings import (
    MORE,
    Finding,
    Outcome,
    computed,
    paired,
    value,
)
from directrank.papers.shared.format import count, headings, signed
from directrank.papers.shared.leads import lead, met
from directrank.papers.shared.product import FigureResult, TableResult
from directrank.papers.shared.tables import Cells, Section, TableLayout, in_front, sections_of
from directrank.papers.yu2020.accuracy import TABLE1_ROWS
from directrank.relaxations.sigmoid import SigmoidRanking
from directrank.relaxations.twin import TwinRanking
from directrank.stats.estimates import mean_interval
from directrank.system.seeds import numpy_stream, torch_stream

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


#: Lists and documents per list of Tables 2 and 3.
VECTORS = 100
SIZES = (123, 1000)

ALPHAS = (1, 10, 100, 1000, 10_000, 100_000)

#: Table 2 is met within 5 %; a cell that is smaller than its own sampling error, within 0.1.
RELATIVE_TOLERANCE = 0.05
ABSOLUTE_TOLERANCE = {(123, 100_000): 0.1}

#: A uniform float32 of PyTorch is a multiple of this.
RESOLUTION = 2.0**-24

SCORES = Dataset("uniform", "uniform random scores", "generated")


def permutation_example(z: Tensor) -> dict[str, list[float]]:
    """The quantities of Table 1 by their published names.

    Args:
        z: scores ``[n]`` without ties.
    """
    everyone = torch.ones(1, len(z), dtype=torch.bool)
    ranks = TwinRanking(z[None], torch.zeros_like(z)[None], everyone).ranks[0]
    by_rank = descending_order(-ranks[None], everyone)[0]
    return {
        "z": z.tolist(),
        "pi(z)": ranks.tolist(),
        "s_hat(pi(z))": ranks[by_rank].tolist(),
        "s_hat_inv(pi(z))": by_rank.tolist(),
        "z[[s_hat_inv(pi(z))]]": z[by_rank].tolist(),
    }


def uniform_scores(n: int) -> Tensor:
    """``[VECTORS, n]`` float32 scores, uniform on [0, 1)."""
    return torch.rand(VECTORS, n, generator=torch_stream("yu2020", "uniform scores", n))


def rank_errors(ranks: Tensor, scores: Tensor) -> np.ndarray:
    """The sum of absolute rank errors of each list against its true ranking.

    Tied documents have no one true order. The nearest is taken, so that a tie broken either way is
    no error, while ranks between two places are.

    Args:
        ranks: ``[B, L]``.
        scores: ``[B, L]``.

    Returns:
        float64 ``[B]``.
    """
    everyone = torch.ones_like(scores, dtype=torch.bool)
    by_rank = descending_order(-ranks, everyone)
    order = by_rank.gather(1, descending_order(scores.gather(1, by_rank), everyone))
    places = inverse(order) + 1
    return (ranks.double() - places).abs().sum(1).numpy()


@cache
def sigmoid_errors(n: int, alpha: float) -> np.ndarray:
    """Errors of sigmoid ranks (Qin2010's eq. 12) of steepness ``alpha``; ``[VECTORS]``."""
    scores = uniform_scores(n)
    everyone = torch.ones_like(scores, dtype=torch.bool)
    # In float64: at a steepness of 100 000 the error is to be that of the method.
    ranking = SigmoidRanking(scores.double(), everyone, alpha=float(alpha))
    return rank_errors(ranking.ranks(everyone), scores)


def equation_12(scores: Tensor, break_ties: bool, generator: torch.Generator) -> Tensor:
    """Twin-sigmoid ranks as the paper's equation 12 has them, with no sort in it.

    ``π(i) = 1 + Σ_{j≠i} 1 − σ(s_i − s_j)``, where σ is one for a positive input, zero for a
    negative one and 0.5 for zero (section 4.2). To break ties, 0.5 becomes one or zero by a random
    permutation of the documents of each list.

    Args:
        scores: ``[B, L]``.
        break_ties: whether ties are broken.
        generator: of the permutations.

    Returns:
        float64 ``[B, L]``.
    """
    ranks = torch.empty(scores.shape, dtype=torch.float64)
    themselves = torch.eye(scores.shape[1], dtype=torch.bool)
    for number_of_list, z in enumerate(scores):
        differences = z[:, None] - z[None]
        out = (torch.sign(differences.double()) + 1) / 2
        if break_ties:
            permutation = torch.randperm(len(z), generator=generator)
            first = (permutation[:, None] > permutation[None]).double()
            out = torch.where(differences == 0, first, out)
        ranks[number_of_list] = 1 + (1 - out).masked_fill(themselves, 0).sum(1)
    return ranks


@cache
def twin_errors(n: int, break_ties: bool) -> np.ndarray:
    """Errors of twin-sigmoid ranks, of equation 12 itself; ``[VECTORS]``."""
    scores = uniform_scores(n)
    ranks = equation_12(scores, break_ties, torch_stream("yu2020", "ties", n))
    return rank_errors(ranks, scores)


def expected_ties(n: int) -> float:
    """Expected number of tied pairs in a list of ``n`` uniform float32 scores."""
    return n * (n - 1) / 2 * RESOLUTION


def table1(evidence: Evidence) -> TableResult:
    """Table 1: how ranks and sorting of z = (1, 3, 5, 4) relate."""
    in_print = evidence.published("yu2020_table1").set_index("quantity")
    places = list(in_print.columns)
    z = torch.tensor(in_print.loc["z"].to_numpy(), dtype=torch.float32)
    quantities = permutation_example(z)
    rows, lines = [], []
    for name, title in TABLE1_ROWS.items():
        values = quantities[name]
        theirs = in_print.loc[name].tolist()
        for place, ours, published in zip(places, values, theirs, strict=True):
            rows.append(
                {
                    "quantity": name,
                    "place": place,
                    "value": ours,
                    "half_width": 0.0,
                    "published": published,
                    "status": _status(ours == published),
                }
            )
        as_printed = " ".join(f"{value:g}" for value in theirs)
        lines.append([title, *(f"{value:g}" for value in values), as_printed])
    data = add_differences(_about(evidence, rows), value="value")
    caption = (
        "Permutation and sorting of four scores z: ranks π(z) of the twin sigmoid, the ranks "
        "sorted in ascending order ŝ(π(z)), the places ŝ⁻¹ from which they are taken (counted from "
        "0), and z in that order. The last column is the paper's row. "
        f"The values are analytic. Edition {evidence.edition}."
    )
    columns = ["Quantity", *(str(number) for number in range(1, len(places) + 1)), "paper"]
    return TableResult(data, TableLayout(lead(met(data)), caption, columns, [Section("", lines)]))


TABLE2: Cells = {
    "α": lambda row: count(row["alpha"]),
    "here": lambda row: measured(row["mean"], row["half_width"], 2),
    "paper": lambda row: printed(row["published"], 2),
    "difference": lambda row: signed(row["difference"], 2),
    "in per cent": lambda row: signed(100 * row["difference"] / row["published"], 1),
    "in standard errors": lambda row: signed(row["difference_in_se"], 1),
}


def table2(evidence: Evidence) -> TableResult:
    """Table 2: the error of sigmoid ranks against their steepness."""
    in_print = evidence.published("yu2020_table2")
    rows = []
    for (_, theirs), n in zip(in_print.iterrows(), SIZES, strict=True):
        for alpha in ALPHAS:
            published = float(str(theirs[f"{alpha:,}"]).replace(",", ""))
            errors = mean_interval(sigmoid_errors(n, alpha))
            tolerance = ABSOLUTE_TOLERANCE.get((n, alpha), RELATIVE_TOLERANCE * published)
            rows.append(
                {
                    "vectors": VECTORS,
                    "documents": n,
                    "alpha": alpha,
                    "mean": errors.mean,
                    "half_width": errors.half_width,
                    "published": published,
                    "tolerance": tolerance,
                    "status": _status(abs(errors.mean - published) <= tolerance),
                }
            )
    data = _about(evidence, rows)
    errors = standard_error(data["half_width"], data["vectors"])
    # The published mean is one of as many random lists, so it is as uncertain as ours.
    data = add_differences(data, error=errors, published_error=errors)
    sections = sections_of(data, TABLE2, "documents", f"{VECTORS} lists of {{}} documents")
    caption = (
        "Error of sigmoid ranks, the sum of the absolute rank errors of a list's documents: the "
        f"mean over {VECTORS} lists of scores uniform on [0, 1) ± the half width of its 95% t "
        "interval. A number is met within 5% of the published value, or within 0.1 at 123 "
        "documents and α = 100\u00a0000. Standard errors assume that the published "
        "mean is as uncertain as ours. The paper calls α σ. "
        "Scores are artificial, as in the paper; nothing is trained. "
        f"Edition {evidence.edition}."
    )
    return TableResult(data, TableLayout(lead(met(data)), caption, [*TABLE2], sections))


def _about(evidence: Evidence, rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Rows of a table with what all of them are about in front."""
    return in_front(pd.DataFrame(rows), {"edition": evidence.edition, "data": SCORES.kind})


def table3(evidence: Evidence) -> TableResult:
    """Table 3: the error of twin-sigmoid ranks, with and without tie breaking."""
    in_print = evidence.published("yu2020_table3").set_index("pi+")
    rows = []
    for name, break_ties in (("Eq-12", False), ("Eq-12 plus tie breaking", True)):
        for n in SIZES:
            errors = mean_interval(twin_errors(n, break_ties))
            published = float(in_print.loc[name, f"(v1 = {VECTORS}, v2 = {n})"])
            expected = 0.0 if break_ties else expected_ties(n)
            # Ties are rare, so the sum over the lists is a Poisson count, here and in the paper.
            tolerance = 1.96 * math.sqrt(2 * expected * VECTORS) / VECTORS
            rows.append(
                {
                    "vectors": VECTORS,
                    "documents": n,
                    "ranks": name,
                    "mean": errors.mean,
                    "half_width": errors.half_width,
                    "expected": expected,
                    "published": published,
                    "tolerance": tolerance,
                    "status": _status(abs(errors.mean - published) <= tolerance),
                }
            )
    data = _about(evidence, rows)
    # That of a Poisson count with the expected mean, the same here and in the paper.
    errors = (data["expected"] / VECTORS) ** 0.5
    data = add_differences(data, error=errors, published_error=errors)
    lines = []
    for name, part in data.groupby("ranks", sort=False):
        cells = [name.replace("Eq-12", "Equation 12").replace("plus", "with")]
        for row in part.itertuples():
            cells += [
                measured(row.mean, digits=2),
                f"{row.expected:.4f}" if row.expected else "0",
                f"{row.published:g}",
                signed(row.difference, 2),
            ]
        lines.append(cells)
    beside = ("expected", "paper", "difference")
    columns = headings("Twin sigmoid", (f"{n} documents" for n in SIZES), *beside)
    caption = (
        "Error of twin-sigmoid ranks, the sum of the absolute rank errors of a list's documents: "
        f"the mean over the {VECTORS} lists of Table 2. Without tie breaking, two equal scores "
        "share the mean of their places, which adds 1; “expected” is the expected number of equal "
        "pairs of float32 numbers, n (n − 1) / 2 × 2^(−24). Means are met within 1.96 standard "
        "deviations of the difference of two such Poisson counts, and exactly with tie breaking. "
        "Scores are artificial, as in the paper, and nothing is trained. "
        f"Edition {evidence.edition}."
    )
    return TableResult(data, TableLayout(lead(met(data)), caption, columns, [Section("", lines)]))


def claim_ranks(table2_evidence: Evidence, table3_evidence: Evidence) -> Outcome:
    """The error falls with α, and the twin sigmoid with tie breaking is exact (C18)."""
    findings = []
    for n in SIZES:
        for low, high in itertools.pairwise(ALPHAS):
            stream = numpy_stream("yu2020", "claims", n, low)
            errors = sigmoid_errors(n, low), sigmoid_errors(n, high)
            findings.append(
                Finding(
                    comparison=f"error at α = {low:g} − at α = {high:g}, {n} documents",
                    claimed=MORE,
                    dataset=SCORES,
                    unit="ranks",
                    measurement=paired(*errors, f"{VECTORS} lists", stream),
                )
            )
    for n in SIZES:
        findings.append(
            Finding(
                comparison=f"largest error of equation 12 with tie breaking, {n} documents",
                claimed=value(0.0, 0.0),
                dataset=SCORES,
                unit="ranks",
                measurement=computed(float(twin_errors(n, True).max()), f"{VECTORS} lists"),
            )
        )
    left = {n: float(twin_errors(n, False).mean()) for n in SIZES}
    remark = "Without tie breaking the mean error is " + " and ".join(
        f"{error:.2f} with {n} documents" for n, error in left.items()
    )
    return Outcome(findings, remark=remark + ".")


def _status(agrees: bool) -> str:
    return MET if agrees else NOT_MET
