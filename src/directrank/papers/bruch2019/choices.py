"""The effect of choices that Bruch2019 leaves open in Table 1: batch norm, optimiser, sampling.

Not in the paper. NDCG is in per cent; queries without a relevant document are left out.
"""

from __future__ import annotations

from ast import literal_eval
from collections.abc import Mapping

import pandas as pd

from directrank.papers.bruch2019.table1 import TABLE1
from directrank.papers.shared.cells import difference
from directrank.papers.shared.evidence import Evidence
from directrank.papers.shared.format import p_value, share
from directrank.papers.shared.leads import lead
from directrank.papers.shared.methods import (
    Method,
    by_method,
    paired_groups,
    paired_test,
    paired_values,
)
from directrank.papers.shared.methods_table import MethodsTable, Row, percent_over_trials
from directrank.papers.shared.product import TableResult
from directrank.system.errors import DataError

EXPERIMENT = "choices_web30k"

#: The setting that others are compared with; theirs begin with its name.
BASES = ("ApproxNDCG", "λMART_GBM")

SIGNIFICANT = 0.05


def _against_base(methods: Mapping[str, Method], metric: str) -> dict[str, Row]:
    """Means over trials, and differences from the base of each setting over the test queries."""
    rows = percent_over_trials(methods, metric)
    for name, method in methods.items():
        base = next((methods.get(base) for base in BASES if name.startswith(base)), None)
        if base is not None and base is not method:
            ours, theirs = paired_values([method, base], metric)
            stream = ("bruch2019", "choices", name, metric)
            groups = paired_groups([method], ours)
            paired = paired_test(100 * ours, 100 * theirs, stream, groups=groups)
            rows[name] |= {
                "difference": paired.difference.mean,
                "difference_half_width": paired.difference.half_width,
                "p_value": paired.p_value,
            }
    return rows


CHOICES = MethodsTable(
    first="Setting",
    name="setting",
    metrics=TABLE1.metrics,
    csv=(
        *("edition", "dataset", "data", "setting", "metric", "mean", "half_width", "trials"),
        *("difference", "difference_half_width", "p_value"),
    ),
    measure=_against_base,
    digits=2,
    beside={
        "diff.": lambda row: difference(row["difference"], row["difference_half_width"], 2),
        "p": lambda row: p_value(row["p_value"], 3),
    },
)


def table_choices(evidence: Evidence) -> TableResult:
    """Each choice against what Table 1 is made with, over the same test queries."""
    methods = by_method(evidence.runs(EXPERIMENT), "exclude", setting="setting")
    if not methods:
        raise DataError("no choice was tried", f"add runs to {EXPERIMENT}")
    data = CHOICES.rows(evidence, methods)
    families = [data[data["setting"].str.startswith(base)] for base in BASES]
    data = pd.concat(families, ignore_index=True)
    first = next(iter(methods.values()))
    by_group = (
        "" if first.query_groups().is_unique else ", both computed over groups of related queries"
    )
    caption = (
        f"NDCG in per cent on the test set: the mean over {CHOICES.trials(data)} ± the half width "
        "of its 95% t interval over trials. “diff.” is the difference of these means from the "
        "first row of the group ± the half width of its 95% interval over test queries, and p is "
        f"that of a paired randomisation test{by_group}. Neither intervals nor p values are "
        "corrected for multiple comparisons. Queries without a relevant document are left out. "
        f"{evidence.sources(first.runs)}"
    )
    sections = [CHOICES.section(family) for family in families if len(family)]
    return CHOICES.result(data, _lead(data), caption, sections, _chosen(methods))


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


def _named(optimizer: str) -> str:
    """An optimiser of the file of fits in words, e.g. ``adam with learning rate 0.005``."""
    settings = literal_eval(optimizer)
    return f"{settings['name']} with learning rate {settings['lr']:g}"


def _chosen(methods: Mapping[str, Method]) -> list[str]:
    """Which optimisers the validation set chose."""
    notes = []
    for method in methods.values():
        fits = method.runs[0].result.fits
        if "training.optimizer" in fits:
            chosen = fits.loc[fits["selected"], "training.optimizer"].value_counts()
            counted = "; ".join(f"{_named(name)} in {n}" for name, n in chosen.items())
            notes.append(f"{method.name}: of {int(chosen.sum())} trials, {counted}.")
    return notes
