"""Friedman, Nemenyi and all pairs, against printed tables and computations by hand."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from directrank.stats.clusters import clustered_mean
from directrank.stats.ranks import all_pairs, cliques, critical_difference, equivalence, friedman
from directrank.stats.tests import holm


def test_friedman_is_its_formula_where_nothing_ties():
    values = np.array([[0.9, 0.5, 0.1, 0.2], [0.8, 0.7, 0.3, 0.4], [0.3, 0.6, 0.2, 0.1]])
    mean_ranks = np.array([4 / 3, 5 / 3, 11 / 3, 10 / 3])
    n, k = values.shape
    # Demšar (2006), section 3.2.2
    statistic = 12 * n / (k * (k + 1)) * ((mean_ranks**2).sum() - k * (k + 1) ** 2 / 4)
    result = friedman(values)
    assert result.mean_ranks == pytest.approx(mean_ranks)
    assert result.statistic == pytest.approx(statistic)
    assert result.p_value == pytest.approx(stats.chi2.sf(statistic, k - 1))
    assert result.blocks == n


def test_tied_methods_share_their_rank():
    assert friedman(np.array([[0.5, 0.5, 0.1], [0.2, 0.2, 0.9]])).mean_ranks == pytest.approx(
        [(1.5 + 2.5) / 2, (1.5 + 2.5) / 2, 2.0]
    )


def test_methods_that_always_tie_are_not_told_apart():
    result = friedman(np.full((4, 3), 0.3))
    assert (result.statistic, result.p_value) == (0.0, 1.0)
    assert result.mean_ranks == pytest.approx([2, 2, 2])


@pytest.mark.parametrize(
    "values", [np.zeros((3, 2)), np.zeros((1, 3)), np.array([[0, 1, np.nan], [1, 2, 3]])]
)
def test_friedman_refuses_what_it_cannot_rank(values: np.ndarray):
    with pytest.raises(ValueError, match="Friedman"):
        friedman(values)


@pytest.mark.parametrize(
    ("level", "methods", "quantile"),
    # Demšar (2006), table 5a
    [(0.05, 2, 1.960), (0.05, 4, 2.569), (0.05, 10, 3.164), (0.10, 2, 1.645), (0.10, 7, 2.693)],
)
def test_the_critical_difference_has_the_printed_quantiles(
    level: float, methods: int, quantile: float
):
    scale = math.sqrt(methods * (methods + 1) / (6 * 30))
    assert critical_difference(methods, 30, level) / scale == pytest.approx(quantile, abs=6e-4)


@pytest.mark.parametrize("arguments", [(1, 10, 0.05), (3, 0, 0.05), (3, 10, 1.0)])
def test_a_critical_difference_of_nothing_is_refused(arguments: tuple[int, int, float]):
    with pytest.raises(ValueError, match="critical difference"):
        critical_difference(*arguments)


def test_cliques_are_the_largest_groups_and_none_lies_within_another():
    assert cliques([1.0, 1.5, 2.4, 2.6, 5.0, 5.2], 1.2) == [(0, 1), (1, 3), (4, 5)]
    assert cliques([1.0, 3.0, 5.0], 1.0) == []
    assert cliques([1.0, 2.0, 3.0], 2.0) == [(0, 2)]


def test_every_pair_is_tested_and_corrected_together():
    generator = np.random.default_rng(3)
    base = generator.normal(size=40)
    values = pd.DataFrame({"a": base, "b": base - 0.4 + generator.normal(0, 0.1, 40), "c": base})
    pairs = all_pairs(values)
    assert pairs[["a", "b"]].to_numpy().tolist() == [[0, 1], [0, 2], [1, 2]]
    clear = stats.wilcoxon(values["a"], values["b"]).pvalue
    assert pairs["p_value"].to_numpy() == pytest.approx([clear, 1.0, clear])
    assert pairs["p_corrected"].to_numpy() == pytest.approx(holm(pairs["p_value"]))
    assert pairs["difference"].to_numpy() == pytest.approx(
        [(values["a"] - values["b"]).mean(), 0, (values["b"] - values["c"]).mean()]
    )
    assert pairs["effect"].iloc[0] > 0.9
    assert pairs["effect"].iloc[2] < -0.9


def test_a_single_method_has_no_pairs():
    with pytest.raises(ValueError, match="two methods"):
        all_pairs(pd.DataFrame({"a": [0.1, 0.2]}))


def test_pairs_are_equivalent_where_two_one_sided_tests_say_so():
    rng = np.random.default_rng(4)
    base = rng.normal(0.5, 0.1, 300)
    values = pd.DataFrame(
        {
            "a": base + rng.normal(0, 0.01, 300),
            "b": base + rng.normal(0, 0.01, 300),
            "c": base + rng.normal(0.03, 0.01, 300),
        }
    )
    pairs = all_pairs(values)
    p_values = equivalence(pairs, 0.01)
    for row, p in zip(pairs.itertuples(), p_values, strict=True):
        gaps = values.iloc[:, row.a] - values.iloc[:, row.b]
        assert row.error == pytest.approx(stats.sem(gaps))
        sides = [
            stats.ttest_1samp(gaps, -0.01, alternative="greater").pvalue,
            stats.ttest_1samp(gaps, 0.01, alternative="less").pvalue,
        ]
        assert p >= max(sides) * (1 - 1e-9)  # corrected
    assert (p_values < 0.05).tolist() == [True, False, False]
    assert (pairs["p_corrected"] < 0.05).tolist() == [False, True, True]


def test_pairs_of_related_blocks_have_errors_by_group():
    rng = np.random.default_rng(5)
    groups = np.repeat(np.arange(30), 10)
    values = pd.DataFrame(rng.normal(size=(30, 3))[groups] + 0.1 * rng.normal(size=(300, 3)))
    alone, related = all_pairs(values), all_pairs(values, groups)
    assert (related["error"] > 2.5 * alone["error"]).all()
    expected = clustered_mean((values[0] - values[1]).to_numpy(), groups)
    assert related["p_value"].iloc[0] == expected.p_differs()
