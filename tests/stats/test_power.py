"""What a sample could have shown, against how often simulated samples show it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from directrank.stats import estimates
from directrank.stats.power import smallest_difference, smallest_margin


@pytest.mark.parametrize(
    ("n", "level", "power"), [(8, 0.05, 0.8), (40, 0.005, 0.8), (40, 0.05, 0.6)]
)
def test_the_smallest_difference_is_found_as_often_as_promised(
    n: int, level: float, power: float
) -> None:
    error = 0.3 / math.sqrt(n)
    true = smallest_difference(error, n - 1, level, power)
    samples = np.random.default_rng(n).normal(true, 0.3, (20_000, n))
    found = stats.ttest_1samp(samples, 0.0, axis=1).pvalue < level
    assert np.mean(found) == pytest.approx(power, abs=0.012)


@pytest.mark.parametrize(
    ("n", "level", "promised"), [(40, 0.05, 0.8), (100, 0.01, 0.8), (8, 0.05, 0.8)]
)
def test_equivalence_within_the_smallest_margin_is_shown_as_often_as_promised(
    n: int, level: float, promised: float
) -> None:
    margin = smallest_margin(0.3 / math.sqrt(n), n - 1, level)
    samples = np.random.default_rng(n).normal(0.0, 0.3, (4000, n))
    shown = [estimates.of_mean(row).p_within(-margin, margin) < level for row in samples]
    assert promised - 0.015 < np.mean(shown) < promised + 0.08


def test_many_degrees_of_freedom_are_as_good_as_a_normal_distribution() -> None:
    assert smallest_difference(1.0, 50_000) == pytest.approx(
        smallest_difference(1.0, math.inf), 1e-3
    )
    assert smallest_margin(1.0, 50_000) == pytest.approx(smallest_margin(1.0, math.inf), 1e-3)
    normal = stats.norm.ppf(0.975) + stats.norm.ppf(0.8)
    assert smallest_difference(2.0, math.inf) == pytest.approx(2 * normal, 1e-4)


def test_without_an_error_nothing_is_known_and_without_any_everything() -> None:
    assert math.isnan(smallest_difference(math.nan, 3))
    assert math.isnan(smallest_margin(math.nan, 3))
    assert smallest_difference(0.0, math.inf) == smallest_margin(0.0, math.inf) == 0


@pytest.mark.parametrize(("level", "power"), [(0.0, 0.8), (0.5, 0.4), (0.05, 1.0)])
def test_a_level_or_power_that_cannot_be_is_refused(level: float, power: float) -> None:
    with pytest.raises(ValueError, match="power"):
        smallest_difference(1.0, 10, level, power)
