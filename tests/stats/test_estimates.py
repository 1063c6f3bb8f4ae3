"""Estimates: their p values against SciPy's tests, and how often equivalence is shown."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from directrank.stats import estimates
from directrank.stats.estimates import Estimate


def test_p_values_of_a_difference_are_those_of_scipys_welch_test() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.normal(0.5, 0.1, 7), rng.normal(0.45, 0.02, 4)
    ours, theirs = estimates.of_difference(a, b), stats.ttest_ind(a, b, equal_var=False)
    assert ours.p_differs() == pytest.approx(theirs.pvalue)
    assert ours.freedom == pytest.approx(theirs.df)
    interval, expected = ours.interval(0.9), theirs.confidence_interval(0.9)
    assert (interval.low, interval.high) == pytest.approx((expected.low, expected.high))
    for bound in (-0.1, 0.02, 0.3):
        above = stats.ttest_ind(a - bound, b, equal_var=False, alternative="greater").pvalue
        below = stats.ttest_ind(a - bound, b, equal_var=False, alternative="less").pvalue
        assert ours.p_above(bound) == pytest.approx(above)
        assert ours.p_below(bound) == pytest.approx(below)
        assert ours.p_differs(bound) == pytest.approx(2 * min(above, below))


def test_samples_that_do_not_vary_differ_for_certain_or_not_at_all() -> None:
    assert estimates.of_difference([0.5, 0.5], [0.5, 0.5, 0.5]).p_differs() == 1.0
    assert estimates.of_difference([0.6, 0.6], [0.5, 0.5]).p_differs() == 0.0


def test_p_values_of_a_mean_are_those_of_scipys_t_test() -> None:
    values = np.random.default_rng(2).normal(0.02, 0.1, 30)
    ours = estimates.of_mean(values)
    assert ours.p_differs(0.05) == pytest.approx(stats.ttest_1samp(values, 0.05).pvalue)
    low, high = (
        stats.ttest_1samp(values, bound, alternative=side).pvalue
        for bound, side in ((-0.03, "greater"), (0.06, "less"))
    )
    assert ours.p_within(-0.03, 0.06) == pytest.approx(max(low, high))
    assert ours.p_within(-0.03, math.inf) == pytest.approx(low)


@pytest.mark.parametrize("level", [0.05, 0.2])
def test_equivalence_is_shown_where_the_interval_lies_within_the_margin(level: float) -> None:
    rng = np.random.default_rng(3)
    for _ in range(200):
        estimate = estimates.of_mean(rng.normal(0.005, 0.02, 25))
        interval = estimate.interval(1 - 2 * level)
        within = interval.low > -0.01 and interval.high < 0.01
        assert (estimate.p_within(-0.01, 0.01) < level) == within


@pytest.mark.parametrize("true", [0.01, -0.01])
def test_a_difference_as_large_as_the_margin_is_rarely_called_equivalent(true: float) -> None:
    rng = np.random.default_rng(4)
    samples = rng.normal(true, 0.02, (4000, 40))
    shown = [estimates.of_mean(sample).p_within(-0.01, 0.01) < 0.05 for sample in samples]
    assert 0.03 < np.mean(shown) < 0.065


def test_a_single_value_allows_no_test_and_no_spread_leaves_none_to_chance() -> None:
    single = estimates.of_mean([0.3])
    assert math.isnan(single.p_differs())
    assert math.isnan(single.p_within(0.0, 1.0))
    assert math.isnan(single.interval().half_width)
    assert math.isnan(estimates.of_difference([0.3, 0.4], [0.3]).error)
    certain = Estimate(0.2, 0.0)
    assert certain.p_differs() == 0
    assert certain.p_differs(0.2) == 1
    assert certain.p_within(0.1, 0.3) == certain.p_within(0.2, 0.2) == 0
    assert certain.p_within(0.3, 0.4) == 1
    assert certain.interval().half_width == 0


def test_what_differs_by_rounding_is_a_tie() -> None:
    assert Estimate(1e-12, 0.0).p_above(0.0) == 1
    assert Estimate(1e-12, 0.0).p_differs() == 1
    assert Estimate(1e-6, 0.0).p_above(0.0) == 0


def test_the_interval_of_a_ratio_covers_the_true_one() -> None:
    rng = np.random.default_rng(5)
    covered = []
    for _ in range(1000):
        slow, fast = rng.lognormal(math.log(10), 0.1, 8), rng.lognormal(math.log(2), 0.2, 12)
        interval = estimates.of_ratio(slow, fast).interval()
        covered.append(interval.low <= 5 <= interval.high)
    assert 0.92 < np.mean(covered) < 0.98


def test_the_interval_of_a_paired_ratio_covers_the_true_one() -> None:
    rng = np.random.default_rng(8)
    covered = []
    for _ in range(1000):
        theirs = rng.uniform(0.1, 0.5, 40)
        ours = 1.2 * theirs + rng.normal(0, 0.1, 40)
        interval = estimates.of_paired_ratio(ours, theirs).interval()
        covered.append(interval.low <= 1.2 <= interval.high)
    assert 0.93 < np.mean(covered) < 0.97
    with pytest.raises(ValueError, match="pairs"):
        estimates.of_paired_ratio([1.0], [1.0, 2.0])


@pytest.mark.parametrize("values", [[], [math.nan, 1.0], [[1.0, 2.0]]])
def test_what_is_no_list_of_finite_values_is_refused(values: list) -> None:
    with pytest.raises(ValueError, match="an estimate needs"):
        estimates.of_mean(values)


def test_a_ratio_of_what_is_not_positive_is_refused() -> None:
    with pytest.raises(ValueError, match="positive"):
        estimates.of_ratio([1.0, 2.0], [0.0, 1.0])
