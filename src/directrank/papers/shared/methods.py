"""What Qin2010's tables of methods share: a method's runs over the folds, and comparing two."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from directrank.papers.shared.evidence import Empty, Evidence, PlannedRun
from directrank.stats.intervals import mean_interval
from directrank.stats.means import mean_of_fold_means
from directrank.stats.tests import paired_randomisation
from directrank.system.errors import DataError
from directrank.system.seeds import numpy_stream

OWN = "ApproxNDCG"

#: The same algorithm from smaller random weights: the paper leaves their distribution open.
SMALL_START = "ApproxNDCG (small start)"

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

#: Names of the baselines file where they are not those of the paper's table.
LETOR_NAMES = {
    "Ranking SVM": "RankSVM",
    "AdaRank.MAP": "AdaRank-MAP",
    "AdaRank.NDCG": "AdaRank-NDCG",
}

#: Gains in NDCG@1 that the paper's text gives (section 5.4): method → at least.
NDCG1_GAINS = {"Ranking SVM": 0.08, "AdaRank.NDCG": 0.04, "SoftRank": 0.04}

#: Gains are printed to two decimals.
ROUNDING = 0.005

SIGNIFICANT = 0.05


@dataclass(frozen=True)
class Folds:
    """The runs of one method, one per fold."""

    method: str
    runs: Sequence[PlannedRun]

    def trial_means(self, metric: str, empty: Empty = "zero") -> np.ndarray:
        """The mean of the folds' test means, one per trial: ``[trials]``."""
        means = mean_of_fold_means([run.result.per_query for run in self.runs], metric, empty)
        return means.loc[means["split"] == "test", "value"].to_numpy()

    def pooled(self, metric: str) -> pd.Series:
        """The value of every test query of all folds, averaged over trials; by query id."""
        return pd.concat([run.query_values("test", metric, "zero") for run in self.runs])


def methods_by_fold(runs: Sequence[PlannedRun], order: Sequence[str]) -> dict[str, Folds]:
    """The methods of an experiment, those of ``order`` first and the others as they come.

    Raises:
        DataError: a method that lacks a fold which another has, or has one twice.
    """
    grouped: dict[str, dict[int, PlannedRun]] = {}
    for run in runs:
        folds = grouped.setdefault(run.setting("method"), {})
        if run.setting("fold") in folds:
            raise DataError(
                f"'{run.setting('method')}' has fold {run.setting('fold')} twice",
                "give each run of the experiment its own method and fold",
            )
        folds[run.setting("fold")] = run
    every = sorted({fold for folds in grouped.values() for fold in folds})
    for method, folds in grouped.items():
        if sorted(folds) != every:
            raise DataError(
                f"'{method}' was run on the folds {sorted(folds)}, others on {every}",
                "run every method on the same folds",
            )
    names = [*(m for m in order if m in grouped), *(m for m in grouped if m not in order)]
    return {name: Folds(name, [grouped[name][fold] for fold in every]) for name in names}


@dataclass(frozen=True)
class Paired:
    """One method against ApproxNDCG on the same queries; positive where ApproxNDCG is better.

    Attributes:
        difference: mean over the pooled queries.
        half_width: of its 95 % t interval.
        p_value: of the paired randomisation test.
        queries: number of pairs.
    """

    difference: float
    half_width: float
    p_value: float
    queries: int


def compare(own: Folds, other: Folds, metric: str) -> Paired:
    """ApproxNDCG against ``other`` in ``metric``, paired by query over all folds' test parts.

    Raises:
        DataError: the two were not evaluated on the same queries.
    """
    stream = ("qin2010", "table4", own.method, other.method, metric)
    return compare_values(own.pooled(metric), other.pooled(metric), stream)


def compare_values(a: pd.Series, b: pd.Series, stream: tuple[str, ...]) -> Paired:
    """``a`` against ``b``, values by query id.

    Args:
        a, b: the values.
        stream: names the random stream of the test: paper, what is compared, the methods.

    Raises:
        DataError: the two are not of the same queries.
    """
    if not a.index.equals(b.index):
        raise DataError(
            f"methods were not evaluated on the same queries ({', '.join(stream)})",
            "train both on the same prepared data",
        )
    interval = mean_interval(a.to_numpy() - b.to_numpy())
    test = paired_randomisation(a, b, numpy_stream(*stream))
    return Paired(interval.mean, interval.half_width, test.p_value, interval.n)


def letor_value(evidence: Evidence, dataset: str, method: str, metric: str) -> float:
    """The mean of five folds on the site of LETOR 3.0, to four decimals; NaN where it is lost."""
    site = evidence.published("letor3_baselines")
    found = site[
        (site["dataset"] == dataset)
        & (site["algorithm"] == LETOR_NAMES.get(method, method))
        & (site["metric"] == metric)
        & (site["rounding"] == "4 decimals")
    ]
    return float(found["value"].iloc[0]) if len(found) else math.nan


def scale_caption(methods: Mapping[str, Folds], metric: str) -> str:
    """What the intervals of a table of methods are, and on which data they stand."""
    first = next(iter(methods.values()))
    queries, folds = len(first.pooled(metric)), len(first.runs)
    mean = f"mean of the {folds} fold means" if folds > 1 else "mean of the queries of one split"
    return (
        f"{mean}, ± the half width of the 95% t interval over the {queries} test queries; queries "
        "without a relevant document count as 0."
    )


def standin_note(run: PlannedRun) -> list[str]:
    """A paragraph that warns of generated data, where they are."""
    if not run.dataset.standin:
        return []
    return [
        f"The {run.dataset.title} is generated data: no number here can be compared with "
        "the paper's, and what follows is about the generated data only."
    ]


def estimate(folds: Folds, metric: str) -> dict[str, float]:
    """The mean of the fold means, averaged over trials, with its intervals and what they count."""
    over_trials = mean_interval(folds.trial_means(metric))
    over_queries = mean_interval(folds.pooled(metric))
    return {
        "mean": over_trials.mean,
        "half_width": over_queries.half_width,
        "half_width_over_trials": over_trials.half_width,
        "trials": over_trials.n,
        "folds": len(folds.runs),
        "queries": over_queries.n,
    }


def is_standin(data: pd.DataFrame) -> bool:
    return bool((data["data"] == "stand-in").any())


def signed(value: float, digits: int = 4) -> str:
    return f"{value:+.{digits}f}".replace("-", "−")


def listed(names: Sequence[str]) -> str:
    names = list(names)
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
