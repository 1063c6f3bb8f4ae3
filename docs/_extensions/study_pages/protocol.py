"""One protocol as one table: every method on every collection."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from pathlib import Path

import pandas as pd

from directrank.papers.shared.format import interval, number
from study_pages.markup import Row, link, table
from study_pages.outputs import COMPARISON, editions, tables

#: Above the table.
MENUS = {"collection": "Collection", "scorer": "Scorer", "method": "Method"}

#: What tells a row of the table from the others.
KEY = ["edition", "dataset", "scorer", "method"]


def every_method(root: Path) -> str:
    """The table of all collections of all editions."""
    data = pd.concat(_of_collections(root))
    metrics = list(dict.fromkeys(data["metric"]))
    rows = [
        _row(dict(zip(KEY, key, strict=True)), part.set_index("metric"), metrics)
        for key, part in data.groupby(KEY, sort=False)
    ]
    columns = ["collection", "scorer", "method", *metrics, "mean rank", "better than", "worse than"]
    return table("methods", "Means over the test queries", columns, rows, MENUS)


def every_table(root: Path) -> str:
    """A list of all tables of the comparison, in Markdown."""
    return "\n".join(
        f"- [{one.title}](../{one.stem}.md) (edition {one.edition})"
        for edition in editions(root)
        for one in tables(root, edition, COMPARISON)
    )


def _of_collections(root: Path) -> Iterator[pd.DataFrame]:
    """The values of each collection; other files in the folder have other columns."""
    for edition in editions(root):
        for file in sorted((root / f"paper_tables/{edition}/{COMPARISON}").glob("table_*.csv")):
            frame = pd.read_csv(file)
            if {*KEY, "metric", "mean_rank", "better_than"} <= set(frame.columns):
                yield frame.assign(page=file.relative_to(root).with_suffix("").as_posix())


def _row(key: Mapping[str, str], values: pd.DataFrame, metrics: list[str]) -> Row:
    cells = [
        link(values["page"].iloc[0], key["dataset"]),
        escape(key["scorer"]),
        escape(key["method"]),
        *(_mean(values.loc[metric]) if metric in values.index else "–" for metric in metrics),
        *_ranks(values.dropna(subset=["mean_rank"])),
    ]
    properties = {
        "collection": [key["dataset"]],
        "scorer": [key["scorer"]],
        "method": [key["method"]],
    }
    return Row(cells, properties)


def _mean(value: pd.Series) -> str:
    return interval(number(value["mean"]), value["half_width"])


def _ranks(ranked: pd.DataFrame) -> list[str]:
    """What the row of the metric that methods are ranked by says."""
    if ranked.empty:
        return ["–"] * 3
    row = ranked.iloc[0]
    return [f"{row['mean_rank']:.1f}", f"{row['better_than']:.0f}", f"{row['worse_than']:.0f}"]
