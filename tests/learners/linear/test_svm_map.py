"""SVMmap: the search for the most violated ranking against all rankings, and the training."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from directrank.learners.contract import Splits
from directrank.learners.linear import svm_map
from directrank.learners.linear.svm_map import loss_gains, map_hinge, most_violated
from directrank.metrics.packed import metrics_per_query
from linear_data import JOB, lists


def brute_force(relevant: np.ndarray, irrelevant: np.ndarray) -> float:
    """Largest ``1 - AP + w·Ψ(y) - w·Ψ(y*)`` over all interleavings, from the definitions."""
    p, q = len(relevant), len(irrelevant)

    def psi(order: list[bool]) -> float:
        # Documents of one kind stay sorted by score: no other order has a larger w·Ψ.
        places = {True: [], False: []}
        for place, kind in enumerate(order):
            places[kind].append(place)
        total = 0.0
        for i, place_i in enumerate(places[True]):
            for j, place_j in enumerate(places[False]):
                total += (1 if place_i < place_j else -1) * (relevant[i] - irrelevant[j])
        return total / (p * q)

    def average_precision(order: list[bool]) -> float:
        hits = np.cumsum(order)
        return float(np.mean([hits[i] / (i + 1) for i in range(len(order)) if order[i]]))

    best = psi([True] * p + [False] * q)
    values = []
    for chosen in combinations(range(p + q), p):
        order = [place in chosen for place in range(p + q)]
        values.append(1 - average_precision(order) + psi(order) - best)
    return max(values)


@pytest.mark.parametrize("p", [1, 2, 3, 4])
@pytest.mark.parametrize("q", [1, 2, 3, 4])
def test_the_search_finds_the_most_violated_of_all_rankings(p: int, q: int) -> None:
    generator = np.random.default_rng(10 * p + q)
    for scale in (0.0, 0.02, 0.3, 3.0):
        for _ in range(20):
            relevant = np.sort(generator.normal(size=p) * scale)[::-1]
            irrelevant = np.sort(generator.normal(size=q) * scale)[::-1]
            result = most_violated(relevant, irrelevant, loss_gains(p, q))
            assert result.slack == pytest.approx(brute_force(relevant, irrelevant), abs=1e-12)
            assert (np.diff(result.places) >= 0).all()
            # Its derivatives are those of a linear function of the scores with that value.
            linear = result.relevant @ relevant + result.irrelevant @ irrelevant
            assert result.loss + linear == pytest.approx(result.slack, abs=1e-12)


def test_tied_scores_lose_everything_and_a_wide_margin_nothing() -> None:
    tied = most_violated(np.zeros(2), np.zeros(3), loss_gains(2, 3))
    assert list(tied.places) == [0, 0, 0]
    assert tied.loss == pytest.approx(1 - (1 / 4 + 2 / 5) / 2)
    wide = most_violated(np.full(2, 9.0), np.zeros(3), loss_gains(2, 3))
    assert wide.slack == 0
    assert not wide.relevant.any()


def test_risk_bounds_one_minus_map() -> None:
    part = lists(25, 0)
    relevant = part.relevant_counts()
    part = part.select(np.flatnonzero((relevant > 0) & (relevant < part.lengths)))
    risk = map_hinge(part)
    generator = np.random.default_rng(1)
    for _ in range(20):
        weights = generator.normal(size=5) * generator.choice([0.01, 1, 10])
        ap = metrics_per_query(part.features @ weights, part, [{"name": "average_precision"}])["ap"]
        assert risk(weights)[0] >= 1 - ap.mean()


def test_training_lowers_the_risk_and_raises_map() -> None:
    data = Splits(lists(30, 0), lists(20, 1), lists(20, 2), label_levels=3)
    fitted = svm_map.fit(data, {"c": 100.0, "tolerance": 1e-4}, JOB)
    scores = {"svmmap": fitted.predict(data.test), "noise": data.test.features[:, 4]}
    means = {
        name: np.nanmean(metrics_per_query(s, data.test, [{"name": "average_precision"}])["ap"])
        for name, s in scores.items()
    }
    assert means["svmmap"] > means["noise"] + 0.2
    assert fitted.info["gap"] <= 1e-4
    assert fitted.history[-1]["train_loss"] < fitted.history[0]["train_loss"]
