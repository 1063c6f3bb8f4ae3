"""What hangs on choices behind Table 1 that Bruch2019 leaves open: batch norm, optimiser, sampling.

Not in the paper. NDCG is in per cent; queries without a relevant document are left out.
"""

from __future__ import annotations

from ast import literal_eval
from typing import Any

import pandas as pd

from directrank.papers.bruch2019.runs import CUTOFFS
from directrank.papers.shared.evidence import Evidence
from directrank.papers.shared.format import headings, interval, number, p_value, signed, spread
from directrank.papers.shared.methods import (
    Method,
    by_method,
    groups_sentence,
    over_trials,
    paired_groups,
    paired_test,
    paired_values,
)
from directrank.papers.shared.product import TableResult
from directrank.papers.shared.tables import Layout, Section
from directrank.system.errors import DataError

EXPERIMENT = "choices_web30k"

#: The setting that others are compared with; theirs begin with its name.
BASES = ("ApproxNDCG", "λMART_GBM")


def table_choices(evidence: Evidence) -> TableResult:
    """Each choice against what Table 1 is made with, over the same test queries."""
    methods = by_method(evidence.runs(EXPERIMENT), "exclude", setting="setting")
    if not methods:
        raise DataError("no choice was tried", f"add runs to {EXPERIMENT}")
    sections, rows = [], []
    for base in BASES:
        family = [method for name, method in methods.items() if name.startswith(base)]
        lines = []
        for method in family:
            cells = [_row(evidence, method, methods.get(base), cutoff) for cutoff in CUTOFFS]
            rows += cells
            lines.append([method.name, *(text for cell in cells for text in _texts(cell))])
        if family:
            sections.append(Section("", lines))
    data = pd.DataFrame(rows)
    first = next(iter(methods.values()))
    trials = spread([method.runs[0].n_trials for method in methods.values()], "trial")
    caption = (
        f"NDCG in per cent on the test set, mean over {trials} with the half width of its 95% t "
        "interval over trials. “diff.” is the difference to the first row of the group with its "
        "95% interval over test queries, of means over trials; p of a paired randomisation test, "
        "not corrected. Queries without a relevant document are left out. "
        f"{groups_sentence([first])}{evidence.sources(first.runs)}"
    )
    columns = headings("", (f"NDCG@{cutoff}" for cutoff in CUTOFFS), "diff.", "p")
    return TableResult(data, Layout(caption, columns, sections, _chosen(methods)))


def _row(evidence: Evidence, method: Method, base: Method | None, cutoff: int) -> dict[str, Any]:
    metric = f"ndcg@{cutoff}"
    row = evidence.about(method.dataset) | {"setting": method.name, "metric": f"NDCG@{cutoff}"}
    row |= over_trials(100 * method.trial_means(metric))
    difference, half_width, p = float("nan"), float("nan"), float("nan")
    if base is not None and base is not method:
        ours, theirs = paired_values([method, base], metric)
        stream = ("bruch2019", "choices", method.name, metric)
        groups = paired_groups([method], ours)
        paired = paired_test(100 * ours, 100 * theirs, stream, groups=groups)
        difference, half_width = paired.difference.mean, paired.difference.half_width
        p = paired.p_value
    return row | {"difference": difference, "difference_half_width": half_width, "p_value": p}


def _texts(cell: dict[str, Any]) -> list[str]:
    return [
        interval(number(cell["mean"], 2), cell["half_width"], 2),
        interval(signed(cell["difference"], 2), cell["difference_half_width"], 2),
        p_value(cell["p_value"]),
    ]


def _named(optimizer: str) -> str:
    """An optimiser of the file of fits in words, e.g. ``adam with learning rate 0.005``."""
    settings = literal_eval(optimizer)
    return f"{settings['name']} with learning rate {settings['lr']:g}"


def _chosen(methods: dict[str, Method]) -> list[str]:
    """Which optimisers the validation set chose."""
    notes = []
    for method in methods.values():
        fits = method.runs[0].result.fits
        if "training.optimizer" in fits:
            chosen = fits.loc[fits["selected"], "training.optimizer"].value_counts()
            counted = "; ".join(f"{_named(name)} in {n}" for name, n in chosen.items())
            notes.append(f"{method.name}: of {int(chosen.sum())} trials, {counted}.")
    return notes
