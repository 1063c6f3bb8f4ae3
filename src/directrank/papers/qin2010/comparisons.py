"""Names, metrics, comparisons and captions that Qin2010's tables of methods share."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import pandas as pd

from directrank.papers.shared.evidence import Evidence
from directrank.papers.shared.methods import (
    Method,
    Paired,
    by_method,
    paired_groups,
    paired_test,
    paired_values,
)
from directrank.papers.shared.methods_table import Measure, MethodsTable, Row
from directrank.stats.intervals import mean_interval
from directrank.stats.tests import holm

OWN = "ApproxNDCG"

#: The same algorithm with smaller random weights, whose distribution the paper leaves open.
SMALL_START = "ApproxNDCG (small start)"

AP = "ap"

#: Column heading → (metric with LETOR's discount, metric with the printed discount).
TABLE4_METRICS = {
    "NDCG@1": ("ndcg@1/letor", "ndcg@1"),
    "NDCG@3": ("ndcg@3/letor", "ndcg@3"),
    "NDCG@5": ("ndcg@5/letor", "ndcg@5"),
    "NDCG@10": ("ndcg@10/letor", "ndcg@10"),
    "NDCG@n": ("ndcg/letor", "ndcg"),
}
DISCOUNTS = {
    "letor": "LETOR's discount (1, 1, 1/log2 3, 1/log2 4, …)",
    "log2": "the printed discount, 1/log2(1 + rank)",
}

#: Names in the file of baselines that differ from those in the paper's table.
LETOR_NAMES = {
    "Ranking SVM": "RankSVM",
    "AdaRank.MAP": "AdaRank-MAP",
    "AdaRank.NDCG": "AdaRank-NDCG",
}

SIGNIFICANT = 0.05

#: The columns of :func:`estimates`, in the order of the CSV files.
ESTIMATE = ("mean", "half_width", "half_width_over_trials", "trials", "folds", "queries")


def methods_of(
    evidence: Evidence, *experiments: str, order: Sequence[str] = ()
) -> dict[str, Method]:
    """The methods of several experiments, those of ``order`` first; empty queries count as zero."""
    runs = [run for experiment in experiments for run in evidence.runs(experiment)]
    return by_method(runs, "zero", order=order)


def table4_order(evidence: Evidence) -> list[str]:
    """The methods in the order of the paper's Table 4."""
    return list(evidence.published("qin2010_table4")["Algorithm"])


def compare(a: Method, b: Method, metric: str) -> Paired:
    """Compare ``a`` with ``b`` in ``metric``, paired by query over the test sets of all folds.

    Raises:
        DataError: the two were not evaluated on the same queries.
    """
    of_a, of_b = paired_values([a, b], metric)
    stream = ("qin2010", "table4", a.name, b.name, metric)
    return paired_test(of_a, of_b, stream, groups=paired_groups([a, b], of_a))


def letor_value(evidence: Evidence, dataset: str, method: str, metric: str) -> float:
    """The mean of five folds on the site of LETOR 3.0, to four decimals; NaN if it is lost."""
    site = evidence.published("letor3_baselines")
    rows = site[
        (site["dataset"] == dataset)
        & (site["algorithm"] == LETOR_NAMES.get(method, method))
        & (site["metric"] == metric)
        & (site["rounding"] == "4 decimals")
    ]
    return float(rows["value"].iloc[0]) if len(rows) else math.nan


def folds_mean(method: Method) -> str:
    """A phrase that defines the mean in a table of methods."""
    folds = len(method.runs)
    return f"mean of the {folds} fold means" if folds > 1 else "mean of the queries of one split"


def scale_caption(methods: Mapping[str, Method]) -> str:
    """The part of a caption that defines the means and intervals of a table of methods."""
    first = next(iter(methods.values()))
    return (
        f"{folds_mean(first)}, ± the half width of the 95% t interval over the "
        f"{len(first.query_values(AP))} test queries; queries "
        "without a relevant document count as 0."
    )


def estimates(methods: Mapping[str, Method], metric: str) -> dict[str, Row]:
    """The mean of the fold means, averaged over trials, with its intervals and sample sizes."""
    rows = {}
    for name, method in methods.items():
        over_trials = mean_interval(method.trial_means(metric))
        over_queries = mean_interval(method.query_values(metric))
        rows[name] = {
            "mean": over_trials.mean,
            "half_width": over_queries.half_width,
            "half_width_over_trials": over_trials.half_width,
            "trials": over_trials.n,
            "folds": len(method.runs),
            "queries": over_queries.n,
        }
    return rows


def against_own(gain: str, *, own_first: bool) -> Measure:
    """What is measured of methods that are tested against :data:`OWN`, if that was run.

    Args:
        gain: the column of the difference, which has the columns ``gain_half_width``, ``p_value``
            and ``p_holm`` beside it; the latter gives the asterisk.
        own_first: whether the difference is that of OWN from a method, or the reverse.
    """

    def measure(methods: Mapping[str, Method], metric: str) -> dict[str, Row]:
        rows = estimates(methods, metric)
        others = [name for name in methods if name != OWN and OWN in methods]
        for name in others:
            first, second = (OWN, name) if own_first else (name, OWN)
            paired = compare(methods[first], methods[second], metric)
            rows[name] |= {
                gain: paired.difference.mean,
                "gain_half_width": paired.difference.half_width,
                "p_value": paired.p_value,
            }
        corrected = holm([rows[name]["p_value"] for name in others]) if others else ()
        for name, p_holm in zip(others, corrected, strict=True):
            rows[name] |= {"p_holm": p_holm, "star": p_holm < SIGNIFICANT}
        return rows

    return measure


def with_both_discounts(
    table: MethodsTable,
    evidence: Evidence,
    methods: Mapping[str, Method],
    published: Callable[[str], pd.DataFrame | None] = lambda discount: None,
) -> pd.DataFrame:
    """The rows of a table in :data:`TABLE4_METRICS`, those of a metric together.

    ``published`` gives the printed values that stand beside a discount.
    """
    frames = []
    for number, discount in enumerate(DISCOUNTS):
        metrics = {heading: pair[number] for heading, pair in TABLE4_METRICS.items()}
        own = replace(table, metrics=metrics)
        frames.append(own.rows(evidence, methods, published(discount), discount=discount))
    data = pd.concat(frames, ignore_index=True)
    order = {heading: place for place, heading in enumerate(TABLE4_METRICS)}
    return data.sort_values(
        "metric", key=lambda column: column.map(order), kind="stable", ignore_index=True
    )
