"""The page that compares a user's methods with the published ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from directrank.papers.one_protocol.own_values import PublishedQueries, load_qrels
from directrank.papers.one_protocol.placing import HEADINGS, Placing
from directrank.papers.one_protocol.published import Published, read
from directrank.papers.shared.cells import difference, measured
from directrank.papers.shared.format import count, listed, p_value, spread
from directrank.papers.shared.tables import markdown_rows
from directrank.stats.decisions import (
    BETTER,
    EQUIVALENT,
    INCONCLUSIVE,
    SIGNIFICANT,
    WORSE,
    in_words,
)
from directrank.system.errors import ConfigError
from directrank.system.io import write_csv, write_text

#: The definition of each metric, for comparison with other tools.
_NDCG = "gain 2^y − 1 and discount 1 / log2(1 + rank), divided by the value of the ideal order"
FORMULAS: Mapping[str, str] = {
    "ndcg@5": _NDCG,
    "ndcg@10": _NDCG,
    "ap": "average precision of the whole list; labels of 1 or more are relevant",
    "nerr@10": "expected reciprocal rank, divided by that of the ideal order; the highest grade is "
    "the query's highest label",
}


def compare(
    values: Path,
    runs: Sequence[Sequence[Path]],
    qrels: Path | None,
    metrics: Sequence[str],
    margin: float,
    out: Path | None = None,
) -> str:
    """Compare a user's methods with those whose values are published.

    Args:
        values: the published values of a collection.
        runs: for each method its files, one per trial: runs, or values per query.
        qrels: the judgements, for runs.
        metrics: columns of the published values.
        margin: differences of a metric up to it are equivalent.
        out: the folder for ``compare_<collection>.md`` and ``.csv``; None for none.

    Returns:
        The page, in Markdown.

    Raises:
        ConfigError, DataError: the input is not usable; the message says what to do.
    """
    if not 0 < margin < 1:
        raise ConfigError(f"the margin {margin:g} is not between 0 and 1", "use 0.01, for example")
    published = read(values)
    collection = PublishedQueries(published)
    judged = None if qrels is None else load_qrels(qrels, collection)
    own = [
        collection.own(name, files, judged, metrics)
        for name, files in zip(_names(runs), runs, strict=True)
    ]
    placings = [Placing(published, own, metric, margin) for metric in metrics]
    tables = [placing.table() for placing in placings]
    page = _page(published, collection, placings, tables, runs)
    if out is not None:
        stem = out / f"compare_{published.dataset.name}"
        write_csv(stem.with_suffix(".csv"), pd.concat(tables, ignore_index=True))
        write_text(stem.with_suffix(".md"), page)
    return page


def _names(runs: Sequence[Sequence[Path]]) -> list[str]:
    """The name of each method, which is that of its first file without suffixes."""
    names = [files[0].name.split(".", 1)[0] or files[0].name for files in runs]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"two methods are called '{name}'", "rename the files of one of them")
    return names


def _page(
    published: Published,
    collection: PublishedQueries,
    placings: Sequence[Placing],
    tables: Sequence[pd.DataFrame],
    runs: Sequence[Sequence[Path]],
) -> str:
    lines = [f"# {', '.join(own.name for own in placings[0].own)} on {collection.title}", ""]
    for placing, table in zip(placings, tables, strict=True):
        for number in placing.positions:
            rows = table[table["run"] == placing.labels[number]]
            lines += [_sentences(placing, number, rows), ""]
            columns = ["method", HEADINGS[placing.metric], "difference", "p", "verdict"]
            lines += [*markdown_rows(columns, _rows(placing, number, rows)), ""]
    lines += [f"- {note}" for note in _notes(published, collection, placings, tables, runs)]
    return "\n".join([*lines, ""])


def _sentences(placing: Placing, number: int, rows: pd.DataFrame) -> str:
    """The place of one of the user's methods, by its rows of :meth:`Placing.table`."""
    mean, others = placing.means[number], len(rows)
    counts = rows["verdict"].value_counts()
    said = [
        f"{text} {count(counts[word])}"
        for word, text in (
            (BETTER, "significantly better than"),
            (WORSE, "significantly worse than"),
            (EQUIVALENT, f"equivalent within ±{rows['margin'].iloc[0]:g} to"),
            (INCONCLUSIVE, "not distinguishable from"),
        )
        if word in counts
    ]
    return (
        f"{placing.labels[number]}: {HEADINGS[placing.metric]} "
        f"{measured(mean.mean, mean.half_width)}, place {placing.place(number)} of {others + 1} by "
        f"the mean over {placing.size} of {placing.dataset.title}. Of {others} published methods "
        f"it is {listed(said)}."
    )


def _rows(placing: Placing, number: int, rows: pd.DataFrame) -> list[list[str]]:
    """The rows of its table, the highest mean first."""
    mean = placing.means[number].mean
    lines = [(mean, [f"**{placing.labels[number]}**", measured(mean, best=True), "", "", ""])]
    for other, row in enumerate(rows.itertuples()):
        gap = difference(row.difference, row.difference_half_width)
        cells = [measured(row.method_mean), gap, p_value(row.p_holm, 3)]
        cells.append(in_words(row.verdict, row.size, row.margin))
        lines.append((row.method_mean, [placing.labels[other], *cells]))
    return [cells for _, cells in sorted(lines, key=lambda line: -line[0])]


def _notes(
    published: Published,
    collection: PublishedQueries,
    placings: Sequence[Placing],
    tables: Sequence[pd.DataFrame],
    runs: Sequence[Sequence[Path]],
) -> list[str]:
    """Notes on how the numbers were computed, and on what was left out of the files."""
    placing, pairs = placings[0], len(tables[0])
    formulas: dict[str, list[str]] = {}
    for one in placings:
        formulas.setdefault(FORMULAS[one.metric], []).append(HEADINGS[one.metric])
    empty = len(collection.every) - len(collection.queries)
    trials = spread([len(files) for files in runs], "trial")
    return [
        f"The difference is the run minus the method, ± the half width of the 95% interval for "
        f"{placing.over}. p is that of a t test, after Holm's correction over all {pairs} pairs of "
        f"a run and a method; “better” and “worse” mean p < {SIGNIFICANT}, and “equivalent” is "
        "decided by two one-sided t tests, corrected likewise.",
        *(
            ["One trial says nothing of other trainings of a run: give several files of each."]
            if min(map(len, runs)) < 2
            else []
        ),
        *(f"{' and '.join(names)}: {formula}." for formula, names in formulas.items()),
        f"Queries without a relevant document are left out: {count(empty)} of "
        f"{count(len(collection.every))}.",
        f"A method's value for a query is the mean over "
        f"{spread([published.frame['trial'].nunique()], 'trial')}; here over {trials}.",
        *(f"{own.name}: {remark}." for own in placing.own for remark in own.remarks),
    ]
