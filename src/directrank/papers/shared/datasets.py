"""A paper's table of data sets, beside what the edition prepares of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd

from directrank.papers.shared.differences import LOST, MET, UNPREPARED, add_differences
from directrank.papers.shared.evidence import Dataset, Evidence
from directrank.papers.shared.format import count
from directrank.papers.shared.product import TableResult
from directrank.papers.shared.tables import Layout, Section


def table(
    evidence: Evidence,
    printed: pd.DataFrame,
    names: Mapping[str, str],
    statistics: Callable[[str, Mapping[str, Any]], Mapping[str, float]],
    headings: Mapping[str, str],
    caption: str,
) -> TableResult:
    """Statistics of data sets, printed and of what is prepared.

    Args:
        evidence: of the product.
        printed: the published statistics, a row per data set.
        names: the paper's name of a data set → its name in the catalogue.
        statistics: takes a data set's name and its record, gives the columns of ``printed``.
        headings: column of ``printed`` → how it is set.
        caption: but for the edition.
    """
    rows, lines = [], []
    for title, name in names.items():
        record = evidence.prepared.get(name)
        dataset = None if record is None else evidence.prepared_dataset(name)
        ours = {} if record is None else statistics(name, record)
        theirs = {column: float(printed.loc[title, column]) for column in headings}
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
        label = f"{title}, not prepared here" if dataset is None else f"{dataset.title}, here"
        for start, values in ((f"{title}, paper", theirs), (label, ours)):
            lines.append([start, *(_as_set(values.get(column, math.nan)) for column in headings)])
    data = add_differences(pd.DataFrame(rows), value="value")
    caption = f"{caption} Edition {evidence.edition}."
    layout = Layout(caption, ["", *headings.values()], [Section("", lines)])
    return TableResult(data, layout)


def _status(dataset: Dataset | None, value: float, published: float) -> str:
    if dataset is None:
        return UNPREPARED
    if math.isnan(published):
        return LOST
    if dataset.standin:
        return "stand-in"
    # Means, such as documents per query, are published as whole numbers.
    return MET if abs(value - published) <= 0.5 else "not met"


def _as_set(value: float) -> str:
    if math.isnan(value):
        return ""
    return count(int(value)) if float(value).is_integer() else f"{value:.1f}"
