"""Table 3 of Pobrotyn2021, and the same losses on OHSUMED.

A query without a relevant document counts 1, as in the paper (section 5.1); NDCG is in per cent;
intervals are Student's t at 95 % over the trials, of which the paper has one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd

from directrank.papers.pobrotyn2021.methods import (
    ADDED,
    CUTOFFS,
    OWN,
    PARTS,
    methods_of,
    metric,
    ndcg,
    printed_name,
)
from directrank.papers.shared.cells import BRACKETS, measured, printed
from directrank.papers.shared.differences import COLUMNS as DIFFERENCES
from directrank.papers.shared.differences import add_differences, standard_error
from directrank.papers.shared.evidence import Evidence, PlannedRun, data_sentence, here
from directrank.papers.shared.format import headings, p_value, share, spread
from directrank.papers.shared.leads import extremes, lead, near_print
from directrank.papers.shared.methods import (
    Method,
    over_trials,
    paired_groups,
    paired_test,
    paired_values,
)
from directrank.papers.shared.product import TableResult
from directrank.papers.shared.tables import Layout, Section
from directrank.papers.shared.training import training_sentence
from directrank.system.errors import DataError

COLUMNS = (
    "edition",
    "paper_dataset",
    "dataset",
    "data",
    "method",
    "metric",
    "mean",
    "half_width",
    "trials",
    "queries",
    "published",
    *DIFFERENCES,
    "status",
)


def table3(evidence: Evidence) -> TableResult:
    """Table 3: all losses with the context-aware ranker on the test sets."""
    frames = []
    sentences = []
    for experiment in PARTS:
        methods = methods_of(evidence, experiment)
        if methods:
            frames.append(_rows(evidence, experiment, methods))
            sentences.append(data_sentence(next(iter(methods.values())).runs, "test", "test set"))
    if not frames:
        raise DataError("no loss of Table 3 was trained", f"add runs to {' or '.join(PARTS)}")
    data = pd.concat(frames, ignore_index=True)
    trials = data["trials"].dropna().astype(int).tolist()
    caption = (
        f"Test NDCG in per cent, the mean over {spread(trials, 'trial')} ± the half width of its "
        "95% t interval. A query without a relevant document counts as 1. “paper” is the printed "
        "value, from a single run; a dash means that the paper has no such row. The best of the "
        "paper's losses in each column is bold. "
        f"{f'{BRACKETS}. ' if (data['data'] == 'real').any() else ''}"
        f"{' '.join(sentences)} Edition {evidence.edition}."
    )
    columns = headings("Loss", (f"NDCG@{cutoff}" for cutoff in CUTOFFS), "paper")
    sections = [_section(frame) for frame in frames]
    start = lead(*(_ahead(frame) for frame in frames), near_print(data))
    return TableResult(data, Layout(start, caption, columns, sections, [_ADDED_NOTE]))


def _ahead(frame: pd.DataFrame) -> str:
    """The best of the paper's losses on a data set, and the distance of its own best loss."""
    heading = f"NDCG@{CUTOFFS[-1]}"
    theirs = frame[(frame["metric"] == heading) & frame["published"].notna()]
    means = theirs.set_index("method")["mean"].dropna()
    if means.empty:
        return ""
    named = {printed_name(method): mean for method, mean in means.items()}
    text = f"on {_place(frame)}, {extremes(named, heading, 2)}"
    own = means[means.index.isin(OWN)]
    if own.empty or own.max() == means.max():
        return text
    return f"{text}; the best NeuralNDCG loss is {means.max() - own.max():.2f} points behind"


def _place(frame: pd.DataFrame) -> str:
    first = frame.iloc[0]
    return here(first["paper_dataset"], first["data"], first["dataset"])


def _rows(evidence: Evidence, experiment: str, methods: Mapping[str, Method]) -> pd.DataFrame:
    title, column = PARTS[experiment]
    published = evidence.published("pobrotyn2021_table3").set_index("Loss")
    first = next(iter(methods.values())).runs[0]
    rows = []
    for method in [*published.index, *(name for name in methods if name not in published.index)]:
        for cutoff in CUTOFFS:
            row: dict[str, Any] = evidence.about(first.dataset, paper_dataset=title) | {
                "method": method,
                "metric": f"NDCG@{cutoff}",
                "status": _status(method in methods, method in published.index, first),
            }
            if method in published.index:
                row["published"] = published.loc[method, f"{column} NDCG@{cutoff}"]
            if method in methods:
                row |= over_trials(ndcg(methods[method], cutoff))
                row["queries"] = methods[method].runs[0].scale("test").queries
            rows.append(row)
    frame = pd.DataFrame(rows).reindex(columns=COLUMNS)
    frame = add_differences(frame, error=standard_error(frame["half_width"], frame["trials"]))
    return frame.astype({"trials": "Int64", "queries": "Int64"})


def _status(was_run: bool, in_print: bool, run: PlannedRun) -> str:
    if not was_run:
        return "not run here"
    if not run.dataset.of_the_paper:
        return f"{run.dataset.kind}: levels not comparable"
    return "compared" if in_print else "ours, not in the paper"


def _section(frame: pd.DataFrame) -> Section:
    theirs = frame[frame["published"].notna()]
    best = theirs.groupby("metric")[["mean", "published"]].max()
    rows = []
    for method, group in frame.groupby("method", sort=False):
        ours_alone = " (ours)" if group["published"].isna().all() else ""
        cells = [printed_name(method) + ours_alone]
        for row in group.itertuples():
            top = best.loc[row.metric]
            is_best = row.mean == top["mean"] and not ours_alone
            cells += [
                measured(row.mean, row.half_width, 2, best=is_best),
                printed(
                    row.published,
                    2,
                    best=row.published == top["published"],
                    in_errors=row.difference_in_se,
                    kind=row.data,
                ),
            ]
        rows.append(cells)
    return Section(_place(frame), rows)


_ADDED_NOTE = (
    f"{ADDED} is LightGBM with Bruch2019's settings; the paper has no such row. Of XGBoost, the "
    "paper gives only the objective; depth is chosen on validation here, and the rest is in the "
    "experiments' file."
)


def table_ohsumed(evidence: Evidence) -> TableResult:
    """The losses of Table 3 on the five folds of OHSUMED."""
    methods = methods_of(evidence, "ohsumed_losses")
    if not methods:
        raise DataError("no loss was trained on OHSUMED", "add runs to ohsumed_losses")
    cutoffs = (*CUTOFFS, None)
    rows = []
    for name, method in methods.items():
        for cutoff in cutoffs:
            rows.append(
                evidence.about(method.dataset)
                | {
                    "method": name,
                    "metric": "NDCG" if cutoff is None else f"NDCG@{cutoff}",
                    **over_trials(ndcg(method, cutoff)),
                    "folds": len(method.runs),
                    "queries": sum(run.scale("test").queries for run in method.runs),
                    **_against_own(methods, name, metric(cutoff)),
                }
            )
    data = pd.DataFrame(rows)
    lines = []
    for method, group in data.groupby("method", sort=False):
        cells = [printed_name(method) + (" (ours)" if method == ADDED else "")]
        for row in group.itertuples():
            best = data.loc[data["metric"] == row.metric, "mean"].max()
            cells.append(measured(row.mean, row.half_width, 2, best=row.mean == best))
            cells.append(p_value(row.p_value, 3))
        lines.append(cells)
    columns = headings("Loss", data["metric"].unique(), "p")
    every = [run for method in methods.values() for run in method.runs]
    caption = (
        "The losses of Table 3 on OHSUMED, which the paper does not use: test NDCG in per cent, "
        f"the mean of the fold means over {spread(data['trials'].tolist(), 'trial')} ± the half "
        "width of its 95% t interval over trials. A query without a relevant document counts as 1. "
        "The best value of a column is bold; p is that of a paired randomisation test against "
        f"{REFERENCE} over the pooled queries, not corrected. {training_sentence(every)} "
        f"{evidence.sources(every, 'test sets')}"
    )
    return TableResult(data, Layout(_spread(data), caption, columns, [Section("", lines)]))


#: What the other rows are tested against on OHSUMED.
REFERENCE = "NeuralNDCG@max"


def _against_own(methods: Mapping[str, Method], name: str, metric: str) -> dict[str, float]:
    """Gain over :data:`REFERENCE` and its p value, over the queries of all folds.

    Raises:
        DataError: the two losses were not evaluated on the same queries.
    """
    if name == REFERENCE or REFERENCE not in methods:
        return {"gain": math.nan, "p_value": math.nan}
    own, reference = paired_values([methods[name], methods[REFERENCE]], metric)
    stream = ("pobrotyn2021", "ohsumed", name, metric)
    groups = paired_groups([methods[name]], own)
    paired = paired_test(own, reference, stream, groups=groups, resamples=10_000)
    return {"gain": 100 * paired.difference.mean, "p_value": paired.p_value}


def _spread(data: pd.DataFrame) -> str:
    """Between which losses the means lie, and how many can be told from the reference."""
    parts = []
    for heading, group in data.groupby("metric", sort=False):
        means = dict(zip(map(printed_name, group["method"]), group["mean"], strict=True))
        parts.append(extremes(means, str(heading), 2))
    compared = int(data["p_value"].notna().sum())
    told = int((data["p_value"] < 0.05).sum())
    said = f"{share(told, compared)} comparisons with {REFERENCE} have p < 0.05, uncorrected"
    return lead(*parts, said if compared else "")
