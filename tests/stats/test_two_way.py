"""Intervals over queries and starts cover the true mean as often as they say."""

from __future__ import annotations

import numpy as np
import pytest

from directrank.stats.clusters import clustered_mean
from directrank.stats.estimates import mean_interval
from directrank.stats.two_way import (
    OF_CHOICE,
    Crossed,
    difference_between_folds,
    difference_over_queries_and_starts,
    over_queries_and_starts,
)


def crossed(
    stream: np.random.Generator, starts: int, queries: np.ndarray, by_start: float, rest: float
) -> np.ndarray:
    """Values ``[starts, Q]`` with mean 0 of starts that differ, on these queries."""
    own = stream.normal(0, by_start, (starts, 1))
    return own + queries + stream.normal(0, rest, (starts, len(queries)))


def coverage(by_start: float, by_query: float, rest: float) -> tuple[float, float, float]:
    """How often intervals of a mean and a difference hold 0, and how often p is below 0.05."""
    stream = np.random.default_rng(7)
    held, held_difference, rejected, repetitions = 0, 0, 0, 1000
    for _ in range(repetitions):
        queries = stream.normal(0, by_query, 60)
        a, b = (crossed(stream, 5, queries, by_start, rest) for _ in range(2))
        interval = over_queries_and_starts(a).interval()
        estimate = difference_over_queries_and_starts(a, b)
        difference = estimate.interval()
        held += interval.low <= 0 <= interval.high
        held_difference += difference.low <= 0 <= difference.high
        rejected += estimate.p_differs() < 0.05
    return held / repetitions, held_difference / repetitions, rejected / repetitions


@pytest.mark.slow
@pytest.mark.parametrize(
    ("by_start", "by_query", "rest"),
    [(0.3, 1.0, 0.5), (1.0, 1.0, 0.5), (0.02, 1.0, 0.5), (0.3, 0.0, 0.3)],
    ids=["both", "starts above all", "queries above all", "starts alone"],
)
def test_intervals_hold_for_other_queries_and_other_starts(by_start, by_query, rest):
    held, held_difference, rejected = coverage(by_start, by_query, rest)
    assert 0.935 <= held <= 0.985
    assert 0.935 <= held_difference <= 0.985
    assert rejected == pytest.approx(1 - held_difference, abs=1e-3)


def grouped_coverage(respected: bool) -> float:
    """How often the interval of a difference that varies from group to group holds 0."""
    stream, held, repetitions = np.random.default_rng(5), 0, 1000
    groups = np.repeat(np.arange(40), stream.integers(1, 15, 40))
    for _ in range(repetitions):
        queries = stream.normal(0, 1.0, len(groups))
        gap = stream.normal(0, 0.4, 40)[groups]
        a, b = (crossed(stream, 4, queries, 0.02, 0.5) for _ in range(2))
        estimate = difference_over_queries_and_starts(a + gap, b, groups if respected else None)
        interval = estimate.interval()
        held += interval.low <= 0 <= interval.high
    return held / repetitions


@pytest.mark.slow
def test_intervals_of_queries_in_groups_hold_for_other_groups():
    assert 0.93 <= grouped_coverage(respected=True) <= 0.985
    assert grouped_coverage(respected=False) < 0.8


def test_an_interval_over_queries_alone_would_not_hold_for_other_starts():
    """The simulation can fail: this is what the study had before."""
    stream, held = np.random.default_rng(3), 0
    for _ in range(500):
        values = crossed(stream, 5, stream.normal(0, 1.0, 60), 1.0, 0.5)
        interval = mean_interval(values.mean(axis=0))
        held += interval.low <= 0 <= interval.high
    assert held / 500 < 0.7


def test_a_single_start_leaves_the_interval_over_queries():
    values = np.random.default_rng(0).normal(size=40)
    found, expected = over_queries_and_starts(values[None]).interval(), mean_interval(values)
    assert found.mean == pytest.approx(expected.mean)
    assert found.half_width == pytest.approx(expected.half_width)


def test_equal_values_differ_by_nothing():
    values = np.tile(np.linspace(0, 1, 10), (3, 1))
    difference = difference_over_queries_and_starts(values, values)
    assert difference.interval().half_width >= 0
    assert difference.mean == 0
    assert difference.p_differs() == 1


@pytest.mark.parametrize(
    ("a", "b"),
    [(np.zeros((2, 1)), np.zeros((2, 1))), (np.full((2, 3), np.nan), np.zeros((2, 3)))],
)
def test_values_that_say_nothing_are_refused(a, b):
    with pytest.raises(ValueError, match="values must"):
        difference_over_queries_and_starts(a, b)


def test_different_queries_are_refused():
    with pytest.raises(ValueError, match="same queries"):
        difference_over_queries_and_starts(np.zeros((2, 3)), np.zeros((2, 4)))


def five_folds(
    stream: np.random.Generator, trainings: int, by_training: float, sizes: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Two equal methods on groups of queries in five folds, each with trainings of its own."""
    groups = np.repeat(np.arange(len(sizes)), sizes)
    folds = groups % 5
    common = stream.normal(0, 1, len(groups))

    def method() -> np.ndarray:
        own = stream.normal(0, by_training, (trainings, 5))[:, folds]
        of_groups = stream.normal(0, 0.3, len(sizes))[groups]
        return common + of_groups + own + stream.normal(0, 0.3, (trainings, len(groups)))

    return method(), method(), groups, folds


@pytest.mark.slow
@pytest.mark.parametrize("by_training", [0.0, 0.1, 0.5])
@pytest.mark.parametrize("trainings", [3, 5])
def test_tests_keep_their_level_where_each_fold_has_trainings_of_its_own(
    trainings: int, by_training: float
) -> None:
    stream, found, without, studies = np.random.default_rng(11), 0, 0, 1500
    sizes = np.random.default_rng(2).integers(1, 12, 60)
    for _ in range(studies):
        a, b, groups, folds = five_folds(stream, trainings, by_training, sizes)
        found += difference_over_queries_and_starts(a, b, groups, folds).p_differs() < 0.05
        gaps = (a - b).mean(axis=0)
        without += clustered_mean(gaps, groups).p_differs() < 0.05
    assert 0.03 <= found / studies <= 0.065
    if by_training == 0.5:
        assert without / studies > 0.15  # over queries alone, as the study once tested


@pytest.mark.slow
def test_trainings_of_a_fold_say_more_together_than_those_of_all_folds_at_once() -> None:
    """Five folds of three trainings have ten degrees of freedom, not two."""
    stream = np.random.default_rng(3)
    freedoms = []
    for _ in range(200):
        a, b, groups, folds = five_folds(stream, 3, 1.0, np.ones(400, int))
        freedoms.append(
            [
                difference_over_queries_and_starts(a, b, groups, some).freedom
                for some in (folds, None)
            ]
        )
    by_fold, at_once = np.median(freedoms, axis=0)
    assert by_fold == pytest.approx(20, rel=0.35)
    assert at_once < 8


def test_all_pairs_are_those_that_are_computed_one_by_one() -> None:
    stream = np.random.default_rng(8)
    sizes = stream.integers(1, 9, 40)
    a, b, groups, folds = five_folds(stream, 3, 0.1, sizes)
    c = five_folds(stream, 5, 0.1, sizes)[0]  # of more trainings
    methods = [a, b, c, c + 0.2]
    places = np.triu_indices(4, 1)
    table = Crossed(methods, groups, folds).differences(*places)
    for row, first, second in zip(table.itertuples(), *places, strict=True):
        one = difference_over_queries_and_starts(methods[first], methods[second], groups, folds)
        assert row.difference == pytest.approx(one.mean)
        assert row.error == pytest.approx(one.error)
        assert row.freedom == pytest.approx(one.freedom)
        assert row.p_value == pytest.approx(one.p_differs())


def test_a_group_in_two_folds_is_one_group_with_two_trainings() -> None:
    stream = np.random.default_rng(9)
    a, b = stream.normal(0, 1, (2, 3, 60))
    groups, folds = np.arange(60) // 3, np.arange(60) % 2
    found = difference_over_queries_and_starts(a, b, groups, folds)
    order = stream.permutation(60)
    again = difference_over_queries_and_starts(
        a[:, order], b[:, order], groups[order], folds[order]
    )
    assert found.error == pytest.approx(again.error)
    assert found.error >= clustered_mean((a - b).mean(axis=0), groups).error


@pytest.mark.slow
@pytest.mark.parametrize("by_training", [0.0, 0.1, 0.5])
def test_one_training_on_each_of_five_folds_keeps_the_level(by_training: float) -> None:
    stream, found, alone, studies = np.random.default_rng(5), 0, 0, 2000
    sizes = np.random.default_rng(2).integers(1, 12, 60)
    for _ in range(studies):
        a, b, groups, folds = five_folds(stream, 1, by_training, sizes)
        found += difference_between_folds(a, b, groups, folds).p_differs() < 0.05
        alone += clustered_mean((a - b)[0], groups).p_differs() < 0.05
    assert 0.035 <= found / studies <= 0.065
    if by_training == 0.5:
        assert alone / studies > 0.3  # over queries alone


def test_folds_that_share_groups_or_are_two_say_nothing() -> None:
    a, b = np.random.default_rng(1).normal(size=(2, 1, 12))
    folds, groups = np.repeat([1, 2, 3], 4), np.arange(12) // 2
    assert difference_between_folds(a, b, groups, folds).error > 0
    assert np.isnan(difference_between_folds(a, b, np.zeros(12), folds).error)
    assert np.isnan(difference_between_folds(a, b, None, np.minimum(folds, 2)).error)
    assert difference_between_folds(a, b, None, np.minimum(folds, 2)).mean == pytest.approx(
        float((a - b).mean())
    )


def with_one_choice(stream: np.random.Generator, queries: np.ndarray) -> np.ndarray:
    """Values of five trainings on each of five folds, which share a choice."""
    by_choice, own = OF_CHOICE**0.5, (1 - OF_CHOICE) ** 0.5
    of_fold = stream.normal(0, by_choice, 5) + stream.normal(0, own, (5, 5))
    return np.repeat(of_fold, len(queries) // 5, axis=1) + queries


def test_tests_keep_their_level_where_trainings_of_a_fold_share_a_choice() -> None:
    stream, folds, repetitions = np.random.default_rng(11), np.repeat(np.arange(5), 20), 1500
    rejected = {True: 0, False: 0}
    for _ in range(repetitions):
        queries = stream.normal(0, 1.0, 100)
        a, b = (with_one_choice(stream, queries) for _ in range(2))
        for known in rejected:
            estimate = difference_over_queries_and_starts(a, b, None, folds, (known, known))
            rejected[known] += estimate.p_differs() < 0.05
    assert 0.03 <= rejected[True] / repetitions <= 0.06
    assert rejected[False] / repetitions > 0.08  # the simulation can fail


def test_a_shared_choice_adds_its_share_to_the_variance_of_a_mean() -> None:
    values = np.array([[0.1] * 4, [0.3] * 4])  # nothing but trainings vary
    alone = over_queries_and_starts(values)
    shared = over_queries_and_starts(values, one_choice=True)
    # Of two trainings: variance (1 - share) / 2 becomes (1 - share) / 2 + share.
    times = ((1 - OF_CHOICE) / 2 + OF_CHOICE) / ((1 - OF_CHOICE) / 2)
    assert shared.error == pytest.approx(alone.error * times**0.5)
    assert shared.freedom == pytest.approx(alone.freedom)
    other = np.array([[0.2] * 4, [0.2] * 4])
    difference = Crossed([values, other], one_choice=[True, False]).differences([0], [1])
    assert difference["error"].item() == pytest.approx(shared.error)
