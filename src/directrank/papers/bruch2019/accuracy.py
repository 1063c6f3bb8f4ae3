"""Table 1 of Bruch2019, and the effect of choices that the paper leaves open in it.

Intervals of means are Student's t at 95 % over the trials. NDCG is in per cent; queries without a
relevant document are left out.
"""

from __future__ import annotations

from ast import literal_eval
from collections.abc import Mapping
from functools import partial

import pandas as pd

from directrank.papers.bruch2019.figures import CUTOFFS
from directrank.papers.shared.cells import DIFFERENCES, JOINT_BRACKETS, difference, of_other_data
from directrank.papers.shared.evidence import Evidence, data_sentence
from directrank.papers.shared.format import p_value, share
from directrank.papers.shared.leads import lead, near_print
from directrank.papers.shared.methods import Method, by_method, compared
from directrank.papers.shared.methods_table import (
    MethodsTable,
    Row,
    in_print,
    percent_over_trials,
)
from directrank.papers.shared.product import TableResult
from directrank.papers.shared.summary import Panel, in_one_picture, rows_where
from directrank.stats.decisions import SIGNIFICANT

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
    start = lead(*(TABLE1.extremes(frame, last) for frame in frames), near_print(data))
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


#: What choices of batch norm, optimiser or sampling are compared with; their names begin with it.
BASES = ("ApproxNDCG", "λMART_GBM")


def _against_base(methods: Mapping[str, Method], metric: str) -> dict[str, Row]:
    """Means over trials, and differences from the base of each setting."""
    rows = percent_over_trials(methods, metric)
    for name, method in methods.items():
        base = next((methods.get(base) for base in BASES if name.startswith(base)), None)
        if base is not None and base is not method:
            gap = compared(method, base, metric)
            rows[name] |= {
                "difference": 100 * gap.mean,
                "difference_half_width": 100 * gap.interval().half_width,
                "p_value": gap.p_differs(),
            }
    return rows


CHOICES = MethodsTable(
    first="Setting",
    name="setting",
    metrics=TABLE1.metrics,
    csv=(
        *("edition", "dataset", "data", "setting", "metric", "mean", "half_width", "trials"),
        *("difference", "difference_half_width", "p_value"),
    ),
    measure=_against_base,
    digits=2,
    beside={
        "diff.": lambda row: difference(row["difference"], row["difference_half_width"], 2),
        "p": lambda row: p_value(row["p_value"], 3),
    },
)


def table_choices(evidence: Evidence) -> TableResult:
    """Each choice against what Table 1 is made with, over the same test queries."""
    methods = by_method(evidence.runs("choices_web30k"), "exclude", setting="setting")
    data = CHOICES.rows(evidence, methods)
    families = [data[data["setting"].str.startswith(base)] for base in BASES]
    data = pd.concat(families, ignore_index=True)
    first = next(iter(methods.values()))
    queries = "queries" if first.query_groups().is_unique else "groups of related queries"
    caption = (
        f"NDCG in per cent on the test set: the mean over {CHOICES.trials(data)} ± the half width "
        "of its 95% t interval over trials. “diff.” is the difference of these means from the "
        f"first row of the group ± the half width of its 95% interval for other {queries} and "
        "other trainings, and p is that of the t test. Neither intervals nor p values are "
        "corrected for multiple comparisons. Queries without a relevant document are left out. "
        f"{evidence.sources(first.runs)}"
    )
    sections = [CHOICES.section(family) for family in families if len(family)]
    return CHOICES.result(data, _lead(data), caption, sections, _chosen(methods))


def _lead(data: pd.DataFrame) -> str:
    """How many choices make a difference, and the largest difference."""
    tested = data.dropna(subset="p_value")
    if tested.empty:
        return "Only the choices of Table 1 were tried."
    sure = int((tested["p_value"] < SIGNIFICANT).sum())
    most = tested.loc[tested["difference"].abs().idxmax()]
    size = difference(most["difference"], most["difference_half_width"], 2)
    return lead(
        f"{share(sure, len(tested))} differences have p < {SIGNIFICANT} before any correction",
        f"the largest is {size} points of {most['metric']} ({most['setting']})",
    )


def _named(optimizer: str) -> str:
    """An optimiser of the file of fits in words, e.g. ``adam with learning rate 0.005``."""
    settings = literal_eval(optimizer)
    return f"{settings['name']} with learning rate {settings['lr']:g}"


def _chosen(methods: Mapping[str, Method]) -> list[str]:
    """Which optimisers the validation set chose."""
    notes = []
    for method in methods.values():
        fits = method.runs[0].result.fits
        if "training.optimizer" in fits:
            chosen = fits.loc[fits["selected"], "training.optimizer"].value_counts()
            counted = "; ".join(f"{_named(name)} in {n}" for name, n in chosen.items())
            notes.append(f"{method.name}: of {int(chosen.sum())} trials, {counted}.")
    return notes


#: The frames of the product ``summary``.
PANELS = tuple(
    Panel(
        title=f"Table 1, {title}",
        axis="NDCG (points)",
        tables=("table1",),
        row="method",
        cell=("paper_dataset", "method", "metric"),
        frame="metric",
        bars="95% intervals over trials",
        where=rows_where("paper_dataset", title),
    )
    for title in TABLE1_PARTS.values()
)

summary = partial(in_one_picture, panels=PANELS)
