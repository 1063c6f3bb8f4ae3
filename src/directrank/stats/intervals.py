"""Confidence intervals of a mean.

Bruch2019 prints "95% confidence intervals" over 10 trials without the formula: we use Student's t,
since ten values do not determine s exactly. Intervals for other starts and other queries at once
are in :mod:`directrank.stats.two_way`, those of queries in groups in
:mod:`directrank.stats.clusters`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy


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


def mean_interval(values: Sequence[float] | np.ndarray, level: float = 0.95) -> Interval:
    """Student's t interval, ``mean ± t_{(1+level)/2, n-1} · s / √n`` (used for trials).

    Args:
        values: ``[n]``, independent repetitions such as one mean per trial.
        level: confidence level in (0, 1).

    Raises:
        ValueError: there are no values, a value is not finite, or the level is outside (0, 1).

    >>> interval = mean_interval([0.42, 0.44, 0.43])
    >>> f"{interval.mean:.3f} ± {interval.half_width:.3f}"
    '0.430 ± 0.025'
    """
    values = np.asarray(values, dtype=np.float64)
    if values.ndim != 1 or not len(values):
        raise ValueError("an interval needs a list of at least one value")
    if not np.isfinite(values).all():
        raise ValueError("an interval needs finite values: leave queries without a value out first")
    if not 0 < level < 1:
        raise ValueError(f"the level {level} is not between 0 and 1")
    n = len(values)
    half_width = math.nan
    if n > 1:
        quantile = float(scipy.special.stdtrit(n - 1, (1 + level) / 2))
        half_width = quantile * float(values.std(ddof=1)) / math.sqrt(n)
    return Interval(mean=float(values.mean()), half_width=half_width, n=n, level=level)
