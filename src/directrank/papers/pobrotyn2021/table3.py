"""Table 3 of Pobrotyn2021, and the same losses on OHSUMED.

A query without a relevant document counts 1, as in the paper (section 5.1); NDCG is in per cent;
intervals are Student's t at 95 % over the trials, of which the paper has one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import pandas as pd

from directrank.papers.pobrotyn2021.methods import (
    ADDED,
    CUTOFFS,
    OWN,
    PARTS,
    methods_of,
    metric,
    printed_name,
)
from directrank.papers.shared.cells import BRACKETS
from directrank.papers.shared.differences import COLUMNS as DIFFERENCES
from directrank.papers.shared.evidence import Evidence, data_sentence
from directrank.papers.shared.format import p_value, share
from directrank.papers.shared.leads import lead, near_print
from directrank.papers.shared.methods import Method, paired_groups, paired_test, paired_values
from directrank.papers.shared.methods_table import (
    MethodsTable,
    Row,
    in_print,
    percent_over_trials,
)
from directrank.papers.shared.product import TableResult
from directrank.papers.shared.training import training_sentence
from directrank.system.errors import DataError

TABLE3 = MethodsTable(
    first="Loss",
    metrics={f"NDCG@{cutoff}": metric(cutoff) for cutoff in CUTOFFS},
    csv=(
        *("edition", "paper_dataset", "dataset", "data", "method", "metric"),
        *("mean", "half_width", "trials", "queries", "published", *DIFFERENCES, "status"),
    ),
    measure=percent_over_trials,
    title=printed_name,
    suffix=lambda row: " (ours)" if math.isnan(row["published"]) else "",
    digits=2,
    beside={"paper": in_print(2)},
    contenders=lambda data: data["published"].notna(),
    error_over="trials",
    unprinted="ours, not in the paper",
    other_data_first=True,
)


def table3(evidence: Evidence) -> TableResult:
    """Table 3: all losses with the context-aware ranker on the test sets."""
    published = evidence.published("pobrotyn2021_table3").set_index("Loss")
    frames, sources = [], []
    for experiment, (title, column) in PARTS.items():
        methods = methods_of(evidence, experiment)
        if methods:
            theirs = TABLE3.printed(published, published=f"{column} {{}}")
            frames.append(TABLE3.rows(evidence, methods, theirs, paper_dataset=title))
            sources.append(data_sentence(next(iter(methods.values())).runs, "test", "test set"))
    if not frames:
        raise DataError("no loss of Table 3 was trained", f"add runs to {' or '.join(PARTS)}")
    data = pd.concat(frames, ignore_index=True)
    caption = (
        f"Test NDCG in per cent, the mean over {TABLE3.trials(data)} ± the half width of its "
        "95% t interval. A query without a relevant document counts as 1. “paper” is the printed "
        "value, from a single run; a dash means that the paper has no such row. The best of the "
        "paper's losses in each column is bold. "
        f"{f'{BRACKETS}. ' if (data['data'] == 'real').any() else ''}"
        f"{' '.join(sources)} Edition {evidence.edition}."
    )
    sections = [TABLE3.section(frame) for frame in frames]
    start = lead(*(_ahead(frame) for frame in frames), near_print(data))
    return TABLE3.result(data, start, caption, sections, [_ADDED_NOTE])


def _ahead(frame: pd.DataFrame) -> str:
    """The best of the paper's losses on a data set, and the distance of its own best loss."""
    heading = f"NDCG@{CUTOFFS[-1]}"
    theirs = frame[(frame["metric"] == heading) & frame["published"].notna()]
    theirs = theirs[theirs["mean"].notna()]
    if theirs.empty:
        return ""
    text = TABLE3.ahead(theirs, heading)
    best = theirs["mean"].max()
    own = theirs.loc[theirs["method"].isin(OWN), "mean"]
    if own.empty or own.max() == best:
        return text
    return f"{text}; the best NeuralNDCG loss is {best - own.max():.2f} points behind"


_ADDED_NOTE = (
    f"{ADDED} is LightGBM with Bruch2019's settings; the paper has no such row. Of XGBoost, the "
    "paper gives only the objective; depth is chosen on validation here, and the rest is in the "
    "experiments' file."
)
#: What the other rows are tested against on OHSUMED.
REFERENCE = "NeuralNDCG@max"


def _against_reference(methods: Mapping[str, Method], metric: str) -> dict[str, Row]:
    """Means over trials, with the gain over :data:`REFERENCE` and its p value over the queries of
    all folds.

    Raises:
        DataError: the two losses were not evaluated on the same queries.
    """
    rows = percent_over_trials(methods, metric)
    for name, method in methods.items():
        if name != REFERENCE and REFERENCE in methods:
            own, reference = paired_values([method, methods[REFERENCE]], metric)
            stream = ("pobrotyn2021", "ohsumed", name, metric)
            groups = paired_groups([method], own)
            paired = paired_test(own, reference, stream, groups=groups, resamples=10_000)
            rows[name] |= {"gain": 100 * paired.difference.mean, "p_value": paired.p_value}
    return rows


ON_OHSUMED = MethodsTable(
    first="Loss",
    metrics={**TABLE3.metrics, "NDCG": metric(None)},
    csv=(
        *("edition", "dataset", "data", "method", "metric", "mean", "half_width"),
        *("trials", "folds", "queries", "gain", "p_value"),
    ),
    measure=_against_reference,
    title=printed_name,
    suffix=lambda row: " (ours)" if row["method"] == ADDED else "",
    digits=2,
    beside={"p": lambda row: p_value(row["p_value"], 3)},
    contenders=lambda data: data["mean"].notna(),
)


def table_ohsumed(evidence: Evidence) -> TableResult:
    """The losses of Table 3 on the five folds of OHSUMED."""
    methods = methods_of(evidence, "ohsumed_losses")
    if not methods:
        raise DataError("no loss was trained on OHSUMED", "add runs to ohsumed_losses")
    data = ON_OHSUMED.rows(evidence, methods)
    every = [run for method in methods.values() for run in method.runs]
    caption = (
        "The losses of Table 3 on OHSUMED, which the paper does not use: test NDCG in per cent, "
        f"the mean of the fold means over {ON_OHSUMED.trials(data)} ± the half "
        "width of its 95% t interval over trials. A query without a relevant document counts as 1. "
        "The best value of a column is bold; p is that of a paired randomisation test against "
        f"{REFERENCE} over the pooled queries, not corrected. {training_sentence(every)} "
        f"{evidence.sources(every, 'test sets')}"
    )
    compared, told = int(data["p_value"].notna().sum()), int((data["p_value"] < 0.05).sum())
    said = f"{share(told, compared)} comparisons with {REFERENCE} have p < 0.05, uncorrected"
    start = lead(
        *(ON_OHSUMED.ahead(data, heading) for heading in ON_OHSUMED.metrics),
        said if compared else "",
    )
    return ON_OHSUMED.result(data, start, caption, [ON_OHSUMED.section(data)])
