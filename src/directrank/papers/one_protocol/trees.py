"""Boosted trees beside each other: which library, objective and normalisation, and what it costs.

On a collection, from its runs; :mod:`directrank.papers.one_protocol.trees_across` has all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from directrank.papers.one_protocol.answers import (
    HEADING,
    answer_rows,
    differences,
    in_words,
    judged,
    nothing_to_ask,
    verdicts_sentence,
)
from directrank.papers.one_protocol.methods import METRICS
from directrank.papers.one_protocol.protocol import Protocol, methods_of
from directrank.papers.one_protocol.time import training_seconds, where_timed
from directrank.papers.shared.cells import measured
from directrank.papers.shared.evidence import Evidence
from directrank.papers.shared.format import p_value
from directrank.papers.shared.methods import Method
from directrank.papers.shared.product import TableResult
from directrank.papers.shared.tables import Section, TableLayout, in_front


def table(evidence: Evidence, dataset: str) -> TableResult:
    """The answers on a collection, and what every method is worth and costs.

    Raises:
        DataError: both methods of no question were run.
    """
    study = Protocol(evidence, methods_of(evidence, dataset, "trees"))
    answers = judged(differences(study), study.margin)
    if not answers:
        raise nothing_to_ask(f"on {dataset}")
    seconds = {method.name: training_seconds(method) for method in study.methods}
    rows = [*answer_rows(study, answers)]
    rows += _method_rows(study)
    data = in_front(pd.DataFrame(rows), study.about)
    times = pd.DataFrame({"method": list(seconds), "seconds": list(seconds.values())})
    lines = [
        [
            answer.question.text,
            *answer.question.pair,
            answer.difference,
            answer.verdict_in_print,
            p_value(answer.p_holm, 3),
            *(f"{seconds[name]:.2f}" for name in answer.question.pair),
        ]
        for answer in answers.values()
    ]
    columns = ["Choice", "first", "second", f"difference in {HEADING}", "verdict", "p"]
    columns += ["s, first", "s, second"]
    of_methods = ["Method", *METRICS, "trees kept", "at the limit", "s"]
    sections = [
        Section("Choice by choice", lines),
        Section("All methods", _method_lines(data, seconds), of_methods),
    ]
    caption = (
        f"Boosted trees under one protocol. The upper part shows the first method's test {HEADING} "
        "minus the second's (means over trials), ± the half width of its 95% t interval, for "
        f"{study.over}, which is not corrected. {verdicts_sentence(study.margin)}. p is that of "
        "the test of no "
        "difference, corrected. The lower part shows means as in the table of all methods, with "
        "the same intervals (bold: the highest). “trees kept” is the mean over trials and folds of "
        "the chosen models, “at the limit” is the number of these that grew the largest number of "
        "trees allowed, and “s” is the seconds that one configuration of one trial takes to train, "
        "including validation (the median over trials, configurations and folds, as the runs "
        "measured them while the machine did other work); times differ from run to run and are in "
        f"a separate file. {where_timed(study.methods)}"
        f"Queries without a relevant document are left out. {study.scale()}"
    )
    layout = TableLayout(
        in_words([*answers.values()], study.size, study.margin), caption, columns, sections
    )
    return TableResult(data, layout, in_front(times, study.about))


def _method_rows(study: Protocol) -> Iterator[dict[str, Any]]:
    """A row per method and metric: the mean, as in the table of all methods, and the trees."""
    means = {metric: study.over_folds(metric) for metric in METRICS.values()}
    errors = {metric: study.over_queries(metric) for metric in METRICS.values()}
    for number, method in enumerate(study.methods):
        trees = _trees(method)
        for heading, metric in METRICS.items():
            yield {
                "method": method.name,
                "metric": heading,
                "mean": means[metric][number],
                "half_width": errors[metric][number].interval().half_width,
                "queries": study.n_queries,
                **trees,
            }


def _trees(method: Method) -> dict[str, Any]:
    """The trees of the chosen models, and how many models have as many as they may."""
    fits = pd.concat([run.result.fits for run in method.runs])
    chosen = fits[fits["selected"]]
    return {
        "trees_kept": float(chosen["best_epoch"].mean()),
        "at_the_limit": int((~chosen["stopped_early"].astype(bool)).sum()),
        "models": len(chosen),
    }


def _method_lines(data: pd.DataFrame, seconds: Mapping[str, float]) -> list[list[str]]:
    means = data[data["mean"].notna()]
    best = means.groupby("metric")["mean"].max()
    lines = []
    for name, of_method in means.groupby("method", sort=False):
        rows = of_method.set_index("metric")
        cells = []
        for heading in METRICS:
            mean, half_width = rows.loc[heading, ["mean", "half_width"]]
            cells.append(measured(mean, half_width, best=mean == best[heading]))
        first = rows.iloc[0]
        limit = f"{first['at_the_limit']:.0f} of {first['models']:.0f}"
        cells += [f"{first['trees_kept']:.0f}", limit, f"{seconds[str(name)]:.2f}"]
        lines.append([str(name), *cells])
    return lines
