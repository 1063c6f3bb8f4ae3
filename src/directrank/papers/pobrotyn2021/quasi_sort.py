"""Table 1 of Pobrotyn2021: approximate sorting with NeuralSort, and a misprinted sum."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from directrank.papers.shared.cells import measured
from directrank.papers.shared.differences import MET, NOT_MET, add_differences, rounding_error
from directrank.papers.shared.evidence import Evidence
from directrank.papers.shared.format import headings, listed
from directrank.papers.shared.leads import lead, met
from directrank.papers.shared.product import TableResult
from directrank.papers.shared.tables import Layout, Section
from directrank.relaxations.neural_sort import sorting_matrix

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
    layout = Layout(_lead(data), caption, columns, [Section("", lines)], _table1_notes(data))
    return TableResult(data, layout)


def _lead(data: pd.DataFrame) -> str:
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
