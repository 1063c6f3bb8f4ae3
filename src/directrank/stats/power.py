"""The smallest difference and the smallest margin that a sample could have shown.

Both follow from the estimated standard error. They describe samples of this size and spread, and do
not depend on the observed difference.
"""

from __future__ import annotations

import math

import scipy

#: The t distribution is treated as normal beyond this many degrees of freedom.
_MANY = 1e5


def smallest_difference(
    error: float, freedom: float, level: float = 0.05, power: float = 0.8
) -> float:
    """The smallest true difference that a two-sided t test finds with probability ``power``.

    Finding it means a significant result with the right sign.

    Args:
        error: standard error of the estimated difference; NaN if it is unknown.
        freedom: its degrees of freedom; may be infinite.
        level: that of the test, after any correction for several tests.
        power: probability of finding it, above ``level``.

    Returns:
        The difference, in the unit of ``error``; NaN if that is NaN.

    Raises:
        ValueError: the level is outside (0, 1), or the power is not between level and 1.

    >>> round(smallest_difference(1.0, math.inf), 3)
    2.802
    """
    _check(level, power)
    if math.isnan(error) or error == 0:
        return error
    if freedom > _MANY:
        return error * float(scipy.stats.norm.ppf(1 - level / 2) + scipy.stats.norm.ppf(power))
    critical = float(scipy.stats.t.ppf(1 - level / 2, freedom))

    def missed(shift: float) -> float:
        # Under a true difference the statistic has a noncentral t distribution.
        return float(scipy.special.nctdtr(freedom, shift, critical)) - (1 - power)

    most = critical + 10.0
    while missed(most) > 0:
        most *= 2
    return error * float(scipy.optimize.brentq(missed, 0.0, most))


def smallest_margin(error: float, freedom: float, level: float = 0.05, power: float = 0.8) -> float:
    """The smallest margin within which equivalence is shown with probability ``power``.

    If there is truly no difference, two one-sided t tests at ``level`` each show with this
    probability that it is smaller than ``(t_{1-level} + t_{(1+power)/2})`` standard errors. The sum
    of quantiles treats the estimated error as exact; with few degrees of freedom the margin is
    somewhat too large, and therefore conservative.

    Args, Raises:
        As for :func:`smallest_difference`.

    >>> round(smallest_margin(1.0, math.inf), 3)
    2.926
    """
    _check(level, power)
    normal = freedom > _MANY
    quantiles = (1 - level, (1 + power) / 2)
    parts = [
        scipy.stats.norm.ppf(q) if normal else scipy.stats.t.ppf(q, freedom) for q in quantiles
    ]
    return error * float(sum(parts))


def _check(level: float, power: float) -> None:
    if not 0 < level < power < 1:
        raise ValueError(f"there is no test at level {level} with power {power}")
