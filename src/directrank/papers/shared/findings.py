"""The findings about a claim: comparisons, what the claim says about each, and their tests."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from directrank.papers.shared.evidence import Dataset
from directrank.papers.shared.format import count, minus, spread
from directrank.papers.shared.methods import Method, compared
from directrank.stats.estimates import TIE, Estimate, of_difference, of_mean
from directrank.stats.tests import paired_randomisation

Kind = Literal["more", "same", "not more", "value"]


@dataclass(frozen=True)
class Claimed:
    """What a claim says about an effect.

    Attributes:
        kind: ``more``: above zero. ``same``: no larger than the edition's margin either way.
            ``not more``: not above zero by more than the margin. ``value``: in a range.
        low, high: the ends of that range, which includes the rounding or tolerance of a printed
            number; one may be infinite.
    """

    kind: Kind
    low: float = -math.inf
    high: float = math.inf

    def bounds(self, margin: float) -> tuple[float, float]:
        """The range in which the effect is claimed to lie.

        Args:
            margin: the margin of equivalence, in the unit of the effect.
        """
        if self.kind == "more":
            return 0.0, math.inf
        if self.kind == "same":
            return -margin, margin
        if self.kind == "not more":
            return -math.inf, margin
        return self.low, self.high

    def words(self, margin: float) -> str:
        """The claim in words, for a table; the argument is that of :meth:`bounds`."""
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
    """An effect in one sample, with its test.

    Attributes:
        test: its name.
        sample: its size, e.g. ``106 queries of 5 folds``.
        estimate: the effect with its error.
        p_value: two-sided, of the hypothesis of no effect; NaN if the sample allows no test.
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
        claimed: what the claim says about the effect.
        dataset: where it was measured.
        unit: e.g. ``NDCG (%)``.
        measurement: the effect, and its test.
        scale: the factor from the metric to ``unit``: 100 for per cent.
        timed: whether it is about measured times.
    """

    comparison: str
    claimed: Claimed
    dataset: Dataset
    unit: str
    measurement: Measurement
    scale: float = 1.0
    timed: bool = False

    @property
    def effect(self) -> float:
        """The effect, in ``unit``."""
        return self.measurement.estimate.mean

    @property
    def half_width(self) -> float:
        """Half the width of the 95 % interval; NaN if there is none."""
        return self.measurement.estimate.interval().half_width

    @property
    def p_value(self) -> float:
        """The p value of no effect, or NaN if there is none."""
        return self.measurement.p_value

    def p_differs(self, bound: float) -> float:
        """As :attr:`p_value`, of the hypothesis that the effect is ``bound``, by a t test."""
        return self.p_value if abs(bound) <= TIE else self.measurement.estimate.p_differs(bound)

    def p_within(self, low: float, high: float) -> float:
        """The p value of an effect outside a range, by two one-sided t tests."""
        return self.measurement.estimate.p_within(low, high)


@dataclass(frozen=True)
class Outcome:
    """The outcome of measuring one claim.

    Attributes:
        findings: empty if nothing of it was run.
        missing: the parts of the claim that were not run, in words; if there are any, it cannot
            hold.
        remark: anything else that a reader must know.
    """

    findings: Sequence[Finding]
    missing: Sequence[str] = ()
    remark: str = ""


def welch_over_trials(a: np.ndarray, b: np.ndarray) -> Measurement:
    """Mean of a minus mean of b over independent trials, by Welch's test.

    There is no p value if either side is a single trial.
    """
    estimate = of_difference(a, b)
    sample = f"{len(a)} against {len(b)} trials"
    return Measurement("Welch's t test over trials", sample, estimate, estimate.p_differs())


def paired(
    a: np.ndarray, b: np.ndarray, sample: str, stream: np.random.Generator, resamples: int = 100_000
) -> Measurement:
    """The mean of a − b, where values at the same position belong together.

    Args:
        a, b: independent pairs of values that nothing was trained for.
        sample: what they are.
        stream: of the randomisation test.
        resamples: sign patterns that it draws.
    """
    a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    test = paired_randomisation(a, b, stream, resamples)
    return Measurement("paired randomisation test", sample, of_mean(a - b), test.p_value)


def mean_of(values: np.ndarray, sample: str, what: str) -> Measurement:
    """The mean of independent values, by a t test against zero.

    Args:
        values: ``[n]``; a single value has no p value.
        sample: what they are.
        what: what is tested, e.g. ``t test over random starts``.
    """
    estimate = of_mean(values)
    return Measurement(what, sample, estimate, estimate.p_differs())


def computed(effect: float, sample: str) -> Measurement:
    """An effect computed exactly, without chance: its p value is 0, or 1 if it is zero."""
    estimate = Estimate(effect, 0.0)
    return Measurement("computed exactly", sample, estimate, estimate.p_differs())


def generalised(estimate: Estimate, queries: str, trainings: Sequence[int]) -> Measurement:
    """A difference for other queries and other trainings: the study's standard of evidence.

    Args:
        estimate: see :mod:`directrank.stats.two_way`; its error is NaN if nothing is known of other
            trainings, and then there is no p value.
        queries: on how many it rests, in words.
        trainings: of each method.
    """
    sample = f"{queries}, {spread(trainings, 'training')} each"
    name = "t test for other queries and other trainings"
    return Measurement(name, sample, estimate, estimate.p_differs())


def over_queries_and_trainings(
    a: Method,
    b: Method,
    metric: str,
    split: str = "test",
    scale: float = 1.0,
    less: str | None = None,
) -> Measurement:
    """One method minus another, for other queries and other trainings.

    Args:
        a, b, metric, split, less: see :func:`directrank.papers.shared.methods.compared`.
        scale: 100 for per cent.

    Raises:
        DataError: the methods were not evaluated on the same queries.
    """
    estimate = compared(a, b, metric, split, less)
    scaled = replace(estimate, mean=scale * estimate.mean, error=scale * estimate.error)
    folds = f" of {len(a.runs)} folds" if len(a.runs) > 1 else ""
    groups = len(a.query_groups(split).unique())
    grouped = f" in {count(groups)} groups" if groups < len(a.query_groups(split)) else ""
    queries = f"{estimate.n} queries{folds}{grouped}"
    return generalised(scaled, queries, [a.n_trials, b.n_trials])


def difference(
    a: Method,
    b: Method,
    metric: str,
    heading: str,
    claimed: Claimed,
    unit: str,
    split: str = "test",
) -> Finding:
    """A finding about one method minus another, for other queries and other trainings.

    Args:
        a, b, metric, split: see :func:`over_queries_and_trainings`, also for what is raised.
        heading: the metric in print.
        claimed: what is claimed about the difference.
        unit: that of the metric; ``(%)`` at its end makes it per cent.
    """
    scale = 100.0 if unit.endswith("(%)") else 1.0
    test = over_queries_and_trainings(a, b, metric, split, scale)
    return Finding(f"{a.label} − {b.label}, {heading}", claimed, a.dataset, unit, test, scale)
