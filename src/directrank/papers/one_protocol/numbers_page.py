"""All numbers of one protocol on one page: every method on every collection, in Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd

from directrank.papers.shared.format import interval, number
from directrank.papers.shared.tables import markdown_rows
from directrank.system.io import write_text

#: What tells a row of a table of values from the others, and what its files have besides.
KEY = ["scorer", "method"]
COLUMNS = {*KEY, "dataset", "metric", "mean", "half_width", "first_place", "better_than"}

ABOUT = """\
This page has every loss with the scorers of each collection, and boosted trees, trained under one \
protocol on the same folds with the same budget. Each value is the mean of the fold means of the \
test set, averaged over trainings, with half the width of its 95 % interval for other queries \
(or groups of related queries) and other trainings; tests and comparisons over collections take \
the mean over queries, which may differ in the third digit. Queries without a relevant document \
are left out. *Better than* and *worse than* count the other methods from which the difference \
in NDCG@10 is significant after correction over all pairs, and larger than that of the controls, \
methods that hardly differ. The *places* follow from them: tied methods share places.

Numbers can be compared within a collection, never between two. The choices behind the protocol \
are on the page of [ambiguities](../../../docs/ambiguities.md#one-protocol), and [results per \
query](../../../docs/your_data.md#results-per-query) says how to test a difference yourself."""


def write(tables: Sequence[Path], out: Path) -> None:
    """Write the page of an edition.

    Args:
        tables: the Markdown files of the comparison's tables; the values of the CSV files beside
            them are shown where they are those of methods.
        out: the page, beside the tables.
    """
    parts = [f"# One protocol: all numbers of the edition {out.parent.parent.name}", ABOUT]
    links = []
    for file in sorted(tables):
        title = file.read_text(encoding="utf-8").split("\n")[0].removeprefix("# ")
        links.append(f"- [{title}]({file.name})")
        frame = pd.read_csv(file.with_suffix(".csv"))
        if set(frame.columns) >= COLUMNS:
            parts += _collection(file, frame)
    write_text(out, "\n\n".join([*parts, "## All tables", "\n".join(links)]) + "\n")


def _collection(file: Path, values: pd.DataFrame) -> Iterator[str]:
    dataset = values["dataset"].iloc[0]
    yield f"## {dataset}"
    yield f"[The table of this collection]({file.name}) has all notes."
    metrics = list(dict.fromkeys(values["metric"].dropna()))  # a method that failed has none
    rows = [
        [*map(str, key), *_cells(part.set_index("metric"), metrics)]
        for key, part in values.groupby(KEY, sort=False)
    ]
    columns = [*KEY, *metrics, "places", "better than", "worse than"]
    yield "\n".join(markdown_rows(columns, rows, left=2))


def _cells(values: pd.DataFrame, metrics: Sequence[str]) -> list[str]:
    means = [
        interval(number(values.loc[metric, "mean"]), values.loc[metric, "half_width"])
        if metric in values.index
        else "–"
        for metric in metrics
    ]
    ranked = values.dropna(subset=["first_place"])
    if ranked.empty:
        return [*means, "–", "–", "–"]
    row = ranked.iloc[0]
    return [
        *means,
        f"{row['first_place']:.0f}–{row['last_place']:.0f}",
        f"{row['better_than']:.0f}",
        f"{row['worse_than']:.0f}",
    ]
