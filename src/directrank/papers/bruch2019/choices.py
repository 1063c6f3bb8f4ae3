"""The effect of choices that Bruch2019 leaves open in Table 1: batch norm, optimiser, sampling.

Not in the paper. NDCG is in per cent; queries without a relevant document are left out.
"""

from __future__ import annotations

from ast import literal_eval
from typing import Any

import pandas as pd

from directrank.papers.bruch2019.runs import CUTOFFS
from directrank.papers.shared.cells import difference, measured
from directrank.papers.shared.evidence import Evidence
from directrank.papers.shared.format import headings, p_value, share, spread
from directrank.papers.shared.leads import lead
from directrank.papers.shared.methods import (
    Method,
    by_method,
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

SIGNIFICANT = 0.05


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
    by_group = (
        "" if first.query_groups().is_unique else ", both computed over groups of related queries"
    )
    caption = (
        f"NDCG in per cent on the test set: the mean over {trials} ± the half width of its 95% t "
        "interval over trials. “diff.” is the difference of these means from the first row of the "
        "group ± the half width of its 95% interval over test queries, and p is that of a paired "
        f"randomisation test{by_group}. Neither intervals nor p values are corrected for multiple "
        "comparisons. Queries without a relevant document are left out. "
        f"{evidence.sources(first.runs)}"
    )
    columns = headings("Setting", (f"NDCG@{cutoff}" for cutoff in CUTOFFS), "diff.", "p")
    return TableResult(data, Layout(_lead(data), caption, columns, sections, _chosen(methods)))


def _lead(data: pd.DataFrame) -> str:
    """How many choices make a difference, and the largest difference."""
    tested = data.dropna(subset="p_value")
    if tested.empty:
        return "Only the choices of Table 1 were tried."
    sure = int((tested["p_value"] < SIGNIFICANT).sum())
    most = tested.loc[tested["difference"].abs().idxmax()]
    size = difference(most["difference"], most["difference_half_width"], 2)
    return lead(
        f"{share(sure, len(tested))} differences have p < {SIGNIFICANT} before any correction",
        f"the largest is {size} points of {most['metric']} ({most['setting']})",
    )


def _row(evidence: Evidence, method: Method, base: Method | None, cutoff: int) -> dict[str, Any]:
    metric = f"ndcg@{cutoff}"
    row = evidence.about(method.dataset) | {"setting": method.name, "metric": f"NDCG@{cutoff}"}
    row |= over_trials(100 * method.trial_means(metric))
    gain, half_width, p = float("nan"), float("nan"), float("nan")
    if base is not None and base is not method:
        ours, theirs = paired_values([method, base], metric)
        stream = ("bruch2019", "choices", method.name, metric)
        groups = paired_groups([method], ours)
        paired = paired_test(100 * ours, 100 * theirs, stream, groups=groups)
        gain, half_width = paired.difference.mean, paired.difference.half_width
        p = paired.p_value
    return row | {"difference": gain, "difference_half_width": half_width, "p_value": p}


def _texts(cell: dict[str, Any]) -> list[str]:
    return [
        measured(cell["mean"], cell["half_width"], 2),
        difference(cell["difference"], cell["difference_half_width"], 2),
        p_value(cell["p_value"], 3),
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
