"""Boosted trees on all collections together, computed only from their published values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from directrank.papers.one_protocol.answers import (
    HEADING,
    Answer,
    answer_row,
    answer_rows,
    differences,
    judged,
    nothing_to_ask,
    over_collections,
    verdicts_sentence,
)
from directrank.papers.one_protocol.methods import METRICS, PRIMARY
from directrank.papers.one_protocol.published import Published, read
from directrank.papers.one_protocol.questions import QUESTIONS, Question
from directrank.papers.shared.cells import NOT_RUN, measured
from directrank.papers.shared.evidence import Evidence
from directrank.papers.shared.product import TableResult
from directrank.papers.shared.tables import Section, TableLayout
from directrank.stats.estimates import Estimate, of_mean, of_row

#: In the place of a collection's title where a number is over all of them.
ALL = "all collections"


def table(evidence: Evidence) -> TableResult:
    """The answers on every collection and over them, and the mean of every method.

    Raises:
        DataError: both methods of no question were run on two collections.
    """
    studies = [read(file) for file in evidence.values_files]
    margin = studies[0].margin
    answers = [judged(differences(study), margin) for study in studies]
    overall = judged(_over_collections(studies, PRIMARY), margin)
    if not overall:
        raise nothing_to_ask("on two collections")
    titles = [study.dataset.title for study in studies]
    columns = ["Choice", "first − second", *titles, "over collections", "verdict"]
    of_methods = ["Method", "mean rank", *titles]
    means = [_means(study) for study in studies]
    sections = [
        Section("Choice by choice", _choice_lines(answers, overall)),
        Section("All methods", _method_lines(means), of_methods),
    ]
    caption = (
        "Boosted trees under one protocol. The upper part shows the first "
        f"method's test {HEADING} minus the second's (means over trials) on every collection, ± "
        "the half width of its 95% t interval for other queries (or groups of related queries) and "
        "other trainings, which is not corrected, with the verdict on this collection. "
        f"{verdicts_sentence(margin)}. “over "
        "collections” is the mean of the differences, with an interval and a t test that regard "
        "collections as a random sample; with so few collections they have little power. The lower "
        "part shows means over the test queries with their intervals, and the mean rank among the "
        "methods that every collection has. Queries without a relevant document are left out. "
        f"Edition {evidence.edition}."
    )
    data = _data(evidence, studies, answers, overall, means)
    return TableResult(
        data, TableLayout(over_collections(answers, overall, margin), caption, columns, sections)
    )


def _over_collections(studies: Sequence[Published], metric: str) -> pd.DataFrame:
    """The mean over the collections of a question's differences, of those that two of them have;
    as :func:`differences` returns them."""
    found = pd.concat([differences(study, metric) for study in studies])
    rows = []
    for question in QUESTIONS:
        values = found.loc[found["question"] == question, "difference"]
        if len(values) > 1:
            one = of_mean(values)
            rows.append((question, one.mean, one.error, one.freedom, one.n))
    columns = ["question", "difference", "error", "freedom", "collections"]
    return pd.DataFrame(rows, columns=columns)


def _means(study: Published) -> dict[str, Estimate]:
    """The mean of the primary metric of every method of trees."""
    means = study.over_queries(PRIMARY)
    return {study.names["method"][place]: means[place] for place in study.of("trees")}


def _choice_lines(
    answers: Sequence[Mapping[Question, Answer]], overall: Mapping[Question, Answer]
) -> list[list[str]]:
    lines = []
    for question, answer in overall.items():
        cells = [
            f"{some[question].difference}, {some[question].verdict_in_print}"
            if question in some
            else NOT_RUN
            for some in answers
        ]
        pair = " − ".join(question.pair)
        lines.append([question.text, pair, *cells, answer.difference, answer.verdict_in_print])
    return lines


def _method_lines(means: Sequence[Mapping[str, Estimate]]) -> list[list[str]]:
    values = pd.DataFrame([{name: some[name].mean for name in some} for some in means])
    ranks = values.dropna(axis="columns").rank(axis="columns", ascending=False).mean()
    lines = []
    for name in values:
        cells = [
            measured(some[name].mean, some[name].interval().half_width) if name in some else NOT_RUN
            for some in means
        ]
        rank = f"{ranks[name]:.1f}" if name in ranks else ""
        lines.append([str(name), rank, *cells])
    return lines


def _data(
    evidence: Evidence,
    studies: Sequence[Published],
    answers: Sequence[Mapping[Question, Answer]],
    overall: Mapping[Question, Answer],
    means: Sequence[Mapping[str, Estimate]],
) -> pd.DataFrame:
    """The answers on every collection, those over them, and the means of the methods."""
    rows: list[dict[str, Any]] = []
    for study, answered in zip(studies, answers, strict=True):
        rows += [evidence.about(study.dataset) | row for row in answer_rows(study, answered)]
    for heading, metric in METRICS.items():
        rows += [
            evidence.about(None)
            | {"dataset": ALL}
            | answer_row(overall[row.question], heading, of_row(row))
            | {"collections": row.collections}
            for row in _over_collections(studies, metric).itertuples()
        ]
    for study, of_study in zip(studies, means, strict=True):
        rows += [evidence.about(study.dataset) | row for row in _mean_rows(of_study)]
    return pd.DataFrame(rows)


def _mean_rows(means: Mapping[str, Estimate]) -> Iterator[dict[str, Any]]:
    for name, estimate in means.items():
        yield {
            "method": name,
            "metric": HEADING,
            "mean": estimate.mean,
            "half_width": estimate.interval().half_width,
            "queries": estimate.n,
        }
