"""Qin2010's Tables 2 to 4, the baselines beside LETOR's values, later methods, and MSRD."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from directrank.papers.qin2010.comparisons import (
    AP,
    DISCOUNTS,
    ESTIMATE,
    OWN,
    SMALL_START,
    TABLE4_METRICS,
    against_own,
    estimates,
    folds_mean,
    letor_value,
    methods_of,
    scale_caption,
    significant,
    table4_order,
    with_both_discounts,
)
from directrank.papers.qin2010.stopping import ending_sentence, how_trained
from directrank.papers.shared import datasets
from directrank.papers.shared.cells import BRACKETS, DIFFERENCES, LOST, difference, of_other_data
from directrank.papers.shared.evidence import Evidence, FinishedRun, data_sentence
from directrank.papers.shared.format import listed, p_value, spread
from directrank.papers.shared.leads import lead, near_print, significant_share
from directrank.papers.shared.methods import Method, by_method, compared, interval_of_means
from directrank.papers.shared.methods_table import MethodsTable, in_print
from directrank.papers.shared.product import TableResult
from directrank.papers.shared.summary import Panel, in_one_picture
from directrank.papers.shared.tables import Section, TableLayout, in_front
from directrank.stats.decisions import SIGNIFICANT
from directrank.stats.tests import holm_of_known
from directrank.system.errors import DataError

TABLE4 = MethodsTable(
    first="Method",
    metrics={heading: letor for heading, (letor, _) in TABLE4_METRICS.items()},
    csv=(
        *("edition", "dataset", "data", "method", "metric", "discount", *ESTIMATE),
        *("published", *DIFFERENCES, "gain_of_approxndcg", "gain_half_width"),
        *("p_value", "p_holm", "status"),
    ),
    measure=against_own("gain_of_approxndcg", "gain_half_width", own_first=True),
    beside={"paper": in_print(4)},
    by_metric=True,
)


def table4(evidence: Evidence) -> TableResult:
    """Table 4 with NDCG@n of section 5.4: methods on OHSUMED's five folds."""
    order = table4_order(evidence)
    methods = methods_of(evidence, "ohsumed_methods", order=order)
    data = with_both_discounts(
        TABLE4, evidence, methods, lambda discount: _published(evidence, methods, order, discount)
    )
    data["status"] = np.where(data["mean"].notna(), "run", "not run here")
    first = next(iter(methods.values()))
    caption = (
        f"Ranking accuracy: NDCG on the test sets, {scale_caption(methods)} “paper” is the value "
        "printed in the paper or on the LETOR 3.0 site; a dash means that it could not be "
        f"recovered. {'' if of_other_data(data) else f'{BRACKETS}. '}"
        f"* marks methods that differ from {OWN} ({significant(methods)}). "
        f"{how_trained(methods)}{evidence.sources(first.runs, 'test sets')}"
    )
    sections = [
        TABLE4.section(data[data["discount"] == discount], f"With {title}")
        for discount, title in DISCOUNTS.items()
    ]
    return TABLE4.result(data, _table4_lead(data), caption, sections)


def _table4_lead(data: pd.DataFrame) -> str:
    """Which method is ahead in NDCG@n, how many differ from the paper's own, and the distance."""
    letor = data[(data["discount"] == "letor") & (data["status"] == "run")]
    return lead(
        TABLE4.extremes(letor, "NDCG@n"),
        significant_share(letor["p_holm"], SIGNIFICANT, f"differences from {OWN} are significant"),
        near_print(letor),
    )


def _published(
    evidence: Evidence, methods: Mapping[str, Method], order: Sequence[str], discount: str
) -> pd.DataFrame:
    """The printed values, from the paper or else from LETOR's site; NaN where one is lost.

    NDCG@1 is the same under both discounts. Which discount NDCG@n was measured with the paper does
    not say (the tool stops at rank 10), so it stands beside both.
    """
    table = evidence.published("qin2010_table4").set_index("Algorithm")
    table = table.rename(columns={"NDCG@n (from the text)": "NDCG@n"})

    def value(method: str, heading: str) -> float:
        if discount == "log2" and heading not in ("NDCG@1", "NDCG@n"):
            return math.nan
        if method in table.index and not math.isnan(table.loc[method, heading]):
            return float(table.loc[method, heading])
        return letor_value(evidence, method, heading)

    names = dict.fromkeys([*order, *methods])
    cells = [(name, heading) for name in names for heading in TABLE4_METRICS]
    return pd.DataFrame(
        {"method": name, "metric": heading, "published": value(name, heading)}
        for name, heading in cells
    )


OWN_AP = "ApproxAP"

#: Experiment of Table 3 → its column.
TABLE3_PARTS = {"td2003_methods": "TD2003", "td2004_methods": "TD2004"}

#: By what factor ApproxAP is better on TD2003 (section 5.3): method → at least.
MAP_RATIOS = {"SVMmap": 1.15, "AdaRank.MAP": 1.20}

#: Column heading → metric, of the comparison with LETOR's site; all with its own discount.
LETOR_METRICS = {
    "NDCG@1": "ndcg@1/letor",
    "NDCG@3": "ndcg@3/letor",
    "NDCG@5": "ndcg@5/letor",
    "NDCG@10": "ndcg@10/letor",
    "MAP": AP,
}

#: Baselines in the order of the paper's tables.
BASELINES = ("AdaRank.MAP", "AdaRank.NDCG", "SVMmap", "SoftRank", "Ranking SVM", "ListNet")


TABLE3 = MethodsTable(
    first="Method",
    metrics={"MAP": AP},
    csv=(
        *("edition", "paper_dataset", "method", "metric", "published", "dataset", "data"),
        *(*ESTIMATE, *DIFFERENCES, "status"),
    ),
    measure=estimates,
    beside={"paper": in_print(3)},
    unprinted=LOST,
)

BESIDE_LETOR = MethodsTable(
    first="Method",
    metrics=LETOR_METRICS,
    csv=(
        *("edition", "dataset", "data", "method", "metric", *ESTIMATE),
        *("published", *DIFFERENCES, "status"),
    ),
    measure=estimates,
    beside={"LETOR": in_print(4)},
    unprinted=LOST,
)


def map_methods(evidence: Evidence, experiment: str) -> dict[str, Method]:
    """The methods of one column of Table 3, in the paper's order."""
    order = list(evidence.published("qin2010_table3")["Algorithm"])
    return methods_of(evidence, experiment, order=order)


def table3(evidence: Evidence) -> TableResult:
    """Table 3: MAP of five methods on TD2003 and TD2004."""
    table = evidence.published("qin2010_table3").set_index("Algorithm")
    parts = {title: map_methods(evidence, name) for name, title in TABLE3_PARTS.items()}
    frames = []
    for title, methods in parts.items():
        theirs = TABLE3.printed(table, published=title)
        ours = {name: method for name, method in methods.items() if name in table.index}
        frames.append(TABLE3.rows(evidence, ours, theirs, paper_dataset=title))
    data = pd.concat(frames, ignore_index=True)
    caption = (
        "Ranking accuracy in MAP on the test sets: "
        + " ".join(
            f"{title}: {scale_caption(methods)} "
            f"{ending_sentence(methods[OWN_AP].runs) if OWN_AP in methods else ''}"
            f"{data_sentence(next(iter(methods.values())).runs, 'test', 'test set')}"
            for title, methods in parts.items()
            if methods
        )
        + " “paper” is the printed value; a dash means that it could not be recovered. "
        + (f"{BRACKETS}. " if (data["data"] == "real").any() else "")
        + f"Edition {evidence.edition}."
    )
    start = lead(*(TABLE3.extremes(frame, "MAP") for frame in frames))
    by_data = replace(TABLE3, metrics=dict.fromkeys(parts, AP))
    return by_data.result(data, start, caption, [Section("", by_data.lines(data))])


def baselines(evidence: Evidence) -> TableResult:
    """Every baseline of the paper's tables, trained here, beside LETOR's value on OHSUMED."""
    methods = methods_of(evidence, "ohsumed_methods", "ohsumed_map_methods")
    methods = {name: methods[name] for name in BASELINES if name in methods}
    if not methods:
        raise DataError("no baseline was run", "add runs to ohsumed_methods")
    weak = _by_c(evidence.runs("ohsumed_weak_svm"))
    shown = {**methods, **weak}
    theirs = pd.DataFrame(
        {
            "method": name,
            "metric": heading,
            "published": letor_value(evidence, "Ranking SVM" if name in weak else name, heading),
        }
        for name in shown
        for heading in LETOR_METRICS
    )
    data = BESIDE_LETOR.rows(evidence, shown, theirs)
    first = next(iter(methods.values()))
    caption = (
        "The baselines of the paper's tables, all trained here, beside the values on the site of "
        "LETOR 3.0 that the paper cites (a dash means that they could not be recovered). NDCG with "
        f"LETOR's discount; {scale_caption(methods)} Hyper-parameters are chosen per fold on the "
        f"validation set. {f'{BRACKETS}. ' if first.dataset.of_the_paper else ''}"
        f"{how_trained(methods)}{evidence.sources(first.runs, 'test sets')}"
    )
    ours = data[data["method"].isin(list(methods))]
    start = lead(BESIDE_LETOR.extremes(ours, "NDCG@10"), near_print(ours))
    return BESIDE_LETOR.result(data, start, caption, [BESIDE_LETOR.section(data)])


def _by_c(runs: Sequence[FinishedRun]) -> dict[str, Method]:
    """Ranking SVMs whose c is fixed, by their names in print, the smallest c first."""
    methods = by_method(runs, "zero", setting="model.c")
    ordered = sorted(methods.values(), key=lambda method: float(method.name))
    names = [f"Ranking SVM, c = {float(method.name):g}" for method in ordered]
    return dict(zip(names, ordered, strict=True))


#: What all pairs are compared by: heading → metric.
COMPARED = {"NDCG@10": "ndcg@10/letor", "NDCG@n": "ndcg/letor", "MAP": AP}

MEANS = MethodsTable(
    first="Method",
    metrics=COMPARED,
    csv=("metric", "method", "mean", "half_width", "folds", "queries"),
    measure=estimates,
    by_metric=True,
)

#: Headings of the list of pairs.
PAIR_COLUMNS = ("Better", "Worse", "difference", "p, Holm")


def statistics(evidence: Evidence) -> TableResult:
    """Every pair of methods on OHSUMED, tested and corrected by Holm's method."""
    order = table4_order(evidence)
    methods = methods_of(evidence, "ohsumed_methods", "ohsumed_map_methods", order=order)
    if len(methods) < 2:
        raise DataError("there are no two methods to compare", "add runs to ohsumed_methods")
    first = next(iter(methods.values()))
    means = MEANS.rows(evidence, methods)
    frames, sections = [means[list(MEANS.csv)]], [MEANS.section(means)]
    for heading, metric in COMPARED.items():
        frame = _pairs(methods, metric)
        frame.insert(0, "metric", heading)
        frames.append(frame)
        if lines := _pair_lines(frame):
            sections.append(Section(f"Pairs that differ in {heading}", lines, PAIR_COLUMNS))
    data = pd.concat(frames, ignore_index=True)
    data = in_front(data, evidence.about(first.dataset))
    data = data.astype({"folds": "Int64", "queries": "Int64"})
    caption = (
        f"All methods against each other: NDCG with LETOR's discount, {scale_caption(methods)} "
        f"The lower part has the pairs that differ ({significant(methods, 'over all pairs')}); "
        "every pair is in the CSV file. "
        f"{how_trained(methods)}{evidence.sources(first.runs, 'test sets')}"
    )
    return TableResult(data, TableLayout(_pairs_lead(data), caption, MEANS.columns, sections))


def _pairs(methods: Mapping[str, Method], metric: str) -> pd.DataFrame:
    """One row per pair of methods, tested for other queries and other trainings."""
    rows = []
    for a, b in itertools.combinations(methods, 2):
        gap = compared(methods[a], methods[b], metric)
        rows.append(
            {
                "method": a,
                "other": b,
                "difference": gap.mean,
                "difference_half_width": gap.interval().half_width,
                "queries": gap.n,
                "p_value": gap.p_differs(),
            }
        )
    frame = pd.DataFrame(rows)
    return frame.assign(p_holm=holm_of_known(frame["p_value"]))


def _pair_lines(frame: pd.DataFrame) -> list[list[str]]:
    """The pairs of a metric that differ, the largest difference first."""
    told = frame[frame["p_holm"] < SIGNIFICANT].sort_values("difference", key=lambda d: -d.abs())
    lines = []
    for row in told.itertuples():
        better, worse = (row.method, row.other) if row.difference > 0 else (row.other, row.method)
        lines.append([better, worse, difference(abs(row.difference)), p_value(row.p_holm, 3)])
    return lines


def _pairs_lead(data: pd.DataFrame) -> str:
    """How many pairs of all metrics differ."""
    what = f"differences in {listed([*COMPARED])} are significant"
    return lead(significant_share(data["p_holm"], SIGNIFICANT, what))


BEYOND = MethodsTable(
    first="Method",
    metrics={heading: letor for heading, (letor, _) in TABLE4_METRICS.items()},
    csv=(
        *("edition", "dataset", "data", "method", "metric", "discount", *ESTIMATE),
        *("gain_over_approxndcg", "gain_half_width", "p_value", "p_holm"),
    ),
    measure=against_own("gain_over_approxndcg", "gain_half_width", own_first=False),
    by_metric=True,
)


def beyond(evidence: Evidence) -> TableResult:
    """Networks and later losses on the same folds, beside methods of Table 4."""
    older = methods_of(evidence, "ohsumed_methods")
    newer = methods_of(evidence, "beyond_methods")
    if OWN not in older or not newer:
        raise DataError(f"{OWN} or the later methods were not run", "add runs to beyond_methods")
    methods = {
        **{name: older[name] for name in (OWN, SMALL_START, "LambdaMART") if name in older},
        **newer,
    }
    data = with_both_discounts(BEYOND, evidence, methods)
    letor = data[data["discount"] == "letor"]
    first = methods[OWN]
    caption = (
        f"Later methods on the folds of Table 4: NDCG with LETOR's discount, "
        f"{scale_caption(methods)} {_trials(methods)} * marks methods that differ from the "
        f"linear {OWN} of the paper ({significant(methods)}). "
        f"{how_trained(methods)}{evidence.sources(first.runs, 'test sets')}"
    )
    what = f"differences of later methods from {OWN} are significant"
    start = lead(significant_share(letor["p_holm"], SIGNIFICANT, what))
    return BEYOND.result(data, start, caption, [BEYOND.section(letor)])


def _trials(methods: Mapping[str, Method]) -> str:
    trials = {name: method.runs[0].n_trials for name, method in methods.items()}
    several = [name for name, number in trials.items() if number > 1]
    if not several:
        return "Every method has one trial."
    numbers = sorted({trials[name] for name in several})
    return (
        f"Values of {listed(several)} are means over {listed([str(number) for number in numbers])} "
        "trials; the others have a single trial."
    )


#: Published name of a data set in Table 2 → its name in the catalogue.
DATASETS = {"TD2003": "td2003", "TD2004": "td2004", "OHSUMED": "ohsumed"}

#: Column of Table 2 in the published file → how it is set.
TABLE2_COLUMNS = {
    "# Query": "Queries",
    "Relevance levels": "Relevance levels",
    "# (Docs per query)": "Documents per query",
}


def table2(evidence: Evidence) -> TableResult:
    """Table 2: the data sets of LETOR 3.0, of those that this edition prepares."""
    caption = (
        "Data sets of LETOR 3.0. A dash under “paper” marks a number that could not be recovered; "
        "the paper's documents per query on OHSUMED are derived from the number of documents. A "
        "dash among our values marks a data set that this edition does not prepare."
    )
    printed = evidence.published("qin2010_table2").set_index("Dataset")
    return datasets.table(evidence, printed, DATASETS, _statistics, TABLE2_COLUMNS, caption)


def _statistics(name: str, record: Mapping[str, Any]) -> dict[str, float]:
    """The columns of Table 2 from the record of a prepared data set."""
    total = record["total"]
    return {
        "# Query": total["queries"],
        "Relevance levels": record["label_levels"],
        "# (Docs per query)": total["documents"] / total["queries"],
    }


#: Number of section 4 in the published file → how the picture calls it.
BOUNDS = {
    "epsilon = max |pi_hat - pi| in Table 1": "ε",
    "bound (n-1)/(exp(delta*alpha)+1), n=5, alpha=100": "bound of ε, n = 5",
    "bound for n=1000, alpha=200": "bound of ε, n = 1000",
    "|AP_hat-AP| bound, beta=100, |D+|=1": "bound of AP's error",
    "|NDCG_hat-NDCG| bound eps/(2 ln 2)": "bound of NDCG's error",
}


def not_in_table4(rows: pd.DataFrame) -> pd.Series:
    """Which rows of the baselines hold a published value that Table 4 does not show too."""
    shown = rows["method"].isin(["Ranking SVM", "ListNet"]) & (rows["metric"] != "MAP")
    return ~shown & rows["method"].isin(BASELINES)


#: The frames of the product ``summary``.
PANELS = (
    Panel(
        title="Section 4, bounds",
        axis="value",
        tables=("table1",),
        row=lambda rows: rows["quantity"].map(BOUNDS),
        cell=("quantity",),
        value="value",
        relative=True,
    ),
    Panel(
        title="Table 2, data sets",
        axis="value",
        tables=("table2",),
        row="statistic",
        where=lambda rows: rows["data"] != "stand-in",  # which are smaller on purpose
        cell=("paper_dataset", "statistic"),
        value="value",
        relative=True,
    ),
    Panel(
        title="Table 3, TD2003 and TD2004",
        axis="MAP",
        tables=("table3",),
        row="method",
        cell=("paper_dataset", "method", "metric"),
        frame="paper_dataset",
        bars="95% intervals",
    ),
    Panel(
        title="Table 4, OHSUMED",
        axis="NDCG",
        tables=("table4",),
        row="method",
        cell=("method", "metric"),
        frame="metric",
        bars="95% intervals",
        where=lambda rows: rows["discount"] == "letor",
    ),
    Panel(
        title="LETOR 3.0, OHSUMED",
        axis="MAP and NDCG",
        tables=("baselines",),
        row="method",
        cell=("method", "metric"),
        frame="metric",
        bars="95% intervals",
        where=not_in_table4,
    ),
)

summary = partial(in_one_picture, panels=PANELS)


ON_MSRD = MethodsTable(
    first="Method",
    metrics={heading: printed for heading, (_, printed) in TABLE4_METRICS.items()} | {"MAP": AP},
    csv=(
        *("edition", "dataset", "data", "method", "metric", "mean", "half_width", "trials"),
        *("folds", "queries", "difference", "difference_half_width", "p_value", "p_holm", "star"),
    ),
    measure=against_own("difference", "difference_half_width", own_first=False),
    by_metric=True,
    contenders=lambda data: data["mean"].notna(),
)


def table_msrd(evidence: Evidence) -> TableResult:
    """The methods of Table 4 on the folds of MSRD."""
    methods = methods_of(evidence, "msrd_methods", order=table4_order(evidence))
    data = ON_MSRD.rows(evidence, methods)
    first = next(iter(methods.values()))
    every = [run for method in methods.values() for run in method.runs]
    caption = (
        "The methods of Table 4 on data that the paper does not use: NDCG with the paper's "
        f"discount, and MAP, on the test sets; {folds_mean(first)} over "
        f"{spread([method.n_trials for method in methods.values()], 'trial')}, "
        f"± {interval_of_means([*methods.values()])}. The highest value of a column is bold; * "
        f"marks methods that differ from {OWN} ({significant(methods)}). "
        f"{how_trained(methods)}{evidence.sources(every, 'test sets')}"
    )
    at_ten = data.loc[data["metric"] == "NDCG@10", "p_holm"]
    what = f"differences from {OWN} in NDCG@10 are significant"
    start = lead(ON_MSRD.extremes(data, "NDCG@10"), significant_share(at_ten, SIGNIFICANT, what))
    return ON_MSRD.result(data, start, caption, [ON_MSRD.section(data)])
