"""All methods against each other on OHSUMED, and methods that the paper does not have."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import pandas as pd

from directrank.papers.qin2010.methods import (
    AP,
    ESTIMATE,
    OWN,
    SIGNIFICANT,
    SMALL_START,
    TABLE4_METRICS,
    against_own,
    estimates,
    methods_of,
    scale_caption,
    table4_order,
    with_both_discounts,
)
from directrank.papers.qin2010.stopping import how_trained
from directrank.papers.shared.cells import difference
from directrank.papers.shared.evidence import Evidence
from directrank.papers.shared.format import listed, p_value, share
from directrank.papers.shared.leads import lead
from directrank.papers.shared.methods import Method, paired_values
from directrank.papers.shared.methods_table import MethodsTable
from directrank.papers.shared.product import TableResult
from directrank.papers.shared.tables import Layout, Section, in_front
from directrank.stats.tests import holm, paired_randomisation, wilcoxon
from directrank.system.errors import DataError
from directrank.system.seeds import numpy_stream

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
PAIR_COLUMNS = ("Better", "Worse", "difference", "p, randomisation", "p, Wilcoxon")

#: Sign patterns per pair; there are some hundred pairs.
RESAMPLES = 20_000


def statistics(evidence: Evidence) -> TableResult:
    """Every pair of methods on OHSUMED: randomisation test and Wilcoxon's, Holm-corrected."""
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
        "The lower part has the pairs that differ with p < "
        f"{SIGNIFICANT} in the paired randomisation test or in Wilcoxon's signed-rank test, both "
        "over the pooled queries and after Holm's correction over all pairs of the metric; every "
        "pair is in the CSV file. "
        f"{how_trained(methods)}{evidence.sources(first.runs, 'test sets')}"
    )
    return TableResult(data, Layout(_told(data), caption, MEANS.columns, sections))


def _pairs(methods: Mapping[str, Method], metric: str) -> pd.DataFrame:
    """One row per pair of methods, tested over the pooled queries."""
    values = dict(zip(methods, paired_values(methods.values(), metric), strict=True))
    rows = []
    for a, b in itertools.combinations(methods, 2):
        generator = numpy_stream("qin2010", "statistics", a, b, metric)
        flips = paired_randomisation(values[a], values[b], generator, RESAMPLES)
        ranks = wilcoxon(values[a], values[b])
        rows.append(
            {
                "method": a,
                "other": b,
                "difference": flips.difference,
                "effect_size": flips.effect,
                "queries": flips.n_a,
                "p_randomisation": flips.p_value,
                "p_wilcoxon": ranks.p_value,
            }
        )
    frame = pd.DataFrame(rows)
    for test in ("randomisation", "wilcoxon"):
        frame[f"holm_{test}"] = holm(frame[f"p_{test}"])
    return frame


def _pair_lines(frame: pd.DataFrame) -> list[list[str]]:
    """The pairs of a metric that either test tells apart, the largest difference first."""
    smallest = frame[["holm_randomisation", "holm_wilcoxon"]].min(axis=1)
    told = frame[smallest < SIGNIFICANT].sort_values("difference", key=lambda d: -d.abs())
    lines = []
    for row in told.itertuples():
        better, worse = (row.method, row.other) if row.difference > 0 else (row.other, row.method)
        tests = (p_value(row.holm_randomisation, 3), p_value(row.holm_wilcoxon, 3))
        lines.append([better, worse, difference(abs(row.difference)), *tests])
    return lines


def _told(data: pd.DataFrame) -> str:
    """How many pairs of all metrics the tests tell apart."""
    pairs = data[data["other"].notna()]
    told = pairs[["holm_randomisation", "holm_wilcoxon"]] < SIGNIFICANT
    return lead(
        f"{share(int(told.all(axis=1).sum()), len(pairs))} differences in {listed([*COMPARED])} "
        f"are significant in both tests, {int(told.any(axis=1).sum())} in either"
    )


BEYOND = MethodsTable(
    first="Method",
    metrics={heading: letor for heading, (letor, _) in TABLE4_METRICS.items()},
    csv=(
        *("edition", "dataset", "data", "method", "metric", "discount", *ESTIMATE),
        *("gain_over_approxndcg", "gain_half_width", "p_value", "p_holm"),
    ),
    measure=against_own("gain_over_approxndcg", own_first=False),
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
        f"linear {OWN} of the paper (paired randomisation test over the queries, p < "
        f"{SIGNIFICANT} after Holm's correction within the column; intervals are not corrected). "
        f"{how_trained(methods)}{evidence.sources(first.runs, 'test sets')}"
    )
    tested = letor["p_holm"].dropna()
    sure = int((tested < SIGNIFICANT).sum())
    start = lead(
        f"{share(sure, len(tested))} differences of later methods from {OWN} are significant"
    )
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
