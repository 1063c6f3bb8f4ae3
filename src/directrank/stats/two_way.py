"""Differences that hold for other queries and for other trainings: the study's standard of
evidence.

Every training of a method is evaluated on the same test queries, so values are crossed: ``v = μ +
training + query + rest``. The variance of a mean over ``Q`` queries and ``T`` trainings is
estimated by ``V_Q + V_T - V_R``:

- ``V_Q`` is that of the queries' means over the trainings, by groups of dependent queries
  (:mod:`directrank.stats.clusters`).
- ``V_T`` is that of the trainings' means over the queries. Each of ``F`` folds has trainings of its
  own, which are independent of those of other folds, so that the folds' variances are added. They
  have ``F (T - 1)`` degrees of freedom together, as trainings vary about as much on each fold.
- ``V_R`` is that of the rest, which is part of both.

The sum is at least as large as ``V_Q`` and as ``V_T``. Its degrees of freedom are Satterthwaite's
(Biometrics Bulletin 2, 1946).

Trainings of different methods are independent of each other, so their ``V_T`` and ``V_R`` are
added for a difference. Families of differences are corrected by Holm's method. The page
``docs/evidence.md`` shows by simulation that tests keep their level on the study's collections.

Where the trainings of a fold share the choice of a configuration, they also share what it adds, of
which they show nothing. It is taken to be the share :data:`OF_CHOICE` of a training's variance:
``V_T`` and ``V_R`` are multiplied accordingly.

Where a method was trained once on each fold, ``V_T`` cannot be estimated, but the differences of
the folds vary by all that varies, since each fold has queries and a training of its own:
:func:`difference_between_folds`. It has ``F - 1`` degrees of freedom, so that repeated trainings
tell more.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from directrank.stats.clusters import freedom_of_clusters
from directrank.stats.estimates import Estimate

#: The share of a training's variance that comes from the choice of its configuration, where the
#: trainings of a fold share it. It was estimated where each training chooses for itself, and is
#: rounded up: see ``docs/evidence.md`` and ``benchmarks/choice_of_settings.py``.
OF_CHOICE = 0.15

#: Numbers that are computed at a time, which bounds the memory.
AT_ONCE = 1 << 24


def over_queries_and_starts(
    values: np.ndarray,
    groups: np.ndarray | None = None,
    folds: np.ndarray | None = None,
    one_choice: bool = False,
) -> Estimate:
    """The mean over queries and trainings.

    Args:
        values: ``[T, Q]``, one row per training. With a single row the variance of trainings is
            unknown, and the error is over queries only.
        groups: ``[Q]``, groups of dependent queries; None if all are independent.
        folds: ``[Q]``, the fold of each query, in which a row is a training of its own; None if
            there is a single one.
        one_choice: whether the trainings of a fold share the choice of a configuration.

    Raises:
        ValueError: there are fewer than two queries, or values are not finite.

    >>> values = np.array([[0.0, 0.5, 1.0, 0.5], [0.1, 0.6, 1.0, 0.7]])
    >>> interval = over_queries_and_starts(values).interval()
    >>> f"{interval.mean:.2f} ± {interval.half_width:.2f}, {interval.n} queries"
    '0.55 ± 0.60, 4 queries'
    """
    return Crossed([values], groups, folds, [one_choice]).means()[0]


def difference_over_queries_and_starts(
    a: np.ndarray,
    b: np.ndarray,
    groups: np.ndarray | None = None,
    folds: np.ndarray | None = None,
    one_choice: tuple[bool, bool] = (False, False),
) -> Estimate:
    """Mean of ``a`` minus mean of ``b``, query by query.

    Args:
        a, b: ``[T, Q]`` and ``[S, Q]``, one row per training; columns are the same queries. With a
            single row the variance of trainings is unknown and left out.
        groups, folds, one_choice: as for :func:`over_queries_and_starts`.

    Raises:
        ValueError: as :func:`over_queries_and_starts`, or different queries.
    """
    (row,) = Crossed([a, b], groups, folds, one_choice).differences([0], [1]).itertuples()
    return Estimate(row.difference, row.error, row.freedom, np.shape(a)[1])


def difference_between_folds(
    a: np.ndarray, b: np.ndarray, groups: np.ndarray | None, folds: np.ndarray
) -> Estimate:
    """Mean of ``a`` minus mean of ``b``, with an error from the differences of the folds.

    It needs no second training. Folds are independent if no group of queries is in several; then
    ``F / (F - 1) Σ (w_f (d_f - d))²`` with the folds' differences ``d_f`` and shares ``w_f`` of the
    queries has the variance of ``d`` over queries and trainings.

    Args:
        a, b, groups, folds: as for :func:`difference_over_queries_and_starts`.

    Returns:
        The estimate, whose error is NaN with fewer than three folds, or with groups in several.

    >>> folds = np.repeat([1, 2, 3], 2)
    >>> a = np.array([[0.5, 0.7, 0.4, 0.6, 0.8, 0.9]])
    >>> estimate = difference_between_folds(a, a - [0.1, 0.1, 0.2, 0.2, 0.3, 0.3], None, folds)
    >>> f"{estimate.mean:.2f} ± {estimate.error:.3f}, {estimate.freedom:.0f} degrees of freedom"
    '0.20 ± 0.058, 2 degrees of freedom'
    """
    gaps = np.mean(a, axis=0) - np.mean(b, axis=0)
    n = len(gaps)
    fold, group = _codes(folds, n, np.zeros(n, int)), _codes(groups, n, np.arange(n))
    parts = int(fold.max()) + 1
    together = len(np.unique(group * parts + fold)) == group.max() + 1
    if parts < 3 or not together:
        return Estimate(float(gaps.mean()), math.nan, 1.0, n)
    apart = np.bincount(fold, gaps - gaps.mean()) / n
    error = math.sqrt(parts / (parts - 1) * float(apart @ apart))
    return Estimate(float(gaps.mean()), error, parts - 1.0, n)


@dataclass(frozen=True)
class _Parts:
    """What the trainings of each method contribute, ``[M]`` each.

    Attributes:
        variance: ``V_T``.
        square: its square over its degrees of freedom.
        rest: ``V_R``.
    """

    variance: np.ndarray
    square: np.ndarray
    rest: np.ndarray

    def of(self, places: np.ndarray) -> _Parts:
        """Those of some methods."""
        return _Parts(self.variance[places], self.square[places], self.rest[places])

    def __add__(self, other: _Parts) -> _Parts:
        return _Parts(
            self.variance + other.variance, self.square + other.square, self.rest + other.rest
        )


class Crossed:
    """Values of several methods for the same queries, each from several trainings.

    Args:
        methods: ``[T, Q]`` each, as for :func:`over_queries_and_starts`; ``T`` may differ.
        groups, folds: likewise.
        one_choice: likewise, of each method; None if no method's trainings share a choice.

    Raises:
        ValueError: as :func:`difference_over_queries_and_starts`.
    """

    def __init__(
        self,
        methods: Sequence[np.ndarray],
        groups: np.ndarray | None = None,
        folds: np.ndarray | None = None,
        one_choice: Sequence[bool] | None = None,
    ) -> None:
        checked = [_checked(values) for values in methods]
        self.n = n = checked[0].shape[1]
        if any(values.shape[1] != n for values in checked):
            raise ValueError("all methods must be evaluated on the same queries")
        group, fold = _codes(groups, n, np.arange(n)), _codes(folds, n, np.zeros(n, int))
        # A group whose queries are in several folds meets several trainings: its cells.
        order = np.lexsort((fold, group))
        cells = group[order] * (fold.max() + 1) + fold[order]
        self._order, self._first = order, np.unique(cells, return_index=True)[1]
        self._cell_size = np.diff(np.append(self._first, n)).astype(float)
        self._cell_group, self._cell_fold = group[order][self._first], fold[order][self._first]
        self._fold_size = np.bincount(fold).astype(float)
        self._size = np.bincount(group).astype(float)

        means = np.stack([values.mean(axis=0) for values in checked], axis=1)
        self._mean = means.mean(axis=0)
        means -= self._mean
        # Products of the methods' distances from their means; only groups of several need them.
        self._products = means.T @ means if len(self._size) < n else None
        self._sums = _summed(self._in_cells(means.T).T, self._cell_group)
        shared = [False] * len(checked) if one_choice is None else one_choice
        parts = [self._parts(*method) for method in zip(checked, shared, strict=True)]
        self._trainings = _Parts(*(np.array(part) for part in zip(*parts, strict=True)))

    def means(self) -> list[Estimate]:
        """The mean of every method, over queries and trainings."""
        spread = None if self._products is None else self._products.diagonal()
        error, freedom = self._errors(self._sums, spread, self._trainings)
        return [
            Estimate(float(mean), float(own), float(df), self.n)
            for mean, own, df in zip(self._mean, error, freedom, strict=True)
        ]

    def differences(
        self, a: Sequence[int] | np.ndarray, b: Sequence[int] | np.ndarray
    ) -> pd.DataFrame:
        """The difference of every pair of methods.

        Args:
            a, b: ``[P]``, positions of the methods.

        Returns:
            A row per pair: ``a``, ``b``, ``difference`` (mean of a minus mean of b), ``error`` and
            ``freedom``, and ``p_value`` of a two-sided t test, without a correction.
        """
        a, b = np.asarray(a, int), np.asarray(b, int)
        errors, freedoms = np.empty(len(a)), np.empty(len(a))
        step = max(1, AT_ONCE // len(self._size))
        for first in range(0, len(a), step):
            some = slice(first, first + step)
            own, other = a[some], b[some]
            spread = None
            if (products := self._products) is not None:
                spread = products[own, own] + products[other, other] - 2 * products[own, other]
            errors[some], freedoms[some] = self._errors(
                self._sums[:, own] - self._sums[:, other],
                spread,
                self._trainings.of(own) + self._trainings.of(other),
            )
        differences = self._mean[a] - self._mean[b]
        estimates = map(Estimate, differences, errors, freedoms)
        return pd.DataFrame(
            {
                "a": a,
                "b": b,
                "difference": differences,
                "error": errors,
                "freedom": freedoms,
                "p_value": [estimate.p_differs() for estimate in estimates],
            }
        )

    def _errors(
        self, sums: np.ndarray, spread: np.ndarray | None, trainings: _Parts
    ) -> tuple[np.ndarray, np.ndarray]:
        """Standard errors and degrees of freedom ``[P]``.

        Args:
            sums: ``[groups, P]``, of distances from the mean.
            spread: ``[P]``, the sum of the distances' squares; None if queries are independent.
            trainings: ``V_T`` and ``V_R``.
        """
        if len(self._size) < 2:
            return np.full(sums.shape[1], np.nan), np.ones(sums.shape[1])
        queries = (1 / (1 - self._size / self.n)) @ sums**2 / self.n**2
        of_queries = freedom_of_clusters(self._size, sums, spread)
        total = queries + trainings.variance
        variance = np.maximum(total - trainings.rest, np.maximum(queries, trainings.variance))
        below = queries**2 / of_queries + trainings.square
        freedom = np.divide(total**2, below, out=np.full_like(total, np.inf), where=below > 0)
        return np.sqrt(variance), freedom

    def _parts(self, values: np.ndarray, one_choice: bool) -> tuple[float, float, float]:
        """Of one method ``[T, Q]``: the trainings' variance, its square, and the rest's."""
        trainings = len(values)
        if trainings < 2:
            return 0.0, 0.0, 0.0
        cells = self._in_cells(values).T  # [cells, T]
        sums = _summed(cells, self._cell_fold)  # [folds, T]
        of_folds = sums.var(axis=1, ddof=1) / trainings / self.n**2
        of_fold = sums / self._fold_size[:, None]
        rest = cells - self._cell_size[:, None] * of_fold[self._cell_fold]
        rest -= rest.mean(axis=1, keepdims=True)
        share = self._cell_size / self._fold_size[self._cell_fold]
        # A group that is a whole fold says nothing of the rest.
        weight = np.divide(1, 1 - share, out=np.zeros_like(share), where=share < 1)
        of_rest = float(weight @ (rest**2).sum(axis=1)) / (trainings - 1) / trainings / self.n**2
        variance = float(of_folds.sum())
        if one_choice:
            # What trainings show is 1 - OF_CHOICE of a variance, which their mean has by T times
            # less; the rest of it their mean has whole.
            times = 1 + trainings * OF_CHOICE / (1 - OF_CHOICE)
            variance, of_rest = times * variance, times * of_rest
        return variance, variance**2 / (len(of_folds) * (trainings - 1)), of_rest

    def _in_cells(self, values: np.ndarray) -> np.ndarray:
        """The sums ``[K, cells]`` of values ``[K, Q]``."""
        return np.asarray(np.add.reduceat(values[:, self._order], self._first, axis=1))


def _summed(values: np.ndarray, places: np.ndarray) -> np.ndarray:
    """The sums ``[places, K]`` of the rows of ``values`` ``[cells, K]`` with the same place."""
    sums = np.zeros((places.max() + 1, values.shape[1]))
    np.add.at(sums, places, values)
    return sums


def _codes(names: np.ndarray | None, n: int, default: np.ndarray) -> np.ndarray:
    """The number of each query's group or fold."""
    if names is None:
        return default
    if np.shape(names) != (n,):
        raise ValueError(f"{n} queries, but {np.size(names)} groups or folds")
    return np.asarray(np.unique(np.asarray(names), return_inverse=True)[1])


def _checked(values: np.ndarray) -> np.ndarray:
    values = np.asarray(values, dtype=np.float64)
    if values.ndim != 2 or not len(values) or values.shape[1] < 2:
        raise ValueError("values must be a table of trainings and at least two queries")
    if not np.isfinite(values).all():
        raise ValueError("values must be finite: leave queries without a value out first")
    return values
