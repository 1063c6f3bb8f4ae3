"""Table 3 of Pobrotyn2021, and the same losses on OHSUMED.

A query without a relevant document counts 1, as in the paper (section 5.1); NDCG is in per cent;
intervals are Student's t at 95 % over the trials, of which the paper has one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from directrank.papers.shared.differences import COLUMNS as DIFFERENCES
from directrank.papers.shared.differences import WORDS, add_differences, beside, standard_error
from directrank.papers.shared.evidence import Evidence, PlannedRun, data_sentence, spread
from directrank.papers.shared.product import TableResult
from directrank.papers.shared.tables import Layout, Section
from directrank.stats.intervals import mean_interval
from directrank.stats.tests import paired_randomisation
from directrank.system.errors import DataError
from directrank.system.seeds import numpy_stream

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
APPROX = "ApproxNDCG"
LAMBDARANK = "LambdaRank@max"

#: The row that the paper does not have.
ADDED = "LambdaMART"

CUTOFFS = (5, 10)

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


def by_method(runs: Sequence[PlannedRun]) -> dict[str, list[PlannedRun]]:
    """The runs of each method, one per fold, in the plan's order."""
    methods: dict[str, list[PlannedRun]] = {}
    for run in runs:
        methods.setdefault(run.setting("method"), []).append(run)
    return methods


def ndcg(runs: Sequence[PlannedRun], split: str, cutoff: int | None) -> np.ndarray:
    """Mean NDCG@cutoff in per cent per trial, averaged over the folds that ``runs`` are of."""
    metric = "ndcg" if cutoff is None else f"ndcg@{cutoff}"
    folds = [run.trial_means(split, metric, "one") for run in runs]
    return 100 * np.mean(folds, axis=0)


def printed_name(method: str) -> str:
    """A method as it is set in print."""
    return method.replace("^T", "ᵀ")


def table3(evidence: Evidence) -> TableResult:
    """Table 3: all losses with the context-aware ranker on the test parts."""
    frames = []
    sentences = []
    for experiment in PARTS:
        methods = by_method(evidence.runs(experiment))
        if methods:
            frames.append(_rows(evidence, experiment, methods))
            sentences.append(data_sentence(next(iter(methods.values())), "test", "test part"))
    if not frames:
        raise DataError("no loss of Table 3 was trained", f"add runs to {' or '.join(PARTS)}")
    data = pd.concat(frames, ignore_index=True)
    trials = data["trials"].dropna().astype(int).tolist()
    caption = (
        f"Test NDCG in per cent, mean over {spread(trials, 'trial')} with the half width of its "
        "95% t interval; a query without a relevant document counts as 1. “paper” is the value "
        "printed there, of a single run. Bold: the best of the paper's losses in each column. "
        f"{f'{WORDS}. ' if (data['data'] == 'real').any() else ''}"
        f"{' '.join(sentences)} Edition {evidence.edition}."
    )
    columns = ["Loss"]
    for cutoff in CUTOFFS:
        columns += [f"NDCG@{cutoff}", "paper"]
    sections = [_section(frame) for frame in frames]
    return TableResult(data, Layout(caption, [*columns, "status"], sections, _notes(frames)))


def rows_of(data: pd.DataFrame, title: str) -> pd.Series:
    """Which rows of Table 3 belong to a data set, by the paper's name of it."""
    return data["paper_dataset"] == title


def _rows(
    evidence: Evidence, experiment: str, methods: Mapping[str, Sequence[PlannedRun]]
) -> pd.DataFrame:
    title, column = PARTS[experiment]
    published = evidence.published("pobrotyn2021_table3").set_index("Loss")
    first = next(iter(methods.values()))[0]
    rows = []
    for method in [*published.index, *(name for name in methods if name not in published.index)]:
        for cutoff in CUTOFFS:
            row: dict[str, Any] = {
                "edition": evidence.edition,
                "paper_dataset": title,
                "dataset": first.dataset.title,
                "data": first.dataset.kind,
                "method": method,
                "metric": f"NDCG@{cutoff}",
                "status": _status(method in methods, method in published.index, first),
            }
            if method in published.index:
                row["published"] = published.loc[method, f"{column} NDCG@{cutoff}"]
            if method in methods:
                interval = mean_interval(ndcg(methods[method], "test", cutoff))
                row |= {
                    "mean": interval.mean,
                    "half_width": interval.half_width,
                    "trials": interval.n,
                    "queries": methods[method][0].scale("test").queries,
                }
            rows.append(row)
    frame = pd.DataFrame(rows).reindex(columns=COLUMNS)
    frame = add_differences(frame, error=standard_error(frame["half_width"], frame["trials"]))
    return frame.astype({"trials": "Int64", "queries": "Int64"})


def _status(was_run: bool, in_print: bool, run: PlannedRun) -> str:
    if not was_run:
        return "not run here"
    if run.dataset.standin:
        return "stand-in: levels not comparable"
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
            cells.append(
                _cell(row.mean, row.half_width, row.mean == top["mean"] and not ours_alone)
            )
            printed = _cell(row.published, math.nan, row.published == top["published"])
            cells.append(beside(printed, row.difference_in_se, row.data))
        rows.append([*cells, group["status"].iloc[0]])
    first = frame.iloc[0]
    title = first["paper_dataset"]
    if first["data"] != "real":
        title += f" (here: {first['data']})"
    return Section(title, rows)


def _cell(mean: float, half_width: float, bold: bool) -> str:
    if math.isnan(mean):
        return ""
    text = f"**{mean:.2f}**" if bold else f"{mean:.2f}"
    return text + ("" if math.isnan(half_width) else f" (±{half_width:.2f})")


def _notes(frames: Sequence[pd.DataFrame]) -> list[str]:
    notes = []
    if any((frame["data"] == "stand-in").any() for frame in frames):
        notes.append(
            "A stand-in has the shape of the paper's data, not its content: the order of the "
            "losses may be compared with the paper's, the levels may not."
        )
    for frame in frames:
        for metric, part in frame.dropna(subset="mean").groupby("metric", sort=False):
            notes.append(_sureness(frame["paper_dataset"].iloc[0], metric, part))
    notes.append(
        f"{ADDED} is LightGBM with Bruch2019's settings; the paper has no such row. Its XGBoost "
        "row gives the objective alone: depth is chosen on validation here, the rest is in the "
        "experiments' file."
    )
    return notes


def _sureness(title: str, metric: str, part: pd.DataFrame) -> str:
    """Whether chance over trials may be larger than the lead that the paper prints."""
    printed = part["published"].dropna().sort_values(ascending=False)
    ours = part[part["published"].notna()].sort_values("mean", ascending=False, kind="stable")
    text = (
        f"**{title}, {metric}.** Best of the paper's losses here: "
        f"{printed_name(ours['method'].iloc[0])}, {ours['mean'].iloc[0]:.2f}"
    )
    if len(ours) > 1:
        text += (
            f", {ours['mean'].iloc[0] - ours['mean'].iloc[1]:.2f} before "
            f"{printed_name(ours['method'].iloc[1])}"
        )
    widths = part["half_width"].dropna()
    if len(printed) > 1 and len(widths):
        lead = printed.iloc[0] - printed.iloc[1]
        text += (
            f". The best printed value leads the next by {lead:.2f}; a mean of ours is known to "
            f"±{widths.median():.2f} (the median of the rows)"
        )
    return text + "."


def table_ohsumed(evidence: Evidence) -> TableResult:
    """The losses of Table 3 on the five folds of OHSUMED."""
    methods = by_method(evidence.runs("ohsumed_losses"))
    if not methods:
        raise DataError("no loss was trained on OHSUMED", "add runs to ohsumed_losses")
    cutoffs = (*CUTOFFS, None)
    rows = []
    for method, runs in methods.items():
        for cutoff in cutoffs:
            interval = mean_interval(ndcg(runs, "test", cutoff))
            rows.append(
                {
                    "edition": evidence.edition,
                    "dataset": runs[0].dataset.title,
                    "data": runs[0].dataset.kind,
                    "method": method,
                    "metric": "NDCG" if cutoff is None else f"NDCG@{cutoff}",
                    "mean": interval.mean,
                    "half_width": interval.half_width,
                    "trials": interval.n,
                    "folds": len(runs),
                    "queries": sum(run.scale("test").queries for run in runs),
                    **_against_own(methods, method, cutoff),
                }
            )
    data = pd.DataFrame(rows)
    lines = []
    for method, group in data.groupby("method", sort=False):
        cells = [printed_name(method) + (" (ours)" if method == ADDED else "")]
        for row in group.itertuples():
            best = data.loc[data["metric"] == row.metric, "mean"].max()
            cells.append(_cell(row.mean, row.half_width, row.mean == best))
            cells.append("" if math.isnan(row.p_value) else f"{row.p_value:.3f}")
        lines.append(cells)
    columns = ["Loss"]
    for metric in data["metric"].unique():
        columns += [metric, "p"]
    runs = next(iter(methods.values()))
    caption = (
        "The losses of Table 3 on OHSUMED, which the paper does not use: test NDCG in per cent, "
        f"mean of the fold means over {spread(data['trials'].tolist(), 'trial')} with the half "
        "width of its 95% t interval over trials; a query without a relevant document counts as "
        f"1. Bold: the best. p: paired randomisation test over the pooled queries against "
        f"{REFERENCE}, not corrected. {data_sentence(runs, 'test', 'test parts')} Edition "
        f"{evidence.edition}."
    )
    return TableResult(data, Layout(caption, columns, [Section("", lines)], [_spread_note(data)]))


#: What the other rows are tested against on OHSUMED.
REFERENCE = "NeuralNDCG@max"


def _against_own(
    methods: Mapping[str, Sequence[PlannedRun]], method: str, cutoff: int | None
) -> dict[str, float]:
    """Gain over :data:`REFERENCE` and its p value, over the queries of all folds."""
    if method == REFERENCE or REFERENCE not in methods:
        return {"gain": math.nan, "p_value": math.nan}
    metric = "ndcg" if cutoff is None else f"ndcg@{cutoff}"
    ours, theirs = (
        np.concatenate([run.query_values("test", metric, "one") for run in methods[name]])
        for name in (method, REFERENCE)
    )
    stream = numpy_stream("pobrotyn2021", "ohsumed", method, metric)
    p_value = paired_randomisation(ours, theirs, stream, 10_000).p_value
    return {"gain": 100 * float(np.mean(ours - theirs)), "p_value": p_value}


def _spread_note(data: pd.DataFrame) -> str:
    parts = []
    for metric, group in data.groupby("metric", sort=False):
        ranked = group.sort_values("mean", ascending=False, kind="stable")
        best, worst = (
            f"{row['mean']:.2f} ({printed_name(row['method'])})"
            for row in (ranked.iloc[0], ranked.iloc[-1])
        )
        parts.append(f"{metric}: from {worst} to {best}")
    told = int((data["p_value"] < 0.05).sum())
    return (
        f"**Range of the losses.** {'; '.join(parts)}. Of {int(data['p_value'].notna().sum())} "
        f"comparisons with {REFERENCE}, {told} have p < 0.05 before any correction."
    )
