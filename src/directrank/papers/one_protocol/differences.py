"""All pairs of methods: which differ, which are equivalent, and of which neither is known."""

from __future__ import annotations

from typing import Any

import pandas as pd

from directrank.papers.one_protocol.methods import (
    ALONE,
    SCORERS,
    Comparison,
)
from directrank.papers.one_protocol.protocol import comparison
from directrank.papers.shared.cells import difference, measured
from directrank.papers.shared.evidence import Evidence
from directrank.papers.shared.format import p_value, share
from directrank.papers.shared.leads import lead
from directrank.papers.shared.product import TableResult
from directrank.papers.shared.tables import Section, TableLayout, in_front
from directrank.stats.decisions import BETTER, EQUIVALENT, INCONCLUSIVE, TURNED, in_words
from directrank.stats.estimates import of_row

#: Pairs that the table of pairs lists at most.
SHOWN = 40

#: The headings of such a table.
COLUMNS = ("Better", "Worse", "difference in NDCG@10", "p", "verdict")


def table_pairs(evidence: Evidence, dataset: str) -> TableResult:
    """Every pair of methods: all in the CSV file, those that differ to be read."""
    study = comparison(evidence, dataset)
    margin, data = study.margin, every_pair(study)
    sure = data[~data["tied"]]
    caption = (
        f"The {'pairs' if len(sure) <= SHOWN else f'{SHOWN} clearest pairs'} of methods that "
        f"{in_order(len(data))}, also of different scorers; all are in the CSV file. "
        f"{study.standard} Queries without a relevant document are left out; there are "
        f"{study.size}. {study.elsewhere}{study.scale()}"
    )
    layout = TableLayout(
        _differences_sentence(data, sure, margin),
        caption,
        COLUMNS,
        [clearest(data, margin)],
        [_known_sentence(study, data)],
    )
    return TableResult(data, layout)


def every_pair(study: Comparison) -> pd.DataFrame:
    """A row per pair of methods: their difference, what the tests say of it, and the verdict."""
    pairs = study.pairs
    data = pd.DataFrame(
        {
            **study.names.iloc[pairs["a"]].to_dict("list"),
            **study.names.iloc[pairs["b"]].add_prefix("other_").to_dict("list"),
            "metric": "NDCG@10",
            "queries": study.n_queries,
            "difference": pairs["difference"],
            "half_width": [of_row(row).interval().half_width for row in pairs.itertuples()],
            "p_value": pairs["p_value"],
            "p_corrected": pairs["p_differs"],
            "p_beyond_corrected": pairs["p_beyond"],
            "p_equivalent_corrected": pairs["p_within"],
            "verdict": pairs["verdict"],
            "size": pairs["size"],
            "tied": study.verdicts[pairs["a"], pairs["b"]] == 0,
        }
    )
    return in_front(data.rename(columns={"other_method": "other"}), study.about)


def clearest(data: pd.DataFrame, margin: float, title: str = "") -> Section:
    """The pairs that differ, of :func:`every_pair`, the :data:`SHOWN` with the lowest p."""
    sure = data[~data["tied"]].sort_values("p_corrected", kind="stable")[:SHOWN]
    lines = [_line(row, margin) for row in sure.itertuples()]
    return Section(title, lines or [["none", *[""] * (len(COLUMNS) - 1)]])


def in_order(pairs: int) -> str:
    """What :func:`clearest` shows, for a caption.

    Args:
        pairs: how many pairs the tests are corrected over.
    """
    return (
        "differ significantly in NDCG@10, ordered by p: the difference ± the half width of its 95% "
        f"interval, which is not corrected, and p, corrected over all {pairs} pairs"
    )


def _line(row: Any, margin: float) -> list[str]:
    """A pair that differs, the better method first."""
    labels = [_label(row.method, row.scorer), _label(row.other, row.other_scorer)]
    ahead = row.verdict == BETTER
    better, worse = labels if ahead else labels[::-1]
    gap = difference(abs(row.difference), row.half_width)
    said = in_words(BETTER, row.size, margin)
    return [better, worse, gap, p_value(row.p_corrected, 3), said]


def _differences_sentence(data: pd.DataFrame, sure: pd.DataFrame, margin: float) -> str:
    """How many pairs differ, and by how much."""
    within = int((sure["scorer"] == sure["other_scorer"]).sum())
    beyond = int((sure["size"] == "more than the margin").sum())
    return lead(
        f"{share(len(sure), len(data))} pairs of methods differ significantly and by more than the "
        f"controls, {beyond} of which are shown to differ by more than {margin:g}",
        f"{share(within, len(sure))} are pairs of losses with the same scorer, or of trees"
        if len(sure)
        else "",
    )


def _known_sentence(study: Comparison, data: pd.DataFrame) -> str:
    """Of how many pairs something is known: that they differ, or that they do not matter."""
    counts = data["verdict"].value_counts()
    differ = int(sum(counts.get(word, 0) for word in TURNED))
    near = differ - int((~data["tied"]).sum())
    return (
        f"**What is known of all pairs.** {differ} of {len(data)} differ significantly, {near} of "
        f"them by no more than the controls, which count as tied; {counts.get(EQUIVALENT, 0)} are "
        f"equivalent within {study.margin:g} by two one-sided tests, and of "
        f"{counts.get(INCONCLUSIVE, 0)} neither is known. The median half width of a difference "
        f"is {measured(data['half_width'].median(), digits=4)}."
    )


def _label(name: str, scorer: str) -> str:
    return name if scorer in [SCORERS[one] for one in ALONE] else f"{name} ({scorer})"
