"""What is said of pairs of methods, and which may be the best: as often wrong as is promised."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from directrank.stats.decisions import (
    BETTER,
    EQUIVALENT,
    INCONCLUSIVE,
    MORE_THAN,
    UNKNOWN,
    WITHIN,
    WORSE,
    decide,
    may_be_best,
    places,
)
from directrank.stats.estimates import Estimate
from directrank.stats.tests import holm
from directrank.stats.two_way import Crossed


def pairs(*rows: tuple[float, float]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["difference", "error"]).assign(freedom=30.0)


@pytest.mark.parametrize(
    ("difference", "error", "verdict", "size"),
    [
        (0.05, 0.005, BETTER, MORE_THAN),
        (-0.05, 0.005, WORSE, MORE_THAN),
        (0.012, 0.004, BETTER, UNKNOWN),
        (0.004, 0.001, BETTER, WITHIN),
        (-0.00007, 0.00001, WORSE, WITHIN),
        (0.0, 0.001, EQUIVALENT, WITHIN),
        (0.0, 0.02, INCONCLUSIVE, UNKNOWN),
        (0.05, math.nan, INCONCLUSIVE, UNKNOWN),
        (0.0, 0.0, EQUIVALENT, WITHIN),
    ],
)
def test_each_pair_is_decided_by_one_estimate(difference, error, verdict, size) -> None:
    (row,) = decide(pairs((difference, error)), 0.01).to_dict("records")
    assert (row["verdict"], row["size"]) == (verdict, size)


def test_each_question_is_corrected_over_all_pairs() -> None:
    some = pairs((0.03, 0.01), (0.001, 0.004), (0.02, 0.003))
    decided = decide(some, 0.01)
    estimates = [Estimate(*row) for row in some.itertuples(index=False)]
    assert decided["p_differs"].to_numpy() == pytest.approx(
        holm([one.p_differs() for one in estimates])
    )
    assert decided["p_within"].to_numpy() == pytest.approx(
        holm([one.p_within(-0.01, 0.01) for one in estimates])
    )
    assert decided["p_beyond"].to_numpy() == pytest.approx(
        holm([one.p_above(0.01) for one in estimates])
    )


@pytest.mark.parametrize("margin", [0.0, -0.01, math.nan])
def test_without_a_margin_nothing_is_decided(margin: float) -> None:
    with pytest.raises(ValueError, match="above zero"):
        decide(pairs((0.1, 0.1)), margin)


@pytest.mark.slow
@pytest.mark.parametrize("leads", [0.0, 0.15], ids=["all are equal", "one is ahead"])
def test_the_best_is_among_those_that_may_be_as_often_as_is_promised(leads: float) -> None:
    """Also if all are equal, where each of them is the best."""
    stream, missed, left, studies = np.random.default_rng(4), 0, 0, 400
    a, b = np.triu_indices(8, 1)
    for _ in range(studies):
        queries = stream.normal(0, 1, 60)
        methods = [
            queries + stream.normal(0, 0.3, (3, 60)) + stream.normal(0, 0.1, (3, 1))
            for _ in range(8)
        ]
        methods[3] += leads
        possible = may_be_best(Crossed(methods).differences(a, b), 8)
        missed += not possible[3]
        left += possible.sum()
    assert missed / studies <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / studies)
    assert left / studies > 7.3 if leads == 0 else left / studies < 7


def test_places_follow_from_the_pairs_that_differ() -> None:
    verdicts = np.array([[0, 1, 1, 1], [-1, 0, 0, 1], [-1, 0, 0, 0], [-1, -1, 0, 0]])
    assert places(verdicts).tolist() == [[1, 1], [2, 3], [2, 4], [3, 4]]
