"""A paper's table of data sets, beside what the edition prepares of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pandas as pd

from directrank.papers.shared.cells import (
    LOST,
    MET,
    NOT_MET,
    UNPREPARED,
    UNPRINTED,
    add_differences,
)
from directrank.papers.shared.evidence import Dataset, Evidence, heading_of
from directrank.papers.shared.format import count, headings, listed
from directrank.papers.shared.leads import lead, met
from directrank.papers.shared.product import TableResult
from directrank.papers.shared.tables import Section, TableLayout

#: What is prepared of a data set.
OWN, STANDIN = "the paper's own data", "a generated stand-in"


def table(
    evidence: Evidence,
    printed: pd.DataFrame,
    names: Mapping[str, str],
    statistics: Callable[[str, Mapping[str, Any]], Mapping[str, float]],
    columns: Mapping[str, str],
    caption: str,
) -> TableResult:
    """Statistics of data sets, printed and of what is prepared.

    Args:
        evidence: of the product.
        printed: the published statistics, a row per data set.
        names: the paper's name of a data set → its name in the catalogue.
        statistics: takes a data set's name and its record, gives the columns of ``printed``.
        columns: column of ``printed`` → how it is set.
        caption: but for the edition.
    """
    rows, lines = [], []
    prepared: dict[str, Dataset | None] = {}
    for title, name in names.items():
        record = evidence.prepared.get(name)
        dataset = None if record is None else evidence.prepared_dataset(name)
        prepared[title] = dataset
        ours = {} if record is None else statistics(name, record)
        theirs = {column: float(printed.loc[title, column]) for column in columns}
        for column, published in theirs.items():
            value = ours.get(column, math.nan)
            rows.append(
                evidence.about(dataset, paper_dataset=title)
                | {
                    "statistic": column,
                    "value": value,
                    "published": published,
                    "status": _status(dataset, value, published),
                }
            )
        line = [
            f"{title} ({UNPREPARED})"
            if dataset is None
            else heading_of(title, dataset.kind, dataset.title)
        ]
        for column, published in theirs.items():
            line += [_as_set(ours.get(column, math.nan)), _as_set(published)]
        lines.append(line)
    data = add_differences(pd.DataFrame(rows), value="value")
    start = lead(*_prepared(prepared), met(data))
    caption = f"{caption} Edition {evidence.edition}."
    titles = headings("Data set", columns.values(), "paper")
    return TableResult(data, TableLayout(start, caption, titles, [Section("", lines)]))


def _prepared(datasets: Mapping[str, Dataset | None]) -> Iterator[str]:
    """Which data sets of the paper are there, and as what."""
    of_kind: dict[str, list[str]] = {}
    for title, dataset in datasets.items():
        kind = UNPREPARED if dataset is None else STANDIN if dataset.standin else OWN
        of_kind.setdefault(kind, []).append(title)
    for kind in (OWN, STANDIN, UNPREPARED):
        if kind in of_kind:
            yield f"{listed(of_kind[kind])}: {kind}"


def _status(dataset: Dataset | None, value: float, published: float) -> str:
    if dataset is None:
        return UNPREPARED
    if math.isnan(published):
        return LOST
    if dataset.standin:
        return "stand-in"
    # Means, such as documents per query, are published as whole numbers.
    return MET if abs(value - published) <= 0.5 else NOT_MET


def _as_set(value: float) -> str:
    if math.isnan(value):
        return UNPRINTED
    return count(int(value)) if float(value).is_integer() else f"{value:.1f}"
