"""Table 1 of Bruch2019: ApproxNDCG beside the other rankers on the test sets.

Intervals are Student's t at 95 % over the trials.
"""

from __future__ import annotations

import pandas as pd

from directrank.papers.bruch2019.runs import CUTOFFS
from directrank.papers.shared.cells import JOINT_BRACKETS
from directrank.papers.shared.differences import COLUMNS as DIFFERENCES
from directrank.papers.shared.differences import of_other_data
from directrank.papers.shared.evidence import Evidence, data_sentence
from directrank.papers.shared.leads import lead, near_print
from directrank.papers.shared.methods import by_method
from directrank.papers.shared.methods_table import MethodsTable, in_print, percent_over_trials
from directrank.papers.shared.product import TableResult
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

#: Trials behind each published mean (section 3.2).
PUBLISHED_TRIALS = 10


TABLE1 = MethodsTable(
    first="Model",
    metrics={f"NDCG@{cutoff}": f"ndcg@{cutoff}" for cutoff in CUTOFFS},
    csv=(
        *("edition", "paper_dataset", "dataset", "data", "method", "metric"),
        *("mean", "half_width", "trials", "queries", "published", "published_half_width"),
        *(*DIFFERENCES, "status"),
    ),
    measure=percent_over_trials,
    title=lambda method: TABLE1_METHODS.get(method, (method, None))[0],
    digits=2,
    beside={"paper": in_print(2)},
    error_over="trials",
    print_over=PUBLISHED_TRIALS,
    unprinted="not in the paper's table",
    other_data_first=True,
)


def table1(evidence: Evidence) -> TableResult:
    """Table 1: ApproxNDCG beside the other methods on the test sets."""
    published = evidence.published("bruch2019_table1").set_index("Model")
    published = published.rename(
        {printed: method for method, (_, printed) in TABLE1_METHODS.items()}
    )
    frames, sources = [], []
    for experiment, title in TABLE1_PARTS.items():
        methods = by_method(evidence.runs(experiment), "exclude")
        if methods:
            part = published[published["Dataset"] == title]
            theirs = TABLE1.printed(part, published="{}", published_half_width="{}_ci95")
            order = list(TABLE1_METHODS)
            frames.append(TABLE1.rows(evidence, methods, theirs, order, paper_dataset=title))
            sources.append(data_sentence(evidence.runs(experiment), "test", "test set"))
    if not frames:
        raise DataError("no method of Table 1 was run", f"add runs to {' or '.join(TABLE1_PARTS)}")
    data = pd.concat(frames, ignore_index=True)
    absent = (data["method"] == RANKLIB) & data["mean"].isna()
    data.loc[absent, "status"] = "not run here (RankLib absent)"
    caption = (
        "Comparison of ranking models on the test sets: NDCG in per cent, the mean over "
        f"{TABLE1.trials(data)} ± the half width of its 95% t interval. Queries "
        "without a relevant document are left out. “paper” is the printed value, a mean over "
        f"{PUBLISHED_TRIALS} trials; a dash means that the paper prints none. "
        f"{f'{JOINT_BRACKETS}. ' if not of_other_data(data) else ''}"
        f"{' '.join(sources)} Edition {evidence.edition}."
    )
    last = f"NDCG@{CUTOFFS[-1]}"
    start = lead(*(TABLE1.ahead(frame, last) for frame in frames), near_print(data))
    sections = [TABLE1.section(frame) for frame in frames]
    return TABLE1.result(data, start, caption, sections, _table1_notes(data))


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
