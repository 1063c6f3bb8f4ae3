"""Read a user's own rankings, or values per query, for the test queries of a collection.

The values are like the published ones: the study's metrics, in single precision, of each trial of a
method. A query without a relevant document is left out. A query that the user's file
lacks counts 0, as with the option -c of trec_eval, so that answering only the easy queries gains
nothing.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from directrank.papers.one_protocol.published import Published
from directrank.papers.shared.format import count, listed
from directrank.study.trec import PREFIX, Run, lines_of, read_qrels, read_run
from directrank.system.errors import ConfigError, DataError

#: The published metrics by their columns.
MAPPINGS: Mapping[str, Mapping[str, object]] = {
    "ndcg@5": {"name": "ndcg", "k": 5},
    "ndcg@10": {"name": "ndcg", "k": 10},
    "ap": {"name": "average_precision"},
    "nerr@10": {"name": "nerr", "k": 10},
}

#: The suffix of files of values per query; any other file is a run.
VALUES = (".csv", ".csv.gz")

#: The column of a file of values that identifies the query.
QUERY = "query"

Qrels = Mapping[str, Mapping[str, int]]


@dataclass(frozen=True)
class Own:
    """A user's method on a collection.

    Attributes:
        name: what it is called.
        trials: of each training, a row per query that is not empty, in the order of the published
            ones, and a column per metric.
        remarks: what was left out of the files or added, in words.
    """

    name: str
    trials: Sequence[pd.DataFrame]
    remarks: Sequence[str]


class PublishedQueries:
    """The test queries of a collection, on which values are published.

    Args:
        published: the values.

    Raises:
        DataError: two folds have different queries with the same id.
    """

    def __init__(self, published: Published) -> None:
        self.title = published.dataset.title
        every = published.frame[["fold", "query_id"]].drop_duplicates()
        if not every["query_id"].is_unique:
            raise DataError(
                f"test sets of {self.title} share query ids, so a run cannot be matched by them",
                "compare values per query as docs/your_data.md describes",
            )
        self.every = set(every["query_id"].astype(str))
        self.index = pd.MultiIndex.from_frame(published.queries)

    @cached_property
    def queries(self) -> list[str]:
        """The ids of the queries that have a relevant document, in the order of :attr:`index`."""
        return [str(query) for query in self.index.get_level_values("query_id")]

    def own(
        self, name: str, files: Sequence[Path], qrels: Qrels | None, metrics: Sequence[str]
    ) -> Own:
        """A user's method.

        Args:
            name: what it is called.
            files: runs, or values per query: one file per trial.
            qrels: the judgements of runs, checked by :meth:`check`.
            metrics: columns of :data:`MAPPINGS`.

        Raises:
            ConfigError: a run has no judgements.
            DataError: a file cannot be read or is not about the collection.
        """
        trials, remarks = [], []
        for file in files:
            where = f"{file.name}: " if len(files) > 1 else ""
            if file.name.endswith(VALUES):
                values = read_values(file, metrics)
                found = values.reindex(self.queries)
                said = self._compared(file, set(values.index[values.notna().all(axis=1)]))
            elif qrels is None:
                raise ConfigError(
                    f"'{file}' is a run, which can be evaluated only with judgements",
                    "name them with --qrels, or name a .csv file with values per query",
                )
            else:
                run = read_run(file)
                said = self._compared(file, set(run.rankings))
                found = self._evaluated(run, qrels, metrics)
                said += self._judged(file, run, qrels)
            exact = found.fillna(0.0).to_numpy(np.float32).astype(np.float64)
            trials.append(pd.DataFrame(exact, self.index, list(metrics)))
            remarks += [where + text for text in said]
        return Own(name, trials, remarks)

    def check(self, file: Path, qrels: Qrels) -> None:
        """Raise :class:`DataError` if judgements cannot be those behind the published values.

        The same queries must have a relevant document; labels cannot be compared.
        """
        relevant = {query for query, labels in qrels.items() if any(labels.values())}
        known = set(self.queries)
        for wrong, what in (
            (known - relevant, "has no relevant document in this file"),
            ((self.every - known) & relevant, "has a relevant document only in this file"),
        ):
            if wrong:
                raise DataError(
                    f"these are not the judgements behind the published values of {self.title}: "
                    f"test query {_first(wrong)}, one of {count(len(wrong))}, {what}",
                    "write them from the prepared data: directrank qrels FOLDER --out FILE",
                    file=file,
                )

    def _compared(self, file: Path, queries: set[str]) -> list[str]:
        """Remarks on the queries of a file; raise if none of them is the collection's."""
        known = set(self.queries)
        if not queries & known:
            raise DataError(
                f"has none of the test queries of {self.title}: its queries have ids such as "
                f"{_first(queries) or 'nothing, there are none'}, the collection's such as "
                f"{_first(known)}",
                "use the query ids of the collection's files",
                file=file,
            )
        said = []
        if strange := queries - self.every:
            said.append(f"left out: {_queries(len(strange))} that no test set has")
        if missing := known - queries:
            said.append(
                f"missing, counted as 0: {_queries(len(missing))} of {count(len(known))}, such as "
                f"{_first(missing)}"
            )
        return said

    def _judged(self, file: Path, run: Run, qrels: Qrels) -> list[str]:
        """Remarks on the documents of a run."""
        ranked = {
            query: set(run.rankings[query]) for query in self.queries if query in run.rankings
        }
        total = sum(map(len, ranked.values()))
        unjudged = sum(len(documents - qrels[query].keys()) for query, documents in ranked.items())
        absent = sum(len(qrels[query].keys() - documents) for query, documents in ranked.items())
        if unjudged == total:
            query = next(iter(ranked))
            raise DataError(
                "has none of the judged documents: for query "
                f"{query} it has documents such as {run.rankings[query][0]}, the judgements "
                f"{next(iter(qrels[query]))}",
                "use the document names of the judgements",
                file=file,
            )
        said = []
        if unjudged:
            said.append(f"without a judgement, counted as not relevant: {_documents(unjudged)}")
        if absent:
            said.append(f"judged but not ranked, gaining nothing: {_documents(absent)}")
        if tied := run.tied & ranked.keys():
            said.append(
                f"equal scores in {_queries(len(tied))}: ordered by document, the last in the "
                "alphabet first, as by trec_eval"
            )
        return said

    def _evaluated(self, run: Run, qrels: Qrels, metrics: Sequence[str]) -> pd.DataFrame:
        """The metrics of a run's rankings, a row per query that is not empty."""
        from directrank.metrics.retrieved import metrics_of_rankings  # PyTorch, for runs only

        labels: list[int] = []
        lengths, retrieved = [], []
        for query in self.queries:
            judged, ranking = qrels[query], run.rankings.get(query, [])
            before = len(labels)
            labels += [judged.get(document, 0) for document in ranking]
            labels += [judged[document] for document in judged.keys() - set(ranking)]
            lengths.append(len(labels) - before)
            retrieved.append(len(ranking))
        values = metrics_of_rankings(
            np.array(labels),
            np.array(lengths),
            np.array(retrieved),
            [MAPPINGS[metric] for metric in metrics],
        )
        return pd.DataFrame(values, self.queries)


def read_values(file: Path, metrics: Sequence[str]) -> pd.DataFrame:
    """Read values per query, separated by commas.

    Args:
        file: a file with a header: :data:`QUERY`, and one column per metric; others are ignored.
        metrics: the columns to read.

    Returns:
        Those columns, by query; missing if a cell is empty.

    Raises:
        DataError: the file or a column is missing, a query occurs twice, or a value is not a number
            from 0 to 1; the message names the file and line.
    """
    reader = csv.DictReader(line for _, line in lines_of(file))
    headings = reader.fieldnames or []
    for column in (QUERY, *metrics):
        if column not in headings:
            raise DataError(
                f"has no column '{column}'",
                f"its first line must name {QUERY} and the metrics, of {listed(list(MAPPINGS))}",
                file=file,
                line=1,
            )
    values: dict[str, list[float]] = {}
    for row in reader:
        line = reader.line_num
        query = (row[QUERY] or "").strip().removeprefix(PREFIX)
        if query in values:
            raise DataError(
                f"has query {query} twice", "keep only one of the lines", file=file, line=line
            )
        values[query] = [_value(row[metric], metric, file, line) for metric in metrics]
    return pd.DataFrame.from_dict(values, orient="index", columns=list(metrics))


def load_qrels(file: Path, collection: PublishedQueries) -> Qrels:
    """Read judgements that fit a collection; see :meth:`PublishedQueries.check`."""
    qrels = read_qrels(file)
    collection.check(file, qrels)
    return qrels


def _value(text: str | None, metric: str, file: Path, line: int) -> float:
    if not (text or "").strip():
        return float("nan")
    try:
        value = float(text or "")
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise DataError(
            f"the {metric} is '{text}', which is not a number from 0 to 1",
            "leave the cell empty if a query has no value",
            file=file,
            line=line,
        )
    return value


def _first(queries: set[str]) -> str:
    """The first query, in numerical order if all are numbers; empty if there are none."""
    return min(queries, key=lambda query: (not query.isdecimal(), len(query), query), default="")


def _queries(number: int) -> str:
    return "1 query" if number == 1 else f"{count(number)} queries"


def _documents(number: int) -> str:
    return "1 document" if number == 1 else f"{count(number)} documents"
