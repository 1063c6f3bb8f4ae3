"""Names, metrics, comparisons and captions that Qin2010's tables of methods share."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from directrank.papers.shared.evidence import Evidence
from directrank.papers.shared.methods import (
    Method,
    Paired,
    by_method,
    paired_groups,
    paired_test,
    paired_values,
)
from directrank.stats.intervals import mean_interval

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

#: Columns of counts.
COUNTS = {"trials": "Int64", "folds": "Int64", "queries": "Int64"}


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


def estimate(method: Method, metric: str) -> dict[str, float]:
    """The mean of the fold means, averaged over trials, with its intervals and sample sizes."""
    over_trials = mean_interval(method.trial_means(metric))
    over_queries = mean_interval(method.query_values(metric))
    return {
        "mean": over_trials.mean,
        "half_width": over_queries.half_width,
        "half_width_over_trials": over_trials.half_width,
        "trials": over_trials.n,
        "folds": len(method.runs),
        "queries": over_queries.n,
    }
