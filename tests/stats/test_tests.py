"""Significance tests, each against a computation that shares no code with it."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from directrank.stats.tests import (
    EXACT_LIMIT,
    holm,
    paired_randomisation,
    wilcoxon,
)
from directrank.system.seeds import numpy_stream


def sample(n: int, seed: int = 0, shift: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    base = generator.uniform(0, 1, n)
    return base + generator.normal(shift, 0.1, n), base + generator.normal(0, 0.1, n)


def test_exact_randomisation_counts_every_sign_pattern():
    a, b = sample(9, shift=0.05)
    differences = a - b
    observed = abs(differences.sum())
    patterns = itertools.product([1, -1], repeat=9)
    sums = [abs(math.fsum(s * d for s, d in zip(p, differences, strict=True))) for p in patterns]
    expected = sum(value >= observed - 1e-12 for value in sums) / 2**9
    assert paired_randomisation(a, b, np.random.default_rng(0)).p_value == expected


def test_exact_randomisation_agrees_with_scipy():
    a, b = sample(12, seed=3, shift=0.08)
    reference = stats.permutation_test(
        (a, b), lambda x, y: np.mean(x - y), permutation_type="samples", n_resamples=np.inf
    )
    result = paired_randomisation(a, b, np.random.default_rng(0))
    assert result.p_value == pytest.approx(reference.pvalue)


@pytest.mark.parametrize("n", [8, EXACT_LIMIT + 4])
def test_equal_sums_count_as_extreme_in_spite_of_rounding(n):
    # Sums of tenths differ in the last bit with their order, those of whole numbers do not.
    for seed in range(20):
        whole = np.random.default_rng(seed).integers(-6, 10, n)
        p_values = {
            paired_randomisation(
                whole * unit, np.zeros(n), np.random.default_rng(0), n_resamples=2000
            ).p_value
            for unit in (1, 0.1, 0.7)
        }
        assert len(p_values) == 1


def test_sampled_randomisation_approaches_the_exact_value():
    a, b = sample(EXACT_LIMIT, seed=6, shift=0.05)
    exact = paired_randomisation(a, b, np.random.default_rng(0)).p_value
    # The same differences with two more that are tiny: no longer exact, hardly another test.
    a, b = np.append(a, [1e-9, 0.0]), np.append(b, [0.0, 1e-9])
    sampled = paired_randomisation(a, b, np.random.default_rng(0), n_resamples=200_000).p_value
    assert 0.01 < exact < 0.9
    assert sampled == pytest.approx(exact, abs=4 * math.sqrt(exact * (1 - exact) / 200_000))


def test_sampled_randomisation_agrees_with_the_normal_limit():
    a, b = sample(3000, seed=11, shift=0.005)
    differences = a - b
    z = differences.sum() / math.sqrt((differences**2).sum())
    result = paired_randomisation(a, b, np.random.default_rng(1), n_resamples=50_000)
    assert result.p_value == pytest.approx(2 * stats.norm.sf(abs(z)), abs=0.01)


def test_sampled_randomisation_is_a_function_of_its_stream():
    a, b = sample(100)

    def p_value(*names: str) -> float:
        return paired_randomisation(a, b, numpy_stream(*names), n_resamples=999).p_value

    assert p_value("claims", "one") == p_value("claims", "one")
    assert p_value("claims", "one") != p_value("claims", "two")


def test_sampled_randomisation_never_gives_zero():
    a = np.linspace(0, 1, 500)
    result = paired_randomisation(a + 1, a, np.random.default_rng(0), n_resamples=999)
    assert result.p_value == 1 / 1000


def test_randomisation_rejects_as_often_as_it_says_where_nothing_differs():
    generator = np.random.default_rng(13)
    rejected = 0
    for _ in range(400):
        a, b = generator.normal(size=(2, 30))
        rejected += paired_randomisation(a, b, generator, n_resamples=399).p_value <= 0.05
    assert rejected / 400 == pytest.approx(0.05, abs=0.035)


def test_wilcoxon_agrees_with_counting_rank_sums():
    a = np.array([1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30])
    b = np.array([0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29])
    differences = a - b
    ranks = np.empty(9)
    ranks[np.argsort(abs(differences))] = np.arange(1, 10)
    negative = ranks[differences < 0].sum()
    as_extreme = sum(
        min(total, 45 - total) <= negative
        for total in (
            sum(itertools.compress(range(1, 10), pattern))
            for pattern in itertools.product([0, 1], repeat=9)
        )
    )
    result = wilcoxon(a, b)
    assert result.statistic == negative
    assert result.p_value == pytest.approx(as_extreme / 2**9)


def test_wilcoxon_drops_zero_differences_and_gives_one_where_all_are_zero():
    a, b = sample(40, shift=0.1)
    padded = wilcoxon(np.append(a, [0.3] * 5), np.append(b, [0.3] * 5))
    assert padded.p_value == pytest.approx(wilcoxon(a, b).p_value)
    assert wilcoxon([0.1, 0.2], [0.1, 0.2]).p_value == 1.0


def test_holm_multiplies_by_the_hypotheses_that_are_left():
    # Worked by hand: sorted .005 .01 .03 .04 times 4 3 2 1 = .02 .03 .06 .04, then never falling.
    adjusted = holm([0.01, 0.04, 0.03, 0.005])
    assert adjusted == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]) == pytest.approx([1.0, 1.0])
    assert len(holm([])) == 0


def test_holm_rejects_the_same_as_the_step_down_procedure():
    generator = np.random.default_rng(2)
    for _ in range(50):
        p = generator.uniform(0, 0.1, 7)
        rejected = set()
        for step, index in enumerate(np.argsort(p)):
            if p[index] > 0.05 / (7 - step):
                break
            rejected.add(int(index))
        assert set(np.flatnonzero(holm(p) <= 0.05).tolist()) == rejected


def test_every_test_changes_sign_with_its_arguments():
    a, b = sample(30, shift=0.03)
    for test in (wilcoxon, lambda x, y: paired_randomisation(x, y, numpy_stream("t"), 999)):
        forth, back = test(a, b), test(b, a)
        assert forth.difference == -back.difference
        assert forth.p_value == pytest.approx(back.p_value)


@pytest.mark.parametrize(
    "compare", [wilcoxon, lambda a, b: paired_randomisation(a, b, np.random.default_rng(0))]
)
def test_samples_that_cannot_be_paired_are_refused(compare):
    with pytest.raises(ValueError, match="must match"):
        compare([0.1, 0.2], [0.1])
    with pytest.raises(ValueError, match="finite"):
        compare([0.1, float("nan")], [0.1, 0.2])
