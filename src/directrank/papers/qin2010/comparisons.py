"""Names, metrics, comparisons and captions that Qin2010's tables of methods share."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import pandas as pd

from directrank.papers.shared.evidence import Evidence
from directrank.papers.shared.methods import (
    Method,
    by_method,
    compared,
    how_tested,
    interval_of_means,
    mean_estimate,
)
from directrank.papers.shared.methods_table import Measure, MethodsTable, Row
from directrank.stats.decisions import SIGNIFICANT
from directrank.stats.estimates import mean_interval
from directrank.stats.tests import holm_of_known

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


def letor_value(evidence: Evidence, method: str, metric: str) -> float:
    """The mean of OHSUMED's folds on the site of LETOR 3.0, to four decimals; NaN if it is lost."""
    site = evidence.published("letor3_baselines")
    rows = site[
        (site["dataset"] == "OHSUMED")
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
        f"{folds_mean(first)} over {len(first.query_groups())} test queries, "
        f"± {interval_of_means([*methods.values()])}; queries without a relevant document count "
        "as 0."
    )


def significant(methods: Mapping[str, Method], family: str = "within the column") -> str:
    """A phrase that says when two methods differ, and among how many tests."""
    return (
        f"{how_tested([*methods.values()])}; p < {SIGNIFICANT} after Holm's correction {family}, "
        "while intervals are not corrected"
    )


def estimates(methods: Mapping[str, Method], metric: str) -> dict[str, Row]:
    """The mean of the fold means, averaged over trials, with its intervals and sample sizes.

    The interval holds for other queries, or groups of related ones, and for other trainings, if
    there are several; that over trials for other trainings only.
    """
    rows = {}
    for name, method in methods.items():
        estimate = mean_estimate(method, metric)
        over_trials = mean_interval(method.trial_means(metric))
        rows[name] = {
            "mean": over_trials.mean,
            "half_width": estimate.interval().half_width,
            "half_width_over_trials": over_trials.half_width,
            "trials": over_trials.n,
            "folds": len(method.runs),
            "queries": estimate.n,
        }
    return rows


def against_own(gain: str, half_width: str, *, own_first: bool) -> Measure:
    """What is measured of methods that are tested against :data:`OWN`, if that was run.

    Args:
        gain: the column of the difference, which has ``p_value`` and ``p_holm`` beside it; the
            latter gives the asterisk.
        half_width: the column of half the width of its interval.
        own_first: whether the difference is that of OWN from a method, or the reverse.
    """

    def measure(methods: Mapping[str, Method], metric: str) -> dict[str, Row]:
        rows = estimates(methods, metric)
        others = [name for name in methods if name != OWN and OWN in methods]
        for name in others:
            first, second = (OWN, name) if own_first else (name, OWN)
            difference = compared(methods[first], methods[second], metric)
            rows[name] |= {
                gain: difference.mean,
                half_width: difference.interval().half_width,
                "p_value": difference.p_differs(),
            }
        # A difference whose error is unknown is not tested.
        corrected = holm_of_known([rows[name]["p_value"] for name in others])
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
