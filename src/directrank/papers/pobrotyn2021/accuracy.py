"""Tables 2 and 3 of Pobrotyn2021, the same losses on OHSUMED, and what they cost in training.

A query without a relevant document counts 1, as in the paper (section 5.1); NDCG is in per cent;
intervals are Student's t at 95 % over the trials, of which the paper has one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from directrank.data import catalog
from directrank.papers.shared import datasets
from directrank.papers.shared.cells import BRACKETS, DIFFERENCES
from directrank.papers.shared.evidence import Evidence, FinishedRun, data_sentence, heading_of
from directrank.papers.shared.format import p_value, share
from directrank.papers.shared.leads import lead, near_print, training_sentence
from directrank.papers.shared.methods import Method, by_method, compared
from directrank.papers.shared.methods_table import (
    MethodsTable,
    Row,
    in_print,
    percent_over_trials,
)
from directrank.papers.shared.product import TableResult
from directrank.papers.shared.summary import Panel, in_one_picture, rows_where
from directrank.papers.shared.tables import Cells, TableLayout, sections_of
from directrank.system.errors import DataError

#: Experiment → the data set's name in the paper and in its published table.
PARTS = {"table3_web30k": ("Web30K", "WEB30K"), "table3_istella": ("Istella", "Istella")}

#: The rows that are a variant of the paper's own loss.
OWN = (
    "NeuralNDCG@5",
    "NeuralNDCG@10",
    "NeuralNDCG@max",
    "NeuralNDCG^T@5",
    "NeuralNDCG^T@10",
    "NeuralNDCG^T@max",
)

#: The row that the paper does not have.
ADDED = "LambdaMART"

CUTOFFS = (5, 10)


def methods_of(evidence: Evidence, experiment: str) -> dict[str, Method]:
    """The methods of an experiment, in the plan's order."""
    return by_method(evidence.runs(experiment), "one")


def metric(cutoff: int | None) -> str:
    """The column of NDCG@cutoff; of NDCG over whole lists for None."""
    return "ndcg" if cutoff is None else f"ndcg@{cutoff}"


def ndcg(method: Method, cutoff: int | None, split: str = "test") -> np.ndarray:
    """Mean NDCG@cutoff in per cent per trial, averaged over the folds: ``[trials]``."""
    return 100 * method.trial_means(metric(cutoff), split)


def printed_name(method: str) -> str:
    """The name of a method in print."""
    return method.replace("^T", "ᵀ")


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
    start = lead(*(_best_loss(frame) for frame in frames), near_print(data))
    return TABLE3.result(data, start, caption, sections, [_ADDED_NOTE])


def _best_loss(frame: pd.DataFrame) -> str:
    """The best of the paper's losses on a data set, and the distance of its own best loss."""
    heading = f"NDCG@{CUTOFFS[-1]}"
    theirs = frame[(frame["metric"] == heading) & frame["published"].notna()]
    theirs = theirs[theirs["mean"].notna()]
    if theirs.empty:
        return ""
    text = TABLE3.extremes(theirs, heading)
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
    """Means over trials, with the gain over :data:`REFERENCE` and its p value for other queries and
    other trainings.

    Raises:
        DataError: the two losses were not evaluated on the same queries.
    """
    rows = percent_over_trials(methods, metric)
    for name, method in methods.items():
        if name != REFERENCE and REFERENCE in methods:
            gain = compared(method, methods[REFERENCE], metric)
            rows[name] |= {"gain": 100 * gain.mean, "p_value": gain.p_differs()}
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
    data = ON_OHSUMED.rows(evidence, methods)
    every = [run for method in methods.values() for run in method.runs]
    caption = (
        "The losses of Table 3 on OHSUMED, which the paper does not use: test NDCG in per cent, "
        f"the mean of the fold means over {ON_OHSUMED.trials(data)} ± the half "
        "width of its 95% t interval over trials. A query without a relevant document counts as 1. "
        "The best value of a column is bold; p is that of a t test against "
        f"{REFERENCE} for other queries and other trainings, not corrected. "
        f"{training_sentence(every)} {evidence.sources(every, 'test sets')}"
    )
    tested, told = int(data["p_value"].notna().sum()), int((data["p_value"] < 0.05).sum())
    said = f"{share(told, tested)} comparisons with {REFERENCE} have p < 0.05, uncorrected"
    start = lead(
        *(ON_OHSUMED.extremes(data, heading) for heading in ON_OHSUMED.metrics),
        said if tested else "",
    )
    return ON_OHSUMED.result(data, start, caption, [ON_OHSUMED.section(data)])


TIME: Cells = {
    "Loss": lambda row: printed_name(row["method"]),
    "steps per epoch": lambda row: str(row["steps_per_epoch"]),
    "s per epoch": lambda row: f"{row['seconds_per_epoch']:.3f}",
    "ms per step": lambda row: f"{1e3 * row['seconds_per_step']:.1f}",
    "relative": lambda row: f"{row['relative']:.2f}",
}


def table_time(evidence: Evidence) -> TableResult:
    """What an epoch of each loss takes; measured times."""
    entries, times, sections, sentences, slowest = [], [], [], [], []
    for experiment, (title, _) in PARTS.items():
        methods = {
            name: method.runs[0]
            for name, method in methods_of(evidence, experiment).items()
            if "loss" in method.runs[0].result.spec
        }
        if not methods:
            continue
        part = pd.DataFrame([_epochs(evidence, name, run) for name, run in methods.items()])
        seconds = pd.DataFrame(
            {
                "dataset": part["dataset"],
                "method": part["method"],
                "seconds_per_epoch": [
                    float(run.result.history["seconds"].median()) for run in methods.values()
                ],
            }
        )
        seconds["seconds_per_step"] = seconds["seconds_per_epoch"] / part["steps_per_epoch"]
        entries.append(part.assign(paper_dataset=title))
        times.append(seconds)
        ordered = seconds.set_index("method")["seconds_per_epoch"].sort_values(kind="stable")
        first = next(iter(methods.values()))
        place = heading_of(title, first.dataset.kind, first.dataset.title)
        slowest.append(
            f"on {place}, an epoch of {printed_name(str(ordered.index[-1]))} takes "
            f"{ordered.iloc[-1] / ordered.iloc[0]:.1f} times as long as one of "
            f"{printed_name(str(ordered.index[0]))}"
        )
        relative = seconds["seconds_per_epoch"] / ordered.iloc[0]
        shown = seconds.assign(steps_per_epoch=part["steps_per_epoch"], relative=relative)
        sections.append(replace(*sections_of(shown, TIME), title=place))
        sentences.append(data_sentence([first], "test", "test set"))
    if not entries:
        raise DataError("no loss of Table 3 was trained", f"add runs to {' or '.join(PARTS)}")
    caption = (
        "The training cost of the losses of Table 3: the median seconds per epoch of one model, "
        "including validation, and the time per step, as the runs measured them while the machine "
        "did other work. The last column is relative to the fastest loss. Times are measured and "
        "differ from run to run. Runs do not record the memory of a step; "
        "benchmarks/results/losses.md has that of each loss. "
        f"{' '.join(sentences)} Edition {evidence.edition}."
    )
    data = pd.concat(entries, ignore_index=True)
    layout = TableLayout(lead(*slowest), caption, [*TIME], sections)
    return TableResult(data, layout, pd.concat(times, ignore_index=True))


def _epochs(evidence: Evidence, method: str, run: FinishedRun) -> dict[str, Any]:
    """What the epochs of a loss are."""
    queries = run.result.record["data"]["splits"]["train"]["queries"]
    return evidence.about(run.dataset) | {
        "method": method,
        "queries": queries,
        "steps_per_epoch": math.ceil(queries / run.result.spec["training"]["batch_queries"]),
        "epochs_measured": len(run.result.history),
        "n_parameters": int(run.result.fits["n_parameters"].iloc[0]),
    }


#: Published name of a data set in Table 2 → its name in the catalogue.
DATASETS = {"Web30K": "web30k", "Istella": "istella"}


def table2(evidence: Evidence) -> TableResult:
    """Table 2: statistics of the data sets, of those that this edition prepares."""
    caption = (
        "Data sets: features, training and test queries, and queries without a relevant document "
        "in all splits together. For Web30K these are the numbers of fold 1; for Istella, training "
        "queries include the quarter that is set apart for validation. A dash marks a data set "
        "that this edition does not prepare; a stand-in is generated and smaller."
    )
    printed = evidence.published("pobrotyn2021_table2").set_index("Dataset")
    columns = {column: column for column in printed}
    return datasets.table(evidence, printed, DATASETS, _statistics, columns, caption)


def _statistics(name: str, record: Mapping[str, Any]) -> dict[str, int]:
    """The columns of Table 2 from the record of a prepared data set."""
    prefix = "Fold1/" if record["folds"] else ""
    queries = {
        split: record["splits"][prefix + split]["queries"] for split in ("train", "vali", "test")
    }
    whole_training = catalog.get(name).vali_from_train is not None
    return {
        "Features": record["n_features"],
        "Queries in training": queries["train"] + (queries["vali"] if whole_training else 0),
        "Queries in test": queries["test"],
        "Empty queries": record["total"]["empty_queries"],
    }


#: The frames of the product ``summary``.
PANELS = (
    Panel(
        title="Table 1, sorting",
        axis="value",
        tables=("table1",),
        row=lambda rows: "τ = " + rows["tau"].replace("lim tau->0", "0"),
        cell=("tau", "place"),
        value="value",
    ),
    Panel(
        title="Table 2, data sets",
        axis="count",
        tables=("table2",),
        row="statistic",
        where=lambda rows: rows["data"] != "stand-in",  # which are smaller on purpose
        cell=("paper_dataset", "statistic"),
        value="value",
        relative=True,
    ),
    *(
        Panel(
            title=f"Table 3, {title}",
            axis="NDCG (points)",
            tables=("table3",),
            row=lambda rows: rows["method"].map(printed_name),
            cell=("paper_dataset", "method", "metric"),
            frame="metric",
            bars="95% intervals over trials",
            where=rows_where("paper_dataset", title),
        )
        for title, _ in PARTS.values()
    ),
)

summary = partial(in_one_picture, panels=PANELS)
