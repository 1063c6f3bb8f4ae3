"""Errors of means over groups of values that belong together."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from directrank.stats.clusters import clustered_mean
from directrank.stats.estimates import of_mean
from directrank.stats.tests import paired_randomisation

#: Sizes of groups: equal, and as uneven as those of movie queries, the largest a tenth of all.
EVEN = np.full(40, 8)
UNEVEN = np.round(60 * 0.93 ** np.arange(80)).astype(int) + 1


def test_groups_of_one_value_are_independent_values():
    values = np.random.default_rng(1).normal(size=50)
    clustered, plain = clustered_mean(values, np.arange(50)), of_mean(values)
    assert clustered.mean == plain.mean
    assert clustered.error == pytest.approx(plain.error)
    assert clustered.freedom == pytest.approx(49)


def test_values_that_are_repeated_count_once():
    values = np.random.default_rng(2).normal(size=12)
    groups = np.repeat(np.arange(12), 5)
    clustered, plain = clustered_mean(np.repeat(values, 5), groups), of_mean(values)
    assert clustered.mean == pytest.approx(plain.mean)
    assert clustered.error == pytest.approx(plain.error)
    assert clustered.freedom == pytest.approx(11)


def test_degrees_of_freedom_are_those_of_the_matrices():
    from directrank.stats.clusters import _freedom

    for sizes, rho in ((UNEVEN, 0.3), (EVEN, 0.0), (np.array([3, 1, 9]), 1.0)):
        weight = 1 / (1 - sizes / sizes.sum())
        m = np.eye(len(sizes)) - np.outer(sizes, np.ones(len(sizes))) / sizes.sum()
        covariance = m @ np.diag(sizes + rho * sizes * (sizes - 1)) @ m.T
        product = np.diag(weight) @ covariance
        expected = np.trace(product) ** 2 / np.trace(product @ product)
        (found,) = _freedom(sizes.astype(float), np.array([rho]))
        assert found == pytest.approx(expected)


@pytest.mark.parametrize("sizes", [EVEN, UNEVEN], ids=["even", "uneven"])
@pytest.mark.parametrize("share", [0.0, 0.2, 0.6])
def test_the_nominal_level_is_kept(sizes, share):
    """A t test at 5 % of a mean that is 0 in truth rejects between 4 and 6 % of the time."""
    rng = np.random.default_rng(int(10 * share) + len(sizes))
    groups = np.repeat(np.arange(len(sizes)), sizes)
    rejected, tries = 0, 2000
    for _ in range(tries):
        common = rng.normal(size=len(sizes))[groups]
        values = math.sqrt(share) * common + math.sqrt(1 - share) * rng.normal(size=len(groups))
        rejected += clustered_mean(values, groups).p_differs() < 0.05
    assert 0.04 <= rejected / tries <= 0.06


def test_taking_related_values_as_independent_would_find_too_much():
    rng = np.random.default_rng(5)
    groups = np.repeat(np.arange(40), EVEN)
    rejected = 0
    for _ in range(500):
        values = rng.normal(size=40)[groups] + rng.normal(size=len(groups))
        rejected += stats.ttest_1samp(values, 0).pvalue < 0.05
    assert rejected / 500 > 0.25


@pytest.mark.parametrize("sizes", [EVEN, UNEVEN], ids=["even", "uneven"])
def test_signs_flipped_by_group_keep_the_nominal_level(sizes):
    rng = np.random.default_rng(6)
    groups = np.repeat(np.arange(len(sizes)), sizes)
    rejected, tries = 0, 2000
    for _ in range(tries):
        values = rng.normal(size=len(sizes))[groups] + rng.normal(size=len(groups))
        sums = np.bincount(groups, values)
        rejected += paired_randomisation(sums, np.zeros(len(sums)), rng, 199).p_value <= 0.05
    assert 0.04 <= rejected / tries <= 0.06


def test_a_single_group_tells_nothing_of_its_error():
    estimate = clustered_mean(np.array([1.0, 2.0, 4.0]), np.zeros(3))
    assert estimate.mean == pytest.approx(7 / 3)
    assert math.isnan(estimate.error)


def test_groups_may_have_names():
    values = np.array([1.0, 2.0, 4.0, 5.0])
    by_name = clustered_mean(values, np.array(["b", "b", "a", "a"]))
    assert by_name == clustered_mean(values, np.array([7, 7, 3, 3]))


@pytest.mark.parametrize(
    ("values", "groups"),
    [([], []), ([1.0, math.nan], [1, 2]), ([1.0, 2.0], [1])],
)
def test_values_without_sense_are_refused(values, groups):
    with pytest.raises(ValueError, match=r"finite values|groups"):
        clustered_mean(np.array(values), np.array(groups))
