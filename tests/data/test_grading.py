"""Grades of a user's labels."""

from __future__ import annotations

import numpy as np
import pytest

from directrank.data.grading import graded


def grades(labels, asked=None, training=None) -> list[int]:
    labels = np.array(labels, float)
    return graded(labels, labels if training is None else np.array(training), asked)[0].tolist()


def said(labels, asked=None) -> str:
    labels = np.array(labels, float)
    return "; ".join(graded(labels, labels, asked)[1])


def test_whole_numbers_up_to_15_stay() -> None:
    assert grades([4, 0, 15]) == [4, 0, 15]
    assert said([4, 0, 15]) == ""
    assert grades([4, 0, 2, 1], 3) == [4, 0, 2, 1]
    assert said([4, 0, 2, 1], 3) == "labels are grades already and are not cut into 3"


def test_labels_below_0_are_not_relevant() -> None:
    assert grades([-2, -1, 0, 1, 2]) == [0, 0, 0, 1, 2]
    assert said([-2, -1, 0, 1, 2]) == "2 labels below 0 count as 0, which means not relevant"
    assert grades([-0.3, 0.5, 1.0]) == [0, 1, 2]


def test_a_few_different_labels_are_grades_in_their_order() -> None:
    assert grades([0.5, 0, 1, 0.5]) == [1, 0, 2, 1]
    assert grades(np.arange(16) / 10) == list(range(16))
    assert grades([0, 40, 100]) == [0, 1, 2]
    assert max(grades(np.arange(16) / 10, 4)) == 3


def test_the_lowest_label_alone_is_grade_0_only_if_it_is_common() -> None:
    shares = np.r_[np.zeros(50), np.linspace(0.01, 1, 100)]
    assert np.bincount(grades(shares)).tolist() == [50, 25, 25, 25, 25]
    assert np.bincount(grades(np.linspace(0.001, 1, 100))).tolist() == [20] * 5
    assert np.bincount(grades(np.arange(100), 4)).tolist() == [25] * 4
    assert np.bincount(grades(np.r_[np.zeros(10), np.linspace(0.01, 1, 90)])).tolist() == [20] * 5


def test_cut_points_may_be_given_and_are_said() -> None:
    assert grades([0.06, 0.07, 0.2, 0.41, -5], (0.07, 0.14, 0.41)) == [0, 1, 2, 3, 0]
    assert "grades 1, 2, … begin at 0.07, 0.14, 0.41" in said([0.06, 0.07], (0.07, 0.14, 0.41))
    assert grades([-3, -1, 0, 2], (-1.0, 1.0)) == [0, 1, 1, 2]
    assert grades([0, 1, 2, 3, 4], (3.0,)) == [0, 0, 0, 1, 1]


def test_cut_points_come_from_the_training_labels() -> None:
    training = np.linspace(0, 1, 101)
    assert grades([-1, 0.1, 0.35, 7], training=training) == [0, 0, 1, 4]
    assert grades([0.2, 0.5, 0.7], training=[0.0, 0.5, 1.0]) == [0, 1, 1]


@pytest.mark.parametrize(
    ("labels", "asked", "message"),
    [
        (np.r_[np.zeros(60), np.full(50, 7), np.arange(20, 40)], 5, "occur is 3, fewer than 5"),
        ([0.0, 0.5], 5, "occur is 2, fewer than 5"),
        ([0.1, 0.2], (0.5, 0.7), "occur is 1, fewer than 3"),
        ([0.5, 0.5], None, "begin at no label"),
        ([1, 2, 3], None, "every document counts as relevant"),
        ([0.6, 0.7], (0.5,), "every document counts as relevant"),
    ],
)
def test_what_a_reader_might_not_expect_is_said(labels, asked, message: str) -> None:
    assert message in said(labels, asked)


def test_equal_labels_have_equal_grades_that_rise_with_them() -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 40, 300) / 7
    for asked in (None, 2, 7, 16):
        made = np.array(grades(labels, asked))
        order = np.argsort(labels, kind="stable")
        steps = np.diff(made[order])
        assert (steps >= 0).all()
        assert (steps[np.diff(labels[order]) == 0] == 0).all()
        assert set(made) == set(range(asked or 5))
