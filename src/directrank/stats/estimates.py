"""A mean or a difference with its standard error, and tests against a bound or a range.

An estimate also answers questions that a test against zero cannot: whether a difference is smaller
than a margin (two one-sided tests, Schuirmann 1987), and whether it agrees with a claimed number.

Bruch2019 prints "95% confidence intervals" over 10 trials without the formula: we use Student's t,
since ten values do not determine s exactly. Intervals for other starts and other queries at once
are in :mod:`directrank.stats.two_way`, those of queries in groups in
:mod:`directrank.stats.clusters`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

#: Floating-point tolerance: a smaller difference is a tie.
TIE = 1e-9

Values = Sequence[float] | np.ndarray


@dataclass(frozen=True)
class Interval:
    """A mean with its two-sided confidence interval.

    Attributes:
        mean: arithmetic mean of the values.
        half_width: ``mean ± half_width`` is the interval; it is NaN for a single value, whose
            spread is unknown.
        n: number of values.
        level: confidence level, e.g. 0.95.
    """

    mean: float
    half_width: float
    n: int
    level: float

    @property
    def low(self) -> float:
        """Lower end of the interval."""
        return self.mean - self.half_width

    @property
    def high(self) -> float:
        """Upper end of the interval."""
        return self.mean + self.half_width


@dataclass(frozen=True)
class Estimate:
    """An estimated quantity whose error has a t distribution.

    Attributes:
        mean: the estimate.
        error: its standard error; 0 if it is exact, NaN if it is unknown.
        freedom: degrees of freedom of the error; infinite for a normal distribution.
        n: number of values, or the smaller number of two samples.
    """

    mean: float
    error: float
    freedom: float = math.inf
    n: int = 1

    def interval(self, level: float = 0.95) -> Interval:
        """The two-sided t interval.

        Raises:
            ValueError: the level is outside (0, 1).

        >>> of_mean([0.42, 0.44, 0.43]).interval().half_width.__round__(3)
        0.025
        """
        if not 0 < level < 1:
            raise ValueError(f"the level {level} is not between 0 and 1")
        wide = _quantile((1 + level) / 2, self.freedom) * self.error if self.error else self.error
        return Interval(self.mean, wide, self.n, level)

    def p_above(self, bound: float) -> float:
        """One-sided p value of the hypothesis that the quantity is at most ``bound``.

        It is NaN if the error is unknown. If the error is 0, it is 0 for an estimate more than
        :data:`TIE` above the bound, and 1 otherwise.
        """
        if math.isinf(bound):
            return 0.0 if bound < 0 else 1.0
        distance = self.mean - bound
        if self.error == 0:
            return float(distance <= TIE)
        return _survival(distance / self.error, self.freedom)

    def p_below(self, bound: float) -> float:
        """One-sided p value of the hypothesis that the quantity is at least ``bound``."""
        return Estimate(-self.mean, self.error, self.freedom, self.n).p_above(-bound)

    def p_differs(self, bound: float = 0.0) -> float:
        """Two-sided p value of the hypothesis that the quantity is ``bound``.

        >>> round(of_difference([0.42, 0.44, 0.43], [0.40, 0.41, 0.40]).p_differs(), 3)
        0.025
        """
        return float(np.minimum(1.0, 2 * np.minimum(self.p_above(bound), self.p_below(bound))))

    def p_within(self, low: float, high: float) -> float:
        """p value of two one-sided tests: the hypothesis is that the quantity is not in the range.

        It is the larger of the two, so no correction for making both is needed. A value below 5 %
        means that the 90 % interval lies within the range. If the error is 0, it is 0 for an
        estimate within the range, including its ends, and 1 otherwise.

        Args:
            low, high: ends of the range; one may be infinite.

        >>> round(of_mean([0.001, -0.002, 0.003, 0.0]).p_within(-0.01, 0.01), 4)
        0.0014
        """
        if self.error == 0:
            return float(not low - TIE <= self.mean <= high + TIE)
        return float(np.maximum(self.p_above(low), self.p_below(high)))


def of_mean(values: Values) -> Estimate:
    """The mean of independent values, with the error ``s / √n``; NaN for a single value.

    For values of two methods on the same queries, pass their differences.

    Raises:
        ValueError: there are no values, or a value is not finite.
    """
    values = _finite(values)
    n = len(values)
    error = float(values.std(ddof=1)) / math.sqrt(n) if n > 1 else math.nan
    return Estimate(float(values.mean()), error, max(n - 1, 1), n)


def mean_interval(values: Values, level: float = 0.95) -> Interval:
    """Student's t interval, ``mean ± t_{(1+level)/2, n-1} · s / √n`` (used for trials).

    Args:
        values: ``[n]``, independent repetitions such as one mean per trial.
        level: confidence level in (0, 1).

    Raises:
        ValueError: as :func:`of_mean`, or the level is outside (0, 1).

    >>> interval = mean_interval([0.42, 0.44, 0.43])
    >>> f"{interval.mean:.3f} ± {interval.half_width:.3f}"
    '0.430 ± 0.025'
    """
    return of_mean(values).interval(level)


def of_difference(a: Values, b: Values) -> Estimate:
    """Mean of a minus mean of b, two independent samples with unequal variances (Welch).

    The error is NaN if either sample is a single value.

    Raises:
        ValueError: as :func:`of_mean`.
    """
    of_a, of_b = of_mean(a), of_mean(b)
    variances = np.array([of_a.error**2, of_b.error**2])
    error, freedom = float(np.sqrt(variances.sum())), 1.0
    if error > 0:
        # Satterthwaite's degrees of freedom, as in Welch's test.
        parts = variances**2 / np.array([of_a.freedom, of_b.freedom])
        freedom = float(variances.sum() ** 2 / parts.sum())
    return Estimate(of_a.mean - of_b.mean, error, freedom, min(of_a.n, of_b.n))


def of_row(row: Any) -> Estimate:
    """The difference in a row, a named tuple, of
    :meth:`directrank.stats.two_way.Crossed.differences`."""
    return Estimate(row.difference, row.error, row.freedom)


def of_ratio(a: Values, b: Values) -> Estimate:
    """The ratio of a to b by geometric means of positive values such as times.

    The error is that of the difference of logarithms, times the ratio (the delta method).

    Raises:
        ValueError: as :func:`of_mean`, or a value that is not positive.

    >>> round(of_ratio([10.0, 10.4], [2.0, 2.0]).mean, 2)
    5.1
    """
    a, b = _finite(a), _finite(b)
    if min(a.min(), b.min()) <= 0:
        raise ValueError("a ratio of geometric means needs positive values")
    logarithms = of_difference(np.log(a), np.log(b))
    ratio = math.exp(logarithms.mean)
    return Estimate(ratio, ratio * logarithms.error, logarithms.freedom, logarithms.n)


def of_paired_ratio(a: Values, b: Values) -> Estimate:
    """Mean of a divided by mean of b, where values at the same position belong together.

    The error is that of a linearised ratio (the delta method): of ``(a - r b) / b̄``.

    Raises:
        ValueError: as :func:`of_mean`, values of different number, or a mean of b that is not
            positive.

    >>> round(of_paired_ratio([0.6, 0.5], [0.5, 0.4]).mean, 3)
    1.222
    """
    a, b = _finite(a), _finite(b)
    if len(a) != len(b) or b.mean() <= 0:
        raise ValueError("a ratio of means needs pairs, and a denominator above zero")
    ratio = float(a.mean() / b.mean())
    residual = of_mean((a - ratio * b) / b.mean())
    return Estimate(ratio, residual.error, residual.freedom, residual.n)


# SciPy's distributions give the same numbers, and take forty times as long for a single one.
def _quantile(probability: float, freedom: float) -> float:
    if math.isinf(freedom):
        return float(scipy.special.ndtri(probability))
    return float(scipy.special.stdtrit(freedom, probability))


def _survival(statistic: float, freedom: float) -> float:
    if math.isinf(freedom):
        return float(scipy.special.ndtr(-statistic))
    return float(scipy.special.stdtr(freedom, -statistic))


def _finite(values: Values) -> np.ndarray:
    values = np.asarray(values, dtype=np.float64)
    if values.ndim != 1 or not len(values):
        raise ValueError("an estimate needs a list of at least one value")
    if not np.isfinite(values).all():
        raise ValueError("an estimate needs finite values: leave queries without a value out first")
    return values
