"""Significance tests between two methods, and correction for many of them.

Bruch2019 says "statistically significant" without naming a test; we use Welch's t test over trials
(:func:`directrank.stats.estimates.of_difference`) and the paired randomisation test over queries.
Yu2020 uses Wilcoxon's signed-rank test at p < 0.01 against the best method of a table: paired per
query, pooled over the five test folds. All tests are two-sided.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy

#: Up to this many non-zero differences all sign patterns are enumerated (2^16 of them).
EXACT_LIMIT = 16

#: The number of signs drawn at a time, which bounds the memory of the randomisation test.
_SIGNS_PER_CHUNK = 1 << 22

Values = Sequence[float] | np.ndarray


@dataclass(frozen=True)
class TwoSidedTest:
    """The outcome of a two-sided test of a against b.

    Attributes:
        difference: mean of a minus mean of b.
        statistic: the test's statistic.
        p_value: probability of a statistic at least as extreme if there were no difference.
    """

    difference: float
    statistic: float
    p_value: float


def paired_randomisation(
    a: Values, b: Values, generator: np.random.Generator, n_resamples: int = 100_000
) -> TwoSidedTest:
    """Fisher's paired randomisation (sign-flip) test of the mean difference.

    Under the null hypothesis the two values of a query are exchangeable, so each difference has a
    random sign. With up to 16 non-zero differences all sign patterns are counted; beyond that
    ``n_resamples`` are drawn and the observed one is counted among them, which keeps the test
    valid: ``p = (1 + #extreme) / (1 + n_resamples)``.

    Args:
        a: ``[n]``, per-query values of one method.
        b: ``[n]``, those of the other, in the same order.
        generator: from :func:`directrank.system.seeds.numpy_stream`; not used if the test is exact.
        n_resamples: the number of sign patterns that are drawn.

    Returns:
        The statistic is the mean difference.

    Raises:
        ValueError: samples of different length, without values, or with one that is not finite.

    >>> generator = np.random.default_rng(0)
    >>> paired_randomisation([0.5, 0.6, 0.7], [0.1, 0.4, 0.6], generator).p_value
    0.25
    """
    a, b = _paired(a, b)
    differences = a - b
    nonzero = differences[differences != 0]
    observed = abs(float(nonzero.sum()))
    # Sums of the same numbers in another order differ by rounding, but equal ones must count.
    threshold = observed - 1e-12 * float(np.abs(nonzero).sum())
    if len(nonzero) <= EXACT_LIMIT:
        patterns = np.arange(2 ** len(nonzero))
        flips = (patterns[:, None] >> np.arange(len(nonzero))) & 1
        sums = nonzero.sum() - 2 * (flips @ nonzero)
        p_value = float(np.mean(np.abs(sums) >= threshold))
    else:
        extreme = _extreme_flips(nonzero, threshold, generator, n_resamples)
        p_value = (1 + extreme) / (1 + n_resamples)
    difference = float(differences.mean())
    return TwoSidedTest(difference, difference, p_value)


def wilcoxon(a: Values, b: Values) -> TwoSidedTest:
    """Wilcoxon's signed-rank test of paired values, zero differences dropped (Yu2020, p < 0.01).

    Args:
        a: ``[n]``, per-query values of one method, pooled over folds.
        b: ``[n]``, those of the other, in the same order.

    Returns:
        The statistic is the smaller of the two rank sums. Without any non-zero difference p is 1.

    Raises:
        ValueError: samples of different length, without values, or with one that is not finite.

    >>> wilcoxon([0.5, 0.6, 0.7, 0.8, 0.4], [0.1, 0.4, 0.6, 0.3, 0.4]).p_value
    0.125
    """
    a, b = _paired(a, b)
    differences = (a - b)[a != b]
    if len(differences):
        # SciPy uses the normal limit if there are zeros; without them, small samples stay exact.
        result = scipy.stats.wilcoxon(differences, alternative="two-sided")
        statistic, p_value = float(result.statistic), float(result.pvalue)
    else:
        statistic, p_value = 0.0, 1.0
    return TwoSidedTest(float((a - b).mean()), statistic, p_value)


def holm(p_values: Values) -> np.ndarray:
    """Holm's step-down adjusted p values, which bound the probability of any false rejection.

    Args:
        p_values: ``[m]``, one per comparison.

    Returns:
        Float64 ``[m]`` in the order given: ``max_{j ≤ i} min(1, (m - j + 1) p_(j))`` for the i-th
        smallest. A hypothesis is rejected at level α if its adjusted value is at most α.

    Raises:
        ValueError: a value is outside [0, 1].

    >>> holm([0.01, 0.04, 0.03])
    array([0.03, 0.06, 0.06])
    """
    p_values = np.asarray(p_values, dtype=np.float64)
    if p_values.ndim != 1 or not ((p_values >= 0) & (p_values <= 1)).all():
        raise ValueError("p values must be a list of numbers between 0 and 1")
    order = np.argsort(p_values, kind="stable")
    scaled = p_values[order] * np.arange(len(p_values), 0, -1)
    adjusted = np.empty_like(p_values)
    adjusted[order] = np.minimum(np.maximum.accumulate(scaled), 1.0)
    return adjusted


def holm_of_known(p_values: Values) -> np.ndarray:
    """:func:`holm` over the p values that there are; NaN stands for a comparison without one, and
    stays.

    >>> holm_of_known([0.01, float("nan"), 0.03])
    array([0.02,  nan, 0.03])
    """
    p_values = np.asarray(p_values, dtype=np.float64)
    adjusted, known = np.full_like(p_values, np.nan), ~np.isnan(p_values)
    adjusted[known] = holm(p_values[known])
    return adjusted


def _extreme_flips(
    differences: np.ndarray, threshold: float, generator: np.random.Generator, n_resamples: int
) -> int:
    """Count the random sign patterns, of ``n_resamples``, whose sum is at least ``threshold``.

    A byte decides the signs of eight differences, so their sums are looked up by byte.
    """
    n, total, extreme = len(differences), differences.sum(), 0
    chunk = max(1, _SIGNS_PER_CHUNK // n)
    n_bytes = -(-n // 8)
    eights = np.zeros((n_bytes, 8))
    eights.flat[:n] = differences
    patterns = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1)
    sums_of_byte = (eights @ patterns.T.astype(np.float64)).ravel()
    first = 256 * np.arange(n_bytes)
    for start in range(0, n_resamples, chunk):
        rows = min(chunk, n_resamples - start)
        drawn = np.frombuffer(generator.bytes(rows * n_bytes), dtype=np.uint8)
        flipped = sums_of_byte[drawn.reshape(rows, n_bytes) + first].sum(axis=1)
        sums = total - 2 * flipped
        extreme += int(np.count_nonzero(np.abs(sums) >= threshold))
    return extreme


def _finite(values: Values) -> np.ndarray:
    values = np.asarray(values, dtype=np.float64)
    if values.ndim != 1 or not len(values):
        raise ValueError("the test needs a list of at least one value")
    if not np.isfinite(values).all():
        raise ValueError("the test needs finite values: leave queries without a value out first")
    return values


def _paired(a: Values, b: Values) -> tuple[np.ndarray, np.ndarray]:
    a, b = _finite(a), _finite(b)
    if len(a) != len(b):
        raise ValueError(f"paired values must match: {len(a)} against {len(b)}")
    return a, b
