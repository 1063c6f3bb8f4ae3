"""Confidence intervals, against tables of quantiles and against simulation."""

import numpy as np
import pytest

from directrank.stats.estimates import mean_interval


def test_students_interval_of_ten_trials_uses_the_tabulated_quantile():
    values = np.array([0.41, 0.44, 0.43, 0.40, 0.46, 0.45, 0.42, 0.43, 0.44, 0.42])
    interval = mean_interval(values)
    deviations = [value - sum(values) / 10 for value in values]
    s = (sum(d * d for d in deviations) / 9) ** 0.5
    assert interval.mean == pytest.approx(0.43)
    assert interval.half_width == pytest.approx(2.262157 * s / 10**0.5, rel=1e-6)
    assert (interval.low + interval.high) / 2 == pytest.approx(interval.mean)
    assert (interval.n, interval.level) == (10, 0.95)


def test_students_interval_covers_the_mean_as_often_as_it_says():
    samples = np.random.default_rng(7).normal(3.0, 2.0, size=(2000, 5))
    covered = np.mean([abs(mean_interval(row).mean - 3) <= mean_interval(row).half_width
                       for row in samples])  # fmt: skip
    assert covered == pytest.approx(0.95, abs=0.015)


def test_a_higher_level_is_wider():
    values = [1.0, 2.0, 4.0]
    assert mean_interval(values, 0.99).half_width > mean_interval(values, 0.9).half_width


def test_one_value_has_a_mean_but_no_known_spread():
    interval = mean_interval([0.5])
    assert interval.mean == 0.5
    assert np.isnan(interval.half_width)
    assert np.isnan(interval.low)


@pytest.mark.parametrize("values", [[], [0.1, float("nan")], [[0.1, 0.2]]])
def test_values_that_have_no_interval_are_refused(values):
    with pytest.raises(ValueError, match="estimate needs"):
        mean_interval(values)


@pytest.mark.parametrize("level", [0, 1, 95])
def test_a_level_outside_of_0_and_1_is_refused(level):
    with pytest.raises(ValueError, match="level"):
        mean_interval([1.0, 2.0], level)
