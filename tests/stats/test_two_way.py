"""Intervals over queries and starts cover the true mean as often as they say."""

from __future__ import annotations

import numpy as np
import pytest

from directrank.stats.intervals import mean_interval
from directrank.stats.two_way import (
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
