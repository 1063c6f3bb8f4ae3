"""Figures 1 and 2 and Table 1 of Pobrotyn2021, which need no training, and claim C21."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from directrank import losses, metrics
from directrank.papers.shared import figures
from directrank.papers.shared.cells import MET, NOT_MET, add_differences, measured, rounding_error
from directrank.papers.shared.evidence import Dataset, Evidence
from directrank.papers.shared.findings import MORE, Claimed, Finding, Outcome, computed, value
from directrank.papers.shared.format import headings, listed
from directrank.papers.shared.leads import lead, met
from directrank.papers.shared.product import FigureResult, TableResult
from directrank.papers.shared.tables import Section, TableLayout
from directrank.relaxations.neural_sort import sorting_matrix

#: Rounds of Sinkhorn scaling at most, and when it stops (footnote 2).
ROUNDS = 30

#: Labels and the four fixed scores of Figures 1 and 2; the last document's score x varies.
FIGURE1 = ((2, 1, 0, 0, 0), (4, 1, 0, 0))
FIGURE2 = ((1, 2, 3, 4, 5), (1, 2, 3, 4))

#: Temperatures of Figure 2; the paper's did not survive in its text.
FIGURE2_TAUS = (0.01, 0.1, 1.0, 10.0)

#: So cold that NeuralSort is a permutation in float64 at every x that is drawn.
COLD = 1e-4

#: NDCG is recovered where no value differs from it by more.
RECOVERED = 1e-6

EXAMPLE = {
    "figure1": Dataset("pobrotyn2021_figure1", "five documents of Figure 1", "generated"),
    "figure2": Dataset("pobrotyn2021_figure2", "five documents of Figure 2", "generated"),
}


def ndcg_curves(
    labels: Sequence[float],
    fixed: Sequence[float],
    x: np.ndarray,
    settings: Mapping[str, Mapping[str, Any]],
) -> dict[str, np.ndarray]:
    """NDCG and NeuralNDCG of a list as the score of its last document varies.

    Args:
        labels: of all documents.
        fixed: scores of all documents but the last.
        x: scores of the last document ``[n]``.
        settings: name of a curve → arguments of NeuralNDCG.

    Returns:
        ``NDCG`` and every named curve, ``[n]`` each.
    """
    last = torch.from_numpy(np.asarray(x, dtype=np.float64))[:, None]
    scores = torch.cat([torch.tensor(fixed, dtype=torch.float64).expand(len(x), -1), last], 1)
    y = torch.tensor(labels, dtype=torch.float64).expand_as(scores)
    curves = {"NDCG": metrics.ndcg(scores, y).numpy()}
    for name, options in settings.items():
        curves[name] = -losses.neural_ndcg(scores, y, **options).numpy()
    return curves


def figure1(evidence: Evidence) -> FigureResult:
    """Figure 1: NeuralNDCG with and without Sinkhorn scaling."""
    names = {
        "NeuralNDCG tau=1 no Sinkhorn": "NeuralNDCG, no scaling",
        "NeuralNDCG tau=1 Sinkhorn(30)": "NeuralNDCG, Sinkhorn scaling",
    }
    what = (
        "NDCG and NeuralNDCG (τ = 1), with and without Sinkhorn scaling, of five documents with "
        "labels (2, 1, 0, 0, 0) and scores (4, 1, 0, 0, x)."
    )
    return _curves(evidence, "fig1_recomputed", *FIGURE1, _figure1_settings(), names, what)


def figure2(evidence: Evidence) -> FigureResult:
    """Figure 2: NeuralNDCG at several temperatures."""
    settings = {_figure2_name(tau): {"tau": tau, "iterations": ROUNDS} for tau in FIGURE2_TAUS}
    names = {_figure2_name(tau): f"τ = {tau:g}" for tau in FIGURE2_TAUS}
    what = (
        "NDCG and NeuralNDCG at several temperatures τ, with Sinkhorn scaling, of five documents "
        "with labels (1, 2, 3, 4, 5) and scores (1, 2, 3, 4, x). The paper's temperatures are not "
        "in its text; these are our choice."
    )
    return _curves(evidence, "fig2_recomputed", *FIGURE2, settings, names, what)


def _figure1_settings() -> dict[str, dict[str, Any]]:
    return {
        "NeuralNDCG tau=1 no Sinkhorn": {"tau": 1.0, "iterations": 0},
        "NeuralNDCG tau=1 Sinkhorn(30)": {"tau": 1.0, "iterations": ROUNDS},
    }


def _figure2_name(tau: float) -> str:
    return f"NeuralNDCG tau={tau:g} Sinkhorn(30)"


def _curves(
    evidence: Evidence,
    reference_name: str,
    labels: Sequence[float],
    fixed: Sequence[float],
    settings: Mapping[str, Mapping[str, Any]],
    names: Mapping[str, str],
    what: str,
) -> FigureResult:
    """A figure of curves over x, beside the reference values where x is one of theirs."""
    reference = evidence.published(f"pobrotyn2021_{reference_name}")
    x = _grid(reference["x"])
    curves = ndcg_curves(labels, fixed, x, settings)
    figure, axes = figures.new_figure(height=2.3)
    # Broad and pale, so that a curve which covers it leaves it visible.
    step: dict[str, Any] = {"color": "#B8B8B8", "linewidth": 3.0, "drawstyle": "steps-mid"}
    axes.plot(x, curves["NDCG"], label="NDCG", **step)
    frames = []
    for number, (name, values) in enumerate(curves.items()):
        if name != "NDCG":
            axes.plot(x, values, label=names[name], **figures.line(number - 1))
        known = pd.Series(reference[name].to_numpy(), index=reference["x"].round(9))
        frame = pd.DataFrame({"curve": name, "x": x, "value": values})
        frame["reference"] = known.reindex(frame["x"]).to_numpy()
        frames.append(frame)
    data = pd.concat(frames, ignore_index=True)
    data["difference"] = data["value"] - data["reference"]
    axes.set(xlabel="score x of the last document", ylabel="value", xlim=(x[0], x[-1]))
    axes.legend(loc="best")
    caption = (
        f"{what} The range of x is our choice, and x avoids tied scores. The paper prints no "
        "values; an independent recomputation on every fifth point differs by at most "
        f"{data['difference'].abs().max():.1e}. The curves are analytic. "
        f"Edition {evidence.edition}."
    )
    return FigureResult(figure, data, caption)


def _grid(known: pd.Series) -> np.ndarray:
    """Five times as fine as the ``known`` points, which it holds; no point ties with a score."""
    low, high = float(known.iloc[0]), float(known.iloc[-1])
    return np.round(np.linspace(low, high, 5 * (len(known) - 1) + 1), 9)


def total_rise(values: np.ndarray) -> float:
    """How far a curve climbs in all, ``Σ max(0, v_i+1 − v_i)``: 0 for one that never rises."""
    return float(np.clip(np.diff(values), 0, None).sum())


def claim_curves(figure1_evidence: Evidence, figure2_evidence: Evidence) -> Outcome:
    """Sinkhorn scaling removes the bumps, and a falling temperature recovers NDCG (C21).

    NDCG of Figure 1 never rises with x, so a bump is where NeuralNDCG does.
    """
    x = _grid(figure1_evidence.published("pobrotyn2021_fig1_recomputed")["x"])
    curves = ndcg_curves(*FIGURE1, x, _figure1_settings())
    plain, scaled = (total_rise(curves[name]) for name in _figure1_settings())
    findings = [_certain("rise without − with Sinkhorn scaling", "figure1", len(x), plain - scaled)]
    x = _grid(figure2_evidence.published("pobrotyn2021_fig2_recomputed")["x"])
    taus = (*sorted(FIGURE2_TAUS, reverse=True), COLD)
    settings = {f"{tau:g}": {"tau": tau, "iterations": ROUNDS} for tau in taus}
    curves = ndcg_curves(*FIGURE2, x, settings)
    errors = {tau: float(np.abs(curves[tau] - curves["NDCG"]).max()) for tau in settings}
    for warm, cold in itertools.pairwise(settings):
        findings.append(
            _certain(
                f"largest error at τ = {warm} − at τ = {cold}",
                "figure2",
                len(x),
                errors[warm] - errors[cold],
            )
        )
    findings.append(
        _certain(
            f"largest error at τ = {COLD:g}",
            "figure2",
            len(x),
            errors[f"{COLD:g}"],
            value(high=RECOVERED),
        )
    )
    remark = (
        f"Without scaling the curve of Figure 1 climbs by {plain:.4f} in all where NDCG never "
        f"does, with {ROUNDS} rounds of it by {scaled:.5f} ({100 * scaled / plain:.1f}% of that)."
    )
    return Outcome(findings, remark=remark)


def _certain(
    comparison: str, figure: str, points: int, effect: float, claimed: Claimed = MORE
) -> Finding:
    sample = f"{points} values of x"
    return Finding(comparison, claimed, EXAMPLE[figure], "NDCG", computed(effect, sample))


#: The example of Table 1 (section 4.2).
LABELS = (4, 2, 1, 0, 4, 3)
SCORES = (0.5, 0.2, 0.1, 0.01, 0.65, 0.3)

#: Row of Table 1 in the published file → temperature; None sorts exactly.
TABLE1_ROWS = {"lim tau->0": None, "0.01": 0.01, "0.1": 0.1, "1": 1.0}

SUM = "Sum after sorting"


#: The status of a printed sum that is not the sum of the printed numbers.
MISPRINT = "misprint in the paper"


def quasi_sorted(tau: float | None) -> Tensor:
    """Table 1's labels in the order that NeuralSort gives them, without Sinkhorn scaling.

    Args:
        tau: temperature; None sorts exactly.

    Returns:
        float64 ``[6]``.
    """
    labels = torch.tensor(LABELS, dtype=torch.float64)
    scores = torch.tensor([SCORES], dtype=torch.float64)
    if tau is None:
        return labels[scores[0].argsort(descending=True)]
    return sorting_matrix(scores, torch.ones_like(scores, dtype=torch.bool), tau)[0] @ labels


def table1(evidence: Evidence) -> TableResult:
    """Table 1: labels sorted by NeuralSort at several temperatures, with its misprinted sum."""
    printed = evidence.published("pobrotyn2021_table1").set_index("tau")
    places = [f"q{number}" for number in range(1, len(LABELS) + 1)]
    rows, lines = [], [[place] for place in (*(str(n) for n in range(1, len(LABELS) + 1)), "sum")]
    for name, tau in TABLE1_ROWS.items():
        values = quasi_sorted(tau).tolist()
        theirs = [float(printed.loc[name, place]) for place in places]
        rows += [
            _entry(evidence, name, place, value, published)
            for place, value, published in zip(places, values, theirs, strict=True)
        ]
        rows.append(_sum_entry(evidence, name, values, theirs, float(printed.loc[name, SUM])))
        entries = rows[-len(places) - 1 :]
        total = f"{entries[-1]['published']:.10g}"
        in_print = [*(_as_printed(published) for published in theirs), total]
        for line, row, text in zip(lines, entries, in_print, strict=True):
            line += [measured(row["value"], digits=_digits(row["published"])), text]
    data = pd.DataFrame(rows)
    data = add_differences(data, value="value", published_error=rounding_error(data["tolerance"]))
    caption = (
        "Approximate sorting with NeuralSort: the labels y = (4, 2, 1, 0, 4, 3) as sorted by the "
        "scores s = (0.5, 0.2, 0.1, 0.01, 0.65, 0.3), without Sinkhorn scaling. An entry is met "
        "if it equals the published one in all printed digits, to at least four decimals. The "
        f"values are analytic. Edition {evidence.edition}."
    )
    temperatures = (
        "limit τ → 0" if tau is None else f"τ = {tau:g}" for tau in TABLE1_ROWS.values()
    )
    columns = headings("Place", temperatures, "paper")
    layout = TableLayout(
        _table1_lead(data), caption, columns, [Section("", lines)], _table1_notes(data)
    )
    return TableResult(data, layout)


def _table1_lead(data: pd.DataFrame) -> str:
    """How many entries are the printed ones, and which sums are misprints."""
    entries = data[(data["place"] != "sum") & (data["tau"] != "lim tau->0")]
    wrong = data.loc[data["status"] == MISPRINT, "tau"]
    at = listed([f"τ = {tau}" for tau in wrong]) if len(wrong) else ""
    return lead(
        f"{met(entries)} at temperatures above 0",
        f"The sum printed for {at} is a misprint" if at else "",
    )


def _entry(
    evidence: Evidence, tau: str, place: str, value: float, published: float
) -> dict[str, Any]:
    tolerance = 0.5 * 10.0 ** -_digits(published)
    return {
        "edition": evidence.edition,
        "data": "artificial",
        "tau": tau,
        "place": place,
        "value": value,
        "half_width": 0.0,
        "published": published,
        "tolerance": tolerance,
        "status": MET if abs(value - published) <= tolerance else NOT_MET,
    }


def _sum_entry(
    evidence: Evidence, tau: str, values: Sequence[float], theirs: Sequence[float], published: float
) -> dict[str, Any]:
    """The sum, beside the printed one and the sum of the printed numbers.

    The printed sums add rounded numbers, so six times half a unit of the fourth decimal may lie
    between theirs and the exact one.
    """
    row = _entry(evidence, tau, "sum", sum(values), published)
    row["tolerance"] = len(values) * 0.5e-4
    row["sum_of_printed"] = math.fsum(theirs)
    within = abs(row["value"] - published) <= row["tolerance"]
    consistent = math.isclose(row["sum_of_printed"], published, abs_tol=1e-9)
    row["status"] = MET if within else NOT_MET if consistent else MISPRINT
    return row


def _digits(printed: float) -> int:
    """Decimals that a printed number has, four at least."""
    return max(4, len(f"{printed:.10g}".partition(".")[2]))


def _as_printed(entry: float) -> str:
    return f"{entry:g}" if entry.is_integer() else f"{entry:.{_digits(entry)}f}"


def _table1_notes(data: pd.DataFrame) -> list[str]:
    sums = data[data["place"] == "sum"].set_index("tau")
    notes = []
    for tau, row in sums[sums["status"] == MISPRINT].iterrows():
        first = data.loc[(data["tau"] == tau) & (data["place"] == "q1"), "published"].iloc[0]
        notes.append(
            f"**The sum printed for τ = {tau}, {row['published']:g}, is a misprint.** The six "
            f"printed numbers add up to {row['sum_of_printed']:.4f}, and so do ours "
            f"({row['value']:.4f}); without the first, {first:g}, they add up to "
            f"{row['sum_of_printed'] - first:.4f}."
        )
    cold = sums.loc["0.01"]
    notes.append(
        "The other printed sums are sums of the printed, rounded numbers: at τ = 0.01 these add up "
        f"to {cold['sum_of_printed']:.8f}, as printed, but without rounding the sum is "
        f"{cold['value']:.8f}."
    )
    return notes
