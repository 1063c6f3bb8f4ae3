"""AdaRank: one case worked by hand, and what the boosting does."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from directrank.learners.contract import Splits
from directrank.learners.linear import adarank
from directrank.learners.linear.adarank import Reweighting
from directrank.lists.packed import RankedLists
from linear_data import JOB, lists

AP = {"name": "average_precision"}

#: Two queries of three documents. Feature 0 ranks the first query right (AP 1) and puts the only
#: relevant document of the second last (AP 1/3); feature 1 ranks it second in the first query
#: (AP 1/2) and first in the second.
HAND = RankedLists(
    features=np.array([[3, 2], [2, 3], [1, 1], [3, 1], [2, 2], [1, 3]], dtype=np.float32),
    labels=np.array([1, 0, 0, 0, 0, 1], dtype=np.float32),
    offsets=np.array([0, 3, 6]),
    query_ids=np.array([1, 2]),
)


def test_the_hand_worked_case() -> None:
    boosting = Reweighting(HAND, AP, both_directions=False)
    assert boosting.strength == pytest.approx(np.array([[1, 1 / 3], [1 / 2, 1]]))
    # Means 2/3 and 3/4: feature 1, with α = ½ ln(7/4 / (1/4)) = ½ ln 7.
    weak, alpha = boosting.weak_ranker()
    assert (weak, alpha) == (1, pytest.approx(0.5 * math.log(7)))
    boosting.reweigh(alpha * HAND.features[:, 1])
    assert boosting.reached == pytest.approx([1 / 2, 1])
    # P ∝ (e^-1/2, e^-1).
    first = 1 / (1 + math.exp(-0.5))
    assert boosting.weights == pytest.approx([first, 1 - first])
    # Feature 0 now has first + (1 - first)/3 = 0.748, feature 1 first/2 + (1 - first) = 0.689.
    weak, alpha = boosting.weak_ranker()
    merit = first + (1 - first) / 3
    assert (weak, alpha) == (0, pytest.approx(0.5 * math.log((1 + merit) / (1 - merit))))


def test_upward_rankers_are_the_downward_ones_of_the_negated_feature() -> None:
    strength = Reweighting(HAND, AP).strength
    assert strength.shape == (4, 2)
    assert strength[2] == pytest.approx([1 / 3, 1])  # feature 0 upwards


def test_a_ranker_that_raised_nothing_rests_until_another_one_does() -> None:
    boosting = Reweighting(HAND, AP, both_directions=False)
    first, alpha = boosting.weak_ranker()
    scores = alpha * HAND.features[:, first]
    boosting.reweigh(scores)
    boosting.reweigh(2 * scores)  # the same ranking: chosen once more, it raises nothing
    second, _ = boosting.weak_ranker()
    assert second != first


def test_round_is_chosen_by_validation_and_the_model_is_its_weights(tmp_path: Path) -> None:
    data = Splits(lists(30, 0), lists(20, 1), lists(20, 2), label_levels=3)
    fitted = adarank.fit(data, {"rounds": 30, "measure": {"name": "ndcg"}}, JOB)
    values = [row["vali_metric"] for row in fitted.history]
    assert fitted.info["best_epoch"] == int(np.argmax(values)) + 1
    assert len(values) == 30
    fitted.save(tmp_path / "model")
    weights = load_file(tmp_path / "model.safetensors")["weights"]
    assert fitted.predict(data.test) == pytest.approx(data.test.features @ weights)
    assert weights[0] > 0 > weights[1]  # what the labels were made of
    shorter = adarank.fit(data, {"rounds": 30, "patience": 3, "measure": {"name": "ndcg"}}, JOB)
    assert len(shorter.history) <= shorter.info["best_epoch"] + 3


def test_queries_without_a_relevant_document_are_left_out() -> None:
    part = lists(10, 0)
    labels = part.labels.copy()
    labels[: part.offsets[1]] = 0
    some = RankedLists(part.features, labels, part.offsets, part.query_ids)
    data = Splits(some, lists(20, 1), lists(20, 2), label_levels=3)
    others = Splits(some.select(np.arange(1, 10)), data.vali, data.test, 3)
    assert np.array_equal(
        adarank.fit(data, {"rounds": 5}, JOB).predict(data.test),
        adarank.fit(others, {"rounds": 5}, JOB).predict(data.test),
    )
