"""The correction over all pairs of methods by random signs of groups."""

import itertools

import numpy as np
import pandas as pd
import pytest

from directrank.stats.clusters import clustered_mean
from directrank.stats.group_signs import GroupSigns, step_down
from directrank.stats.ranks import all_pairs, equivalence


def made(stream, sizes, methods, between=0.3, means=None):
    """Values of methods on queries that form groups of ``sizes``, and the groups."""
    groups = np.repeat(np.arange(len(sizes)), sizes)
    shared = stream.normal(size=(len(groups), 1))  # a query is easy or hard for all methods
    values = shared + between * stream.normal(size=(len(sizes), methods))[groups]
    values += stream.normal(size=values.shape)
    return values + (0 if means is None else np.asarray(means)), groups


def statistics(values, groups):
    estimates = [
        clustered_mean(values[:, a] - values[:, b], groups)
        for a, b in itertools.combinations(range(values.shape[1]), 2)
    ]
    return np.array([estimate.mean / estimate.error for estimate in estimates])


def test_statistics_under_signs_are_those_of_values_with_these_signs():
    values, groups = made(np.random.default_rng(0), [3, 1, 7, 4, 2, 2], 4)
    signs = GroupSigns(values, groups, draws=5)
    drawn = signs._drawn(signs.sums)
    for flips, row in zip(signs.signs, drawn, strict=True):
        differences = values - values.mean(axis=1, keepdims=True)
        own = np.abs(statistics(flips[groups][:, None] * differences, groups))
        assert np.allclose(row, own, rtol=1e-5)


def test_a_single_pair_gets_the_p_value_of_its_own_draws():
    values, groups = made(np.random.default_rng(1), [5, 3, 8, 2, 6, 4, 1, 9], 2)
    signs = GroupSigns(values, groups, draws=99)
    (t,) = statistics(values, groups)
    extreme = (signs._drawn(signs.sums)[:, 0] >= np.float32(abs(t))).sum()
    assert signs.differences(np.array([t]))[0] == (1 + extreme) / 100


def test_step_down_compares_with_the_largest_of_the_tests_that_are_left():
    stream = np.random.default_rng(2)
    observed, drawn = stream.normal(size=6) ** 2, stream.normal(size=(50, 6)) ** 2
    order, expected, least = np.argsort(-observed), np.empty(6), 0.0
    for place, test in enumerate(order):
        reached = (drawn[:, order[place:]].max(axis=1) >= observed[test]).sum()
        least = max(least, (1 + reached) / 51)
        expected[test] = least
    assert np.allclose(step_down(observed, drawn), expected)


def test_a_pair_of_equal_values_does_not_differ():
    values, groups = made(np.random.default_rng(3), [4] * 9, 3)
    values[:, 1] = values[:, 0]
    pairs = all_pairs(pd.DataFrame(values), groups)
    assert pairs["p_corrected"].iloc[0] == 1


@pytest.mark.parametrize("sizes", [[2, 9, 1, 30, 4] * 8, [60, 45] + [3] * 40])
def test_any_false_difference_is_found_in_one_of_twenty_studies(sizes):
    """Six equal methods, 15 pairs; 2 000 studies have a standard error of half a per cent."""
    stream = np.random.default_rng(4)
    false = 0
    for _ in range(2000):
        values, groups = made(stream, sizes, 6)
        signs = GroupSigns(values, groups, draws=199)
        sums = signs.sums - np.outer(signs.share, signs.sums.sum(axis=0))
        error = np.sqrt(signs.weight @ (sums[:, signs.a] - sums[:, signs.b]) ** 2)
        total = signs.sums.sum(axis=0)
        false += (signs.differences((total[signs.a] - total[signs.b]) / error) <= 0.05).any()
    assert 0.04 <= false / 2000 <= 0.06


def test_methods_that_resemble_each_other_are_told_apart_where_holm_cannot():
    """Thirty methods with nearly the same values: their pairs are few independent questions."""
    stream = np.random.default_rng(5)
    sizes = stream.integers(1, 30, 80)
    values, groups = made(stream, sizes, 2, means=[0.0, 0.35])
    near = 0.05 * stream.normal(size=(len(values), 30))
    many = values[:, [0] * 15 + [1] * 15] + near
    frame = pd.DataFrame(many)
    signs = GroupSigns(many, groups)
    pairs = all_pairs(frame, groups, signs)
    across = (pairs["a"] < 15) & (pairs["b"] >= 15)
    assert (pairs["p_corrected"][across] < 0.05).all()
    assert (pairs["p_corrected"][~across] >= 0.05).all()
    alike = equivalence(pairs, 0.1, signs)
    assert (alike[~across.to_numpy()] < 0.05).all()
    assert (alike[across.to_numpy()] > 0.9).all()


def test_a_study_at_the_margin_is_equivalent_in_at_most_one_of_twenty():
    stream = np.random.default_rng(6)
    false = 0
    for _ in range(400):
        values, groups = made(stream, [2, 9, 1, 14, 4] * 8, 2, means=[0.0, 0.2])
        signs = GroupSigns(values, groups, draws=199)
        pairs = all_pairs(pd.DataFrame(values), groups, signs)
        false += bool((equivalence(pairs, 0.2, signs) <= 0.05).any())
    assert false / 400 <= 0.07
