"""Qin2010's Table 2: the data sets of LETOR 3.0."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from directrank.papers.shared import datasets
from directrank.papers.shared.evidence import Evidence
from directrank.papers.shared.product import TableResult

#: Published name of a data set in Table 2 → its name in the catalogue.
DATASETS = {"TD2003": "td2003", "TD2004": "td2004", "OHSUMED": "ohsumed"}

#: Column of Table 2 in the published file → how it is set.
COLUMNS = {
    "# Query": "Queries",
    "Relevance levels": "Relevance levels",
    "# (Docs per query)": "Documents per query",
}


def table2(evidence: Evidence) -> TableResult:
    """Table 2: the data sets of LETOR 3.0, of those that this edition prepares."""
    caption = (
        "Data sets of LETOR 3.0. A dash under “paper” marks a number that could not be recovered; "
        "the paper's documents per query on OHSUMED are derived from the number of documents. A "
        "dash among our values marks a data set that this edition does not prepare."
    )
    printed = evidence.published("qin2010_table2").set_index("Dataset")
    return datasets.table(evidence, printed, DATASETS, _statistics, COLUMNS, caption)


def _statistics(name: str, record: Mapping[str, Any]) -> dict[str, float]:
    """The columns of Table 2 from the record of a prepared data set."""
    total = record["total"]
    return {
        "# Query": total["queries"],
        "Relevance levels": record["label_levels"],
        "# (Docs per query)": total["documents"] / total["queries"],
    }
