"""What measuring a claim finds: comparisons, what the claim says of each, and their tests."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from directrank.papers.shared.evidence import Dataset
from directrank.papers.shared.format import minus
from directrank.papers.shared.methods import Method, paired_groups, paired_values
from directrank.stats.clusters import clustered_mean, flips_by_group
from directrank.stats.estimates import TIE, Estimate, of_difference, of_mean
from directrank.stats.tests import paired_randomisation, welch, wilcoxon

Kind = Literal["more", "same", "not more", "value"]


@dataclass(frozen=True)
class Claimed:
    """What a claim says of an effect.

    Attributes:
        kind: ``more``: above zero. ``same``: no larger than the edition's margin either way.
            ``not more``: not above zero by more than the margin. ``value``: in a range.
        low, high: ends of that range, the rounding or tolerance of a printed number included; one
            may be infinite.
    """

    kind: Kind
    low: float = -math.inf
    high: float = math.inf

    def bounds(self, margin: float) -> tuple[float, float]:
        """The range that the effect is claimed to lie in.

        Args:
            margin: of equivalence, in the unit of the effect.
        """
        if self.kind == "more":
            return 0.0, math.inf
        if self.kind == "same":
            return -margin, margin
        if self.kind == "not more":
            return -math.inf, margin
        return self.low, self.high

    def words(self, margin: float) -> str:
        """What is claimed, for a table; arguments as for :meth:`bounds`."""
        low, high = self.bounds(margin)
        if self.kind == "more":
            return "above 0"
        if self.kind == "same":
            return f"equivalent, within ±{margin:g}"
        if math.isinf(high):
            return minus(f"at least {low:g}")
        if math.isinf(low):
            return minus(f"at most {high:g}")
        return f"{low:g}" if low == high else minus(f"{low:g} to {high:g}")


MORE, SAME, NOT_MORE = Claimed("more"), Claimed("same"), Claimed("not more")


def value(low: float = -math.inf, high: float = math.inf) -> Claimed:
    """A number that a paper prints, as the range that its rounding or a stated tolerance allows."""
    return Claimed("value", low, high)


@dataclass(frozen=True)
class Measurement:
    """An effect as one sample has it, with its test.

    Attributes:
        test: its name.
        sample: what it counts, e.g. ``106 queries of 5 folds``.
        estimate: the effect with its error.
        p_value: two-sided, that there is no effect; NaN where the sample allows no test.
    """

    test: str
    sample: str
    estimate: Estimate
    p_value: float


@dataclass(frozen=True)
class Finding:
    """One comparison that a claim makes.

    Attributes:
        comparison: what is compared, e.g. ``ApproxNDCG − RankNet, NDCG@5``; the effect is the
            first minus the second.
        claimed: what the claim says of the effect.
        dataset: where it was measured.
        unit: e.g. ``NDCG (%)``.
        measurements: at least one. The first gives the effect; all of them must agree, so that of
            several p values the largest counts, and of several intervals the widest.
        scale: what 1 of the metric is in ``unit``: 100 for per cent.
        timed: whether it is about measured times.
    """

    comparison: str
    claimed: Claimed
    dataset: Dataset
    unit: str
    measurements: Sequence[Measurement]
    scale: float = 1.0
    timed: bool = False

    @property
    def effect(self) -> float:
        """The effect, in ``unit``."""
        return self.measurements[0].estimate.mean

    @property
    def half_width(self) -> float:
        """Half the width of the widest of the 95 % intervals; NaN where one has none."""
        return float(np.max([one.estimate.interval().half_width for one in self.measurements]))

    @property
    def p_value(self) -> float:
        """That there is no effect: the largest of their p values, NaN where one has none.

        1 where measurements find effects of different sign.
        """
        largest = float(np.max([one.p_value for one in self.measurements]))
        return 1.0 if self._split(0.0) and not math.isnan(largest) else largest

    def p_differs(self, bound: float) -> float:
        """As :attr:`p_value`, that the effect is ``bound``, by t tests."""
        if abs(bound) <= TIE:
            return self.p_value
        largest = float(np.max([one.estimate.p_differs(bound) for one in self.measurements]))
        return 1.0 if self._split(bound) and not math.isnan(largest) else largest

    def p_within(self, low: float, high: float) -> float:
        """That the effect is not within a range: the largest p of two one-sided t tests each."""
        return float(np.max([one.estimate.p_within(low, high) for one in self.measurements]))

    def _split(self, bound: float) -> bool:
        """Whether measurements lie on both sides of ``bound``."""
        sides = {np.sign(one.estimate.mean - bound) for one in self.measurements}
        return len(sides - {0.0}) > 1


@dataclass(frozen=True)
class Outcome:
    """The outcome of measuring one claim.

    Attributes:
        findings: none where nothing of it was run.
        missing: parts of the claim that were not run, in words; then it cannot hold.
        remark: anything else that a reader must know.
    """

    findings: Sequence[Finding]
    missing: Sequence[str] = ()
    remark: str = ""


def welch_over_trials(a: np.ndarray, b: np.ndarray) -> Measurement:
    """Mean of a minus mean of b over independent trials, by Welch's test.

    There is no p value where either side is a single trial.
    """
    p_value = welch(a, b).p_value if min(len(a), len(b)) > 1 else math.nan
    sample = f"{len(a)} against {len(b)} trials"
    return Measurement("Welch's t test over trials", sample, of_difference(a, b), p_value)


def over_queries(
    a: Method,
    b: Method,
    metric: str,
    stream: np.random.Generator | None,
    split: str = "test",
    scale: float = 1.0,
) -> Measurement:
    """One method minus another, paired over the queries of all folds.

    Args:
        a, b: the methods.
        metric: column of the results.
        stream: of the randomisation test; None for Wilcoxon's signed-rank test in its place.
        split: where they are compared.
        scale: 100 for per cent.

    Raises:
        DataError: the methods were not evaluated on the same queries.
    """
    of_a, of_b = (scale * values for values in paired_values([a, b], metric, split))
    groups = paired_groups([a, b], of_a, split)
    folds = f" of {len(a.runs)} folds" if len(a.runs) > 1 else ""
    return paired(of_a, of_b, f"{len(of_a)} queries{folds}", stream, groups=groups)


def paired(
    a: np.ndarray,
    b: np.ndarray | float,
    sample: str,
    stream: np.random.Generator | None = None,
    resamples: int = 100_000,
    groups: np.ndarray | None = None,
) -> Measurement:
    """The mean of a − b, values that belong together by their order.

    Where queries form groups, signs are flipped group by group, and errors are those of groups.

    Args:
        a, b: the values; see :func:`directrank.papers.shared.methods.paired_values`.
        sample: what they are.
        stream: of the randomisation test; None for Wilcoxon's signed-rank test in its place.
        resamples: sign patterns that the randomisation test draws.
        groups: of the values; None where they are independent. In the place of Wilcoxon's test,
            which takes values as independent, there is a t test then.
    """
    a, b = np.asarray(a, dtype=float), np.broadcast_to(b, np.shape(a))
    if groups is not None:
        return _paired_by_group(a - b, groups, sample, stream, resamples)
    if stream is not None:
        test = paired_randomisation(a, b, stream, resamples)
        return Measurement("paired randomisation test", sample, of_mean(a - b), test.p_value)
    test = wilcoxon(a, b)
    # It is of ranks: a mean on the other side than most of the ranks is no effect that it shows.
    p_value = 1.0 if test.effect * test.difference < 0 else test.p_value
    name = "Wilcoxon's signed-rank test, paired by query"
    return Measurement(name, sample, of_mean(a - b), p_value)


def _paired_by_group(
    differences: np.ndarray,
    groups: np.ndarray,
    sample: str,
    stream: np.random.Generator | None,
    resamples: int,
) -> Measurement:
    """:func:`paired` of values that are independent by group alone."""
    estimate = clustered_mean(differences, groups)
    sample = f"{sample} in {len(np.unique(groups))} groups"
    if stream is None:
        return Measurement("t test, errors by group", sample, estimate, estimate.p_differs())
    p_value = flips_by_group(differences, groups, stream, resamples)
    return Measurement("paired randomisation test by group", sample, estimate, p_value)


def mean_of(values: np.ndarray, sample: str, what: str) -> Measurement:
    """The mean of independent values, by a t test against zero.

    Args:
        values: ``[n]``; of a single one there is no p value.
        sample: what they are.
        what: what is tested, e.g. ``t test over random starts``.
    """
    estimate = of_mean(values)
    return Measurement(what, sample, estimate, estimate.p_differs())


def computed(effect: float, sample: str) -> Measurement:
    """Something computed exactly, so that no chance is in it: its p value is 0, or 1 for zero."""
    estimate = Estimate(effect, 0.0)
    return Measurement(
        "computed, nothing is left to chance", sample, estimate, estimate.p_differs()
    )


def over_trials_and_queries(
    a: Method,
    b: Method,
    metric: str,
    stream: np.random.Generator,
    split: str = "test",
    *,
    heading: str,
    claimed: Claimed,
) -> Finding:
    """One method minus another, in per cent, by two tests that must agree.

    A difference counts if other random starts would show it as well (Welch's test over trials) and
    other queries too (randomisation test, paired by query).

    Args:
        a, b: the methods.
        metric: column of the results.
        stream: of the randomisation test.
        split: where they are compared.
        heading: the metric in print.
        claimed: what is claimed of the difference.

    Raises:
        DataError: the methods were not evaluated on the same queries.
    """
    trials = welch_over_trials(*(100 * method.trial_means(metric, split) for method in (a, b)))
    return Finding(
        comparison=f"{a.label} − {b.label}, {heading}",
        claimed=claimed,
        dataset=a.dataset,
        unit="NDCG (%)",
        measurements=(trials, over_queries(a, b, metric, stream, split, 100)),
        scale=100,
    )
