"""Compare many methods over many blocks: Friedman's test, Nemenyi's, and Wilcoxon's for all pairs.

Demšar, "Statistical comparisons of classifiers over multiple data sets", JMLR 7 (2006), section
3.2. His blocks are data sets; the blocks used here must be independent of each other.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import scipy

from directrank.stats.clusters import clustered_mean
from directrank.stats.estimates import Estimate, of_mean
from directrank.stats.group_signs import GroupSigns
from directrank.stats.tests import holm, wilcoxon


@dataclass(frozen=True)
class Friedman:
    """Friedman's test of equal performance of all methods.

    Attributes:
        mean_ranks: float64 ``[k]``, the mean over the blocks of each method's rank; 1 is the best.
        statistic: chi-squared with k - 1 degrees of freedom, corrected for ties.
        p_value: of that statistic.
        blocks: number of blocks.
    """

    mean_ranks: np.ndarray
    statistic: float
    p_value: float
    blocks: int


def mean_ranks(values: np.ndarray) -> np.ndarray:
    """The mean over blocks of each method's rank, float64 ``[k]``; 1 is the best.

    Args:
        values: ``[n, k]``, one row per block, one column per method; more is better.
    """
    return np.asarray(scipy.stats.rankdata(-values, axis=1).mean(axis=0))


def friedman(values: np.ndarray) -> Friedman:
    """Friedman's test over blocks; tied methods of a block share the mean of their ranks.

    Args:
        values: ``[n, k]``, one row per block, one column per method; more is better.

    Raises:
        ValueError: there are fewer than three methods or two blocks, or a value is not finite.

    >>> result = friedman([[0.5, 0.4, 0.3], [0.6, 0.5, 0.5], [0.4, 0.3, 0.1]])
    >>> result.mean_ranks.round(2), round(result.p_value, 3)
    (array([1.  , 2.17, 2.83]), 0.06)
    """
    values = np.asarray(values, dtype=np.float64)
    if values.ndim != 2 or values.shape[0] < 2 or values.shape[1] < 3:
        raise ValueError("Friedman's test needs at least two blocks of at least three methods")
    if not np.isfinite(values).all():
        raise ValueError("Friedman's test needs finite values: leave out blocks without a value")
    ranks = mean_ranks(values)
    if (np.ptp(values, axis=1) == 0).all():
        # If all values are tied, SciPy's correction divides by zero.
        return Friedman(ranks, 0.0, 1.0, len(values))
    result = scipy.stats.friedmanchisquare(*values.T)
    return Friedman(ranks, float(result.statistic), float(result.pvalue), len(values))


def critical_difference(methods: int, blocks: int, level: float = 0.05) -> float:
    """Nemenyi's critical difference of two mean ranks: ``q_α √(k (k + 1) / (6 n))`` (Demšar 2006).

    ``q_α`` is the quantile of the studentised range over √2, for k methods and infinitely many
    degrees of freedom; the probability of any error among all pairs is at most ``level``.

    Args:
        methods: k, at least 2.
        blocks: n, at least 1.
        level: α in (0, 1).

    Raises:
        ValueError: a number is outside these ranges.

    >>> round(critical_difference(methods=5, blocks=30), 2)
    1.11
    """
    if methods < 2 or blocks < 1 or not 0 < level < 1:
        raise ValueError(f"no critical difference of {methods} methods, {blocks} blocks at {level}")
    quantile = float(scipy.stats.studentized_range.ppf(1 - level, methods, np.inf)) / math.sqrt(2)
    return quantile * math.sqrt(methods * (methods + 1) / (6 * blocks))


def cliques(mean_ranks: Sequence[float] | np.ndarray, difference: float) -> list[tuple[int, int]]:
    """The largest groups of neighbours in rank whose ranks differ by at most ``difference``.

    Args:
        mean_ranks: ``[k]`` in ascending order.
        difference: the critical difference.

    Returns:
        First and last position of each group of at least two; no group lies within another.

    >>> cliques([1.2, 1.9, 2.6, 4.3], difference=1.0)
    [(0, 1), (1, 2)]
    """
    ranks = np.asarray(mean_ranks, dtype=np.float64)
    groups: list[tuple[int, int]] = []
    for first in range(len(ranks)):
        last = int(np.searchsorted(ranks, ranks[first] + difference, side="right")) - 1
        if last > first and (not groups or last > groups[-1][1]):
            groups.append((first, last))
    return groups


def all_pairs(
    values: pd.DataFrame, groups: np.ndarray | None = None, signs: GroupSigns | None = None
) -> pd.DataFrame:
    """The tests of every pair of methods, corrected over all pairs.

    Args:
        values, groups: see :func:`pair_tests`.
        signs: those of ``values`` and ``groups``; they are drawn if they are missing.

    Returns:
        The result of :func:`pair_tests` with a column ``p_corrected``: by Holm's method or, with
        groups, by :class:`directrank.stats.group_signs.GroupSigns`.

    Raises:
        ValueError: as :func:`pair_tests`.

    >>> values = pd.DataFrame({"x": [0.5, 0.6, 0.7], "y": [0.1, 0.5, 0.4], "z": [0.2, 0.6, 0.3]})
    >>> all_pairs(values)[["a", "b", "p_corrected"]].values.tolist()
    [[0.0, 1.0, 0.75], [0.0, 2.0, 1.0], [1.0, 2.0, 1.0]]
    """
    pairs = pair_tests(values, groups)
    if groups is None:
        corrected = holm(pairs["p_value"].to_numpy())
    else:
        signs = signs or GroupSigns(values.to_numpy(dtype=np.float64), groups)
        corrected = signs.differences(_ratio(pairs["difference"], pairs["error"]))
    return pairs.assign(p_corrected=corrected)


def pair_tests(values: pd.DataFrame, groups: np.ndarray | None = None) -> pd.DataFrame:
    """Wilcoxon's signed-rank test of every pair of methods, without a correction.

    Args:
        values: one row per block, one column per method; more is better.
        groups: groups of blocks; None if they are independent, as Wilcoxon's test requires. With
            groups, p is that of a t test with errors by group
            (:func:`directrank.stats.clusters.clustered_mean`).

    Returns:
        One row per pair: ``a``, ``b`` (positions of the columns), ``difference`` (mean of a minus
        mean of b), ``error`` (its standard error) and ``freedom``, ``effect`` (rank-biserial
        correlation) and ``p_value``.

    Raises:
        ValueError: there is a single method or no block, or a value is not finite.
    """
    columns = values.to_numpy(dtype=np.float64).T
    if len(columns) < 2:
        raise ValueError("a comparison of pairs needs at least two methods")
    rows = []
    for a, b in itertools.combinations(range(len(columns)), 2):
        test = wilcoxon(columns[a], columns[b])
        differences = columns[a] - columns[b]
        estimate = of_mean(differences) if groups is None else clustered_mean(differences, groups)
        p_value = test.p_value if groups is None else estimate.p_differs()
        rows.append((a, b, test.difference, estimate.error, estimate.freedom, test.effect, p_value))
    names = ["a", "b", "difference", "error", "freedom", "effect", "p_value"]
    return pd.DataFrame(rows, columns=names)


def equivalence(pairs: pd.DataFrame, margin: float, signs: GroupSigns | None = None) -> np.ndarray:
    """Corrected p of two one-sided t tests that a pair's difference is within ``±margin``.

    Differences and equivalences are two families of tests, and each is corrected separately: by
    Holm's method or, with ``signs``, by those.

    Args:
        pairs: the result of :func:`pair_tests`.
        margin: above zero, in the unit of the values.
        signs: those of the values behind ``pairs``, if they form groups.

    >>> rng = np.random.default_rng(0)
    >>> values = pd.DataFrame(rng.normal(0.5, 0.001, (200, 3)))
    >>> bool((equivalence(all_pairs(values), 0.01) < 0.05).all())
    True
    """
    if signs is not None:
        return signs.equivalences(_ratio(margin - pairs["difference"].abs(), pairs["error"]))
    p_values = [
        Estimate(row.difference, row.error, row.freedom).p_within(-margin, margin)
        for row in pairs.itertuples()
    ]
    return holm(np.array(p_values))


def _ratio(values: pd.Series, errors: pd.Series) -> np.ndarray:
    """Values in standard errors; infinite, or NaN for 0, where there is no error."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return values.to_numpy() / errors.to_numpy()
