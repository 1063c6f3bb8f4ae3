"""Table 1 of Bruch2019: ApproxNDCG beside the other rankers on the test sets.

Intervals are Student's t at 95 % over the trials.
"""

from __future__ import annotations

from typing import Any

import pandas as pd

from directrank.papers.bruch2019.runs import CUTOFFS, ndcg
from directrank.papers.shared.cells import JOINT_BRACKETS, measured, printed
from directrank.papers.shared.differences import COLUMNS as DIFFERENCES
from directrank.papers.shared.differences import add_differences, of_other_data, standard_error
from directrank.papers.shared.evidence import (
    NOT_COMPARABLE,
    Evidence,
    PlannedRun,
    data_sentence,
    here,
)
from directrank.papers.shared.format import headings, spread
from directrank.papers.shared.leads import extremes, lead, near_print
from directrank.papers.shared.methods import over_trials
from directrank.papers.shared.product import TableResult
from directrank.papers.shared.tables import Layout, Section
from directrank.system.errors import DataError

#: Experiment of Table 1 → what the paper calls the data set.
TABLE1_PARTS = {"table1_web30k": "Web30K", "table1_yahoo1": "Yahoo! Set 1"}

OWN = "ApproxNDCG"
RANKLIB = "λMART_RankLib"
RANKLIB_LIKE = "λMART_RankLib-like"

#: Rows of Table 1 in the paper's order; the stand-in for RankLib, which is not the paper's, follows
#: it. Method → (how it is set, its name in the published table or None).
TABLE1_METHODS = {
    "ListMLE": ("ListMLE", "ListMLE"),
    "RankNet": ("RankNet", "RankNet"),
    RANKLIB: ("λMART<sub>RankLib</sub>", "λMARTRankLib"),
    RANKLIB_LIKE: ("λMART<sub>RankLib-like</sub>", None),
    "λMART_GBM": ("λMART<sub>GBM</sub>", "λMARTGBM"),
    OWN: (OWN, OWN),
}

TABLE1_COLUMNS = (
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
    "published_half_width",
    *DIFFERENCES,
    "status",
)

#: Trials behind each published mean (section 3.2).
PUBLISHED_TRIALS = 10


def table1(evidence: Evidence) -> TableResult:
    """Table 1: ApproxNDCG beside the other methods on the test sets."""
    frames = _table1_parts(evidence)
    data = pd.concat(frames, ignore_index=True)
    caption = (
        "Comparison of ranking models on the test sets: NDCG in per cent, the mean over "
        f"{spread(_trials(data), 'trial')} ± the half width of its 95% t interval. Queries "
        "without a relevant document are left out. “paper” is the printed value, a mean over "
        f"{PUBLISHED_TRIALS} trials; a dash means that the paper prints none. "
        f"{f'{JOINT_BRACKETS}. ' if not of_other_data(data) else ''}"
        f"{_table1_data(evidence)} Edition {evidence.edition}."
    )
    columns = headings("Model", (f"NDCG@{cutoff}" for cutoff in CUTOFFS), "paper")
    sections = [_table1_section(frame) for frame in frames]
    start = lead(*(_ahead(frame) for frame in frames), near_print(data))
    return TableResult(data, Layout(start, caption, columns, sections, _table1_notes(data)))


def _ahead(frame: pd.DataFrame) -> str:
    """Which model is ahead on a data set."""
    last = frame[frame["metric"] == f"NDCG@{CUTOFFS[-1]}"]
    means = {_title(row.method): row.mean for row in last.itertuples()}
    return f"on {_place(frame)}, {extremes(means, f'NDCG@{CUTOFFS[-1]}', 2)}"


def _table1_parts(evidence: Evidence) -> list[pd.DataFrame]:
    """The tidy rows of each data set of Table 1 that something was run on."""
    frames = []
    for experiment, printed_name in TABLE1_PARTS.items():
        runs = {run.setting("method"): run for run in evidence.runs(experiment)}
        if runs:
            frames.append(_table1_rows(evidence, runs, printed_name))
    if not frames:
        raise DataError("no method of Table 1 was run", f"add runs to {' or '.join(TABLE1_PARTS)}")
    return frames


def _table1_data(evidence: Evidence) -> str:
    parts = [evidence.runs(experiment) for experiment in TABLE1_PARTS]
    return " ".join(data_sentence(runs, "test", "test set") for runs in parts if runs)


def _trials(data: pd.DataFrame) -> list[int]:
    return data["trials"].dropna().astype(int).tolist()


def _table1_rows(
    evidence: Evidence, runs: dict[str, PlannedRun], printed_name: str
) -> pd.DataFrame:
    published = evidence.published("bruch2019_table1")
    published = published[published["Dataset"] == printed_name].set_index("Model")
    dataset = next(iter(runs.values())).dataset
    scale = next(iter(runs.values())).scale("test")
    queries = scale.queries - scale.empty
    methods = [*TABLE1_METHODS, *(method for method in runs if method not in TABLE1_METHODS)]
    rows = []
    for method in methods:
        name = TABLE1_METHODS.get(method, (method, None))[1]
        in_print = name in published.index
        if method not in runs and not in_print:
            continue
        for cutoff in CUTOFFS:
            column = f"NDCG@{cutoff}"
            row: dict[str, Any] = evidence.about(dataset, paper_dataset=printed_name)
            row |= {"method": method, "metric": column}
            if in_print:
                row["published"] = published.loc[name, column]
                row["published_half_width"] = published.loc[name, f"{column}_ci95"]
            if method in runs:
                row |= over_trials(ndcg(runs[method], "test", cutoff)) | {"queries": queries}
            row["status"] = _status(method, method in runs, in_print, dataset.kind)
            rows.append(row)
    frame = pd.DataFrame(rows).reindex(columns=TABLE1_COLUMNS)
    frame = add_differences(
        frame,
        error=standard_error(frame["half_width"], frame["trials"]),
        published_error=standard_error(frame["published_half_width"], PUBLISHED_TRIALS),
    )
    return frame.astype({"trials": "Int64", "queries": "Int64"})


def _status(method: str, was_run: bool, in_print: bool, kind: str) -> str:
    if not was_run:
        return "not run here (RankLib absent)" if method == RANKLIB else "not run here"
    if kind in NOT_COMPARABLE:
        return f"{kind}: levels not comparable"
    return "compared" if in_print else "not in the paper's table"


def _title(method: str) -> str:
    return TABLE1_METHODS.get(method, (method, None))[0]


def _place(frame: pd.DataFrame) -> str:
    first = frame.iloc[0]
    return here(first["paper_dataset"], first["data"], first["dataset"])


def _table1_section(frame: pd.DataFrame) -> Section:
    rows = []
    for method, group in frame.groupby("method", sort=False):
        cells = [_title(method)]
        for row in group.itertuples():
            cells += [
                measured(row.mean, row.half_width, 2),
                printed(
                    row.published,
                    2,
                    row.published_half_width,
                    in_errors=row.difference_in_se,
                    kind=row.data,
                ),
            ]
        rows.append(cells)
    return Section(_place(frame), rows)


def _table1_notes(data: pd.DataFrame) -> list[str]:
    notes = []
    if RANKLIB_LIKE in set(data["method"]):
        notes.append(
            "λMART<sub>RankLib-like</sub> is LightGBM with RankLib's settings (10 leaves, learning "
            "rate 0.1, one document per leaf); it is not RankLib and has no published value."
        )
    absent = data.loc[data["mean"].isna() & (data["method"] == RANKLIB), "method"]
    if len(absent):
        notes.append("RankLib itself is not run here, because no copy of it was found.")
    return notes
