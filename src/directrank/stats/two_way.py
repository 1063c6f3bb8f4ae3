"""Means over queries and starts, with errors that cover other queries and other starts.

Every start of a method is evaluated on the same queries, so values are crossed: ``v = μ + start +
query + rest``. The variance of their mean is estimated by ``s²_Q / Q + s²_T / T - s²_R / (Q T)``,
from the queries' means over the T starts, the starts' means over the Q queries, and the rest, which
is part of both. It is at least as large as either of the first two. Degrees of freedom are
Satterthwaite's (Biometrics Bulletin 2, 1946), because few starts determine their variance poorly.
If queries form groups, the queries' part is that of groups (:mod:`directrank.stats.clusters`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from directrank.stats.clusters import clustered_mean
from directrank.stats.estimates import Estimate


def over_queries_and_starts(values: np.ndarray, groups: np.ndarray | None = None) -> Estimate:
    """The mean over queries and starts.

    Args:
        values: ``[T, Q]``, one row per start. With a single row the starts' variance is unknown,
            and the error is over queries only.
        groups: ``[Q]``, groups of dependent queries; None if all are independent.

    Raises:
        ValueError: there are fewer than two queries, or values are not finite.

    >>> values = np.array([[0.0, 0.5, 1.0, 0.5], [0.1, 0.6, 1.0, 0.7]])
    >>> interval = over_queries_and_starts(values).interval()
    >>> f"{interval.mean:.2f} ± {interval.half_width:.2f}, {interval.n} queries"
    '0.55 ± 0.60, 4 queries'
    """
    values = _checked(values)
    parts = [_of_queries(values.mean(axis=0), groups), *_of_starts(values)]
    return _estimate(float(values.mean()), parts, _rest(values), values.shape[1])


def difference_over_queries_and_starts(
    a: np.ndarray, b: np.ndarray, groups: np.ndarray | None = None
) -> Estimate:
    """Mean of ``a`` minus mean of ``b``, query by query.

    Args:
        a, b: ``[T, Q]`` and ``[S, Q]``, one row per start; columns are the same queries. Starts of
            the two are independent of each other. With a single row the starts' variance is unknown
            and left out.
        groups: as for :func:`over_queries_and_starts`.

    Raises:
        ValueError: as :func:`over_queries_and_starts`, or different queries.
    """
    a, b = _checked(a), _checked(b)
    if a.shape[1] != b.shape[1]:
        raise ValueError("the two must be evaluated on the same queries")
    gaps = a.mean(axis=0) - b.mean(axis=0)
    parts = [_of_queries(gaps, groups), *_of_starts(a), *_of_starts(b)]
    return _estimate(float(gaps.mean()), parts, _rest(a) + _rest(b), a.shape[1])


def _of_queries(means: np.ndarray, groups: np.ndarray | None) -> tuple[float, float]:
    """The variance that queries add, and its degrees of freedom."""
    if groups is None:
        return _variance(means)
    estimate = clustered_mean(means, groups)
    return estimate.error**2, estimate.freedom


def _of_starts(values: np.ndarray) -> list[tuple[float, float]]:
    """The variance that starts add; it is unknown for a single start."""
    return [_variance(values.mean(axis=1))] if len(values) > 1 else []


def _variance(means: np.ndarray) -> tuple[float, float]:
    """The variance of the mean of independent values, and its degrees of freedom."""
    n = len(means)
    return float(means.var(ddof=1)) / n, n - 1


def _rest(values: np.ndarray) -> float:
    """The variance of the mean that is neither the starts' nor the queries'."""
    starts, queries = values.shape
    if starts < 2:
        return 0.0
    rest = values - values.mean(axis=0) - values.mean(axis=1, keepdims=True) + values.mean()
    return float((rest**2).sum()) / ((starts - 1) * (queries - 1)) / values.size


def _estimate(mean: float, parts: Sequence[tuple[float, float]], rest: float, n: int) -> Estimate:
    total = sum(part for part, _ in parts)
    if total == 0:
        return Estimate(mean, 0.0, n=n)
    variance = max(total - rest, *(part for part, _ in parts), 0.0)
    freedom = total**2 / sum(part**2 / df for part, df in parts)
    return Estimate(mean, math.sqrt(variance), freedom, n)


def _checked(values: np.ndarray) -> np.ndarray:
    values = np.asarray(values, dtype=np.float64)
    if values.ndim != 2 or not len(values) or values.shape[1] < 2:
        raise ValueError("values must be a table of starts and at least two queries")
    if not np.isfinite(values).all():
        raise ValueError("values must be finite: leave queries without a value out first")
    return values
