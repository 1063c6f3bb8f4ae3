"""The error of a mean over values that form groups, such as queries of one topic.

Values of different groups are independent, those of the same group need not be. Treating all of
them as independent makes errors too small and finds spurious differences.
"""

from __future__ import annotations

import math

import numpy as np

from directrank.stats.estimates import Estimate
from directrank.stats.tests import paired_randomisation


def clustered_mean(values: np.ndarray, groups: np.ndarray) -> Estimate:
    """The mean of values whose groups are independent of each other.

    The variance is that of Bell and McCaffrey (Survey Methodology 28, 2002), for an intercept only:
    ``Σ_g S_g² / (1 - n_g / n) / n²`` with ``S_g`` the sum of a group's distances from the mean. The
    degrees of freedom are theirs, too: those of a t distribution if values of a group had the
    estimated correlation. Groups of one value each give ``s / √n`` and ``n - 1``.

    Args:
        values: float ``[n]``, finite.
        groups: ``[n]``, a number or name for each.

    Returns:
        The mean with its error, which is NaN for a single group; ``n`` is the number of values.

    Raises:
        ValueError: there are no values, a value is not finite, or the number of groups differs.

    >>> estimate = clustered_mean(np.array([0.1, 0.2, 0.6, 0.5]), np.array([1, 1, 2, 2]))
    >>> round(estimate.mean, 2), round(estimate.error, 2), round(estimate.freedom, 2)
    (0.35, 0.2, 1.0)
    """
    values = np.asarray(values, np.float64)
    if values.ndim != 1 or not len(values) or not np.isfinite(values).all():
        raise ValueError("a clustered mean needs a list of finite values")
    if np.shape(groups) != values.shape:
        raise ValueError(f"{len(values)} values, but {np.size(groups)} groups")
    _, group, size = np.unique(np.asarray(groups), return_inverse=True, return_counts=True)
    n, mean = len(values), float(values.mean())
    if len(size) < 2:
        return Estimate(mean, math.nan, 1.0, n)
    sums = np.bincount(group, weights=values - mean)
    weight = 1 / (1 - size / n)
    error = math.sqrt(float(weight @ sums**2)) / n
    within = _correlation(values, group, size)
    return Estimate(mean, error, _freedom(size, weight, within), n)


def group_sums(values: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """The sum of each group's values, in the order of the groups' numbers or names."""
    _, group = np.unique(np.asarray(groups), return_inverse=True)
    return np.bincount(group, weights=np.asarray(values, np.float64))


def flips_by_group(
    differences: np.ndarray,
    groups: np.ndarray | None,
    generator: np.random.Generator,
    n_resamples: int,
) -> float:
    """p of the paired randomisation test, the signs of a group's differences flipped together.

    Args:
        differences: ``[n]``, of paired values.
        groups: ``[n]``; None if all are independent.
        generator, n_resamples: see :func:`directrank.stats.tests.paired_randomisation`.
    """
    flipped = differences if groups is None else group_sums(differences, groups)
    return paired_randomisation(flipped, np.zeros(len(flipped)), generator, n_resamples).p_value


def _correlation(values: np.ndarray, group: np.ndarray, size: np.ndarray) -> float:
    """Correlation of two values of a group, by analysis of variance; from 0 to 1."""
    n, n_groups = len(values), len(size)
    if n == n_groups:
        return 0.0
    means = np.bincount(group, weights=values) / size
    between = float(size @ (means - values.mean()) ** 2) / (n_groups - 1)
    within = float(((values - means[group]) ** 2).sum()) / (n - n_groups)
    typical = (n - float(size @ size) / n) / (n_groups - 1)
    total = between + (typical - 1) * within
    return float(np.clip((between - within) / total, 0.0, 1.0)) if total > 0 else 0.0


def _freedom(size: np.ndarray, weight: np.ndarray, correlation: float) -> float:
    """Satterthwaite's degrees of freedom of the variance.

    A group's sum has the variance ``v_g = n_g + ρ n_g (n_g - 1)``, in units of a value's. The sums
    of distances from the mean then have the covariance ``C = M diag(v) Mᵀ``, where M subtracts the
    mean; the degrees of freedom are ``tr(WC)² / tr(WCWC)``. The traces are computed by sums over
    groups, so the cost is linear in the number of groups.
    """
    share = size / size.sum()
    variance = size + correlation * size * (size - 1)
    total = variance.sum()
    own = -2 * share * variance + share**2 * total
    trace = float(weight @ (variance + own))
    aa = float(weight @ share**2)
    vv = float(weight @ variance**2)
    av = float(weight @ (share * variance))
    square = 2 * aa * vv + (aa * total) ** 2 + 2 * av**2 - 4 * total * aa * av
    square += float(weight**2 @ (variance**2 + 2 * variance * own))
    return float(trace**2 / square)
