"""The error of a mean over values that form groups, such as queries of one topic.

Values of different groups are independent, those of the same group need not be. Treating all of
them as independent makes errors too small and finds spurious differences.
"""

from __future__ import annotations

import math

import numpy as np

from directrank.stats.estimates import Estimate


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
    distances = values - mean
    sums = np.bincount(group, weights=distances)
    weight = 1 / (1 - size / n)
    error = math.sqrt(float(weight @ sums**2)) / n
    spread = np.array([distances @ distances])
    (freedom,) = freedom_of_clusters(size.astype(float), sums[:, None], spread)
    return Estimate(mean, error, float(freedom), n)


def freedom_of_clusters(
    size: np.ndarray, sums: np.ndarray, spread: np.ndarray | None
) -> np.ndarray:
    """Degrees of freedom of the variances of several means; see :func:`clustered_mean`.

    Args:
        size: float ``[groups]``, of each group.
        sums: ``[groups, P]``, of the distances from each of the means.
        spread: ``[P]``, the sums of the squares of these distances; it may be None if every group
            has a single value.
    """
    if spread is None or len(size) == size.sum():
        return _freedom(size, np.zeros(sums.shape[1]))
    return _freedom(size, _correlation(size, sums, spread))


def _correlation(size: np.ndarray, sums: np.ndarray, spread: np.ndarray) -> np.ndarray:
    """Correlation ``[P]`` of two values of a group, by analysis of variance; from 0 to 1."""
    n, n_groups = size.sum(), len(size)
    between_groups = (1 / size) @ sums**2
    between = between_groups / (n_groups - 1)
    within = (spread - between_groups) / (n - n_groups)
    typical = (n - size @ size / n) / (n_groups - 1)
    total = between + (typical - 1) * within
    ratio = np.divide(between - within, total, out=np.zeros_like(total), where=total > 0)
    return np.clip(ratio, 0.0, 1.0)


def _freedom(size: np.ndarray, correlation: np.ndarray) -> np.ndarray:
    """Satterthwaite's degrees of freedom ``[P]`` of the variance, by the correlation ``[P]``.

    A group's sum has the variance ``v_g = n_g + ρ n_g (n_g - 1)``, in units of a value's. The sums
    of distances from the mean then have the covariance ``C = M diag(v) Mᵀ``, where M subtracts the
    mean; the degrees of freedom are ``tr(WC)² / tr(WCWC)``. The traces are sums over groups, which
    are polynomials in ρ.
    """
    share = size / size.sum()
    weight, more = 1 / (1 - share), size * (size - 1)

    def summed(factor: np.ndarray) -> np.ndarray:
        """The sum of ``factor * v``."""
        return np.asarray(factor @ size + factor @ more * correlation)

    def squared(factor: np.ndarray) -> np.ndarray:
        """The sum of ``factor * v²``."""
        mixed = 2 * (factor @ (size * more)) * correlation
        return np.asarray(factor @ size**2 + mixed + factor @ more**2 * correlation**2)

    total, shared = summed(np.ones_like(size)), float(weight @ share**2)
    trace = summed(weight * (1 - 2 * share)) + shared * total
    across = summed(weight * share)
    square = 2 * shared * squared(weight) + (shared * total) ** 2 + 2 * across**2
    square += squared(weight**2 * (1 - 4 * share)) - 4 * total * shared * across
    square += 2 * total * summed(weight**2 * share**2)
    return trace**2 / square
