"""Correct tests of all pairs of methods at once, where values form groups.

Methods that are evaluated on the same queries resemble each other, so the tests of their pairs
depend on each other strongly. Holm's correction allows for any dependence, and with thousands of
pairs hardly any of them passes it. The correction here takes the dependence from the data: the
sums of a group's values get a random sign, which is the same for all methods, and the t statistics
of all pairs are computed anew (the wild cluster bootstrap of Cameron, Gelbach and Miller, Review of
Economics and Statistics 90, 2008, with their test statistic, not the estimate). The largest one of
each draw decides what counts as extreme, step by step (Romano and Wolf, Econometrica 73, 2005), so
that the probability of any false rejection keeps its bound.
"""

from __future__ import annotations

import numpy as np

from directrank.stats.clusters import group_sums
from directrank.system.seeds import numpy_stream

#: The number of draws; the smallest p value is one over this number plus one.
DRAWS = 1999

#: Statistics that are computed at a time, which bounds the memory.
AT_ONCE = 1 << 22


class GroupSigns:
    """t statistics of all pairs of methods under random signs of groups.

    Args:
        values: float ``[n, M]``, one column per method.
        groups: ``[n]``, the group of each row; groups are independent of each other.
        draws: the number of draws.

    Raises:
        ValueError: there are fewer than two methods or groups.
    """

    def __init__(self, values: np.ndarray, groups: np.ndarray, draws: int = DRAWS) -> None:
        _, group, sizes = np.unique(np.asarray(groups), return_inverse=True, return_counts=True)
        n, methods = values.shape
        if methods < 2 or len(sizes) < 2:
            raise ValueError("pairs need at least two methods, and their errors two groups")
        self.a, self.b = np.triu_indices(methods, 1)
        self.share = sizes / n
        self.weight = 1 / (1 - self.share)
        relative = values - values.mean(axis=1, keepdims=True)  # differences stay the same
        self.sums = np.stack([group_sums(column, group) for column in relative.T], axis=1)
        stream = numpy_stream("signs of groups", methods, len(sizes))
        self.signs = 2.0 * stream.integers(0, 2, (draws, len(sizes))) - 1

    def differences(self, statistics: np.ndarray) -> np.ndarray:
        """Corrected p values of two-sided tests that the methods of a pair are equal.

        Args:
            statistics: ``[P]``, the t statistic of each pair with errors by group
                (:func:`directrank.stats.clusters.clustered_mean`), in the order of
                ``itertools.combinations``.
        """
        return step_down(np.abs(statistics), self._drawn(self.sums))

    def equivalences(self, statistics: np.ndarray) -> np.ndarray:
        """Corrected p values of tests that the methods of a pair differ by less than a margin.

        Args:
            statistics: ``[P]``, the distance of each difference from the nearer end of the margin
                in standard errors; negative outside of it.
        """
        centred = self.sums - np.outer(self.share, self.sums.sum(axis=0))
        return step_down(statistics, self._drawn(centred))

    def _drawn(self, sums: np.ndarray) -> np.ndarray:
        """Absolute t statistics ``[draws, P]`` of all pairs, float32.

        With ``S_g`` a group's sum for a pair and ``f_g`` its sign, the mean of a draw is
        ``m = Σ f_g S_g / n``, and its squared error ``Σ w_g (f_g S_g - n_g m)² / n²``. As ``f_g² =
        1``, the square needs only sums that are linear in the signs.
        """
        means = self.signs @ sums  # n m
        crossed = (self.signs * (self.weight * self.share)) @ sums
        products = (sums * self.weight[:, None]).T @ sums
        squares = products.diagonal()
        own = squares[self.a] + squares[self.b] - 2 * products[self.a, self.b]
        rest = float(self.weight @ self.share**2)
        result = np.empty((len(means), len(self.a)), np.float32)
        step = max(1, AT_ONCE // len(self.a))
        for first in range(0, len(means), step):
            some = slice(first, first + step)
            mean = means[some, self.a] - means[some, self.b]
            across = crossed[some, self.a] - crossed[some, self.b]
            variance = own - 2 * mean * across + rest * mean**2
            with np.errstate(divide="ignore", invalid="ignore"):
                t = np.abs(mean) / np.sqrt(variance)
            result[some] = np.where(variance > 0, t, 0.0)
        return result


def step_down(statistics: np.ndarray, drawn: np.ndarray) -> np.ndarray:
    """p values of many tests, corrected by the largest statistics of draws (Romano and Wolf, 2005).

    Args:
        statistics: ``[P]``; larger ones are more extreme. NaN, a test without a spread, gives 1.
        drawn: ``[draws, P]``, statistics of the same tests if no hypothesis is false.

    Returns:
        ``[P]``: of the k-th largest statistic, the share of draws whose largest statistic among the
        tests from the k-th on reaches it, with the observed one among the draws; never less than
        that of the larger statistics.

    >>> drawn = np.array([[1.0, 3.0], [2.0, 0.5], [0.1, 0.2]])
    >>> step_down(np.array([4.0, 2.5]), drawn)
    array([0.25, 0.5 ])
    """
    known = np.where(np.isnan(statistics), -np.inf, statistics)
    order = np.argsort(-known, kind="stable")
    largest = np.maximum.accumulate(drawn[:, order[::-1]], axis=1)[:, ::-1]
    reached = (largest >= known[order].astype(drawn.dtype)).sum(axis=0)
    result = np.empty(len(order))
    result[order] = np.maximum.accumulate((1 + reached) / (1 + len(drawn)))
    return result
