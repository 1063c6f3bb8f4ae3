"""Qin2010's Table 2: the data sets of LETOR 3.0."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd

from directrank.papers.shared.differences import LOST, UNPREPARED, add_differences
from directrank.papers.shared.evidence import Evidence
from directrank.papers.shared.format import count
from directrank.papers.shared.product import TableResult
from directrank.papers.shared.tables import Layout, Section

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
    printed = evidence.published("qin2010_table2").set_index("Dataset")
    rows, lines = [], []
    for title, name in DATASETS.items():
        record = evidence.prepared.get(name)
        statistics = {} if record is None else _statistics(record)
        dataset = None if record is None else evidence.prepared_dataset(name)
        for column in COLUMNS:
            published, value = float(printed.loc[title, column]), statistics.get(column, math.nan)
            status = UNPREPARED
            if dataset is not None:
                # Documents per query are published as a whole number.
                met = math.isnan(published) or abs(value - published) <= 0.5
                status = "stand-in" if dataset.standin else "met" if met else "not met"
                status = status if not math.isnan(published) else LOST
            rows.append(
                evidence.about(dataset, paper_dataset=title)
                | {
                    "statistic": column,
                    "value": value,
                    "published": published,
                    "status": status,
                }
            )
        theirs = [printed.loc[title, column] for column in COLUMNS]
        lines.append([f"{title}, paper", *(_count_or_blank(value) for value in theirs)])
        label = f"{title}, not prepared here" if dataset is None else f"{dataset.title}, here"
        ours = [statistics.get(column, math.nan) for column in COLUMNS]
        lines.append([label, *(_count_or_blank(value) for value in ours)])
    caption = (
        "Data sets of LETOR 3.0. Where no number stands in a line of the paper it could not be "
        "recovered; the paper's documents per query on OHSUMED are derived from the number of "
        "documents. A blank line is a data set that this edition does not prepare. Edition "
        f"{evidence.edition}."
    )
    columns = ["", *COLUMNS.values()]
    data = add_differences(pd.DataFrame(rows), value="value")
    return TableResult(data, Layout(caption, columns, [Section("", lines)]))


def _statistics(record: Mapping[str, Any]) -> dict[str, float]:
    """The columns of Table 2 from the record of a prepared data set."""
    total = record["total"]
    return {
        "# Query": total["queries"],
        "Relevance levels": record["label_levels"],
        "# (Docs per query)": total["documents"] / total["queries"],
    }


def _count_or_blank(value: float) -> str:
    if math.isnan(value):
        return ""
    return count(int(value)) if float(value).is_integer() else f"{value:.1f}"
