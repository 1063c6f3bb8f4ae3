"""The order of a user's rows."""

from __future__ import annotations

import numpy as np

from directrank.data.row_order import neutral_order, suspicious


def rows(seed: int = 0, values: int = 2):
    rng = np.random.default_rng(seed)
    features = rng.integers(0, values, (2000, 2)).astype(np.float32)
    labels = rng.integers(0, 3, 2000)
    queries = np.repeat([f"q{number}" for number in range(100)], 20)
    return features, labels, queries


def test_the_order_does_not_depend_on_that_of_the_rows() -> None:
    features, labels, queries = rows()
    order = neutral_order(features, labels, queries, sort=True)
    for seed in range(3):
        other = np.random.default_rng(seed).permutation(len(labels))
        again = other[neutral_order(features[other], labels[other], queries[other], sort=True)]
        assert np.array_equal(features[again], features[order])
        assert np.array_equal(labels[again], labels[order])
        assert np.array_equal(queries[again], queries[order])


def test_the_order_tells_nothing_about_labels_even_of_equal_rows() -> None:
    features, labels, queries = rows(values=1)  # all rows are equal
    order = np.lexsort((-labels, np.arange(len(labels)) // 20))  # best first
    features, labels = features[order], labels[order]
    placed = labels[neutral_order(features, labels, queries, sort=False)].reshape(100, 20)
    mean = placed.mean(axis=0)
    assert abs(np.corrcoef(mean, np.arange(20))[0, 1]) < 0.5
    assert abs(mean[:5].mean() - mean[-5:].mean()) < 0.15  # best first: about 2


def test_queries_keep_their_order_or_are_sorted() -> None:
    queries = np.array(["b", "a", "b", "c", "a"], object)
    features = np.zeros((5, 1), np.float32)
    kept = neutral_order(features, np.zeros(5), queries, sort=False)
    assert queries[kept].tolist() == ["b", "b", "a", "a", "c"]
    ordered = neutral_order(features, np.zeros(5), queries, sort=True)
    assert queries[ordered].tolist() == ["a", "a", "b", "b", "c"]


def test_features_that_follow_rows_or_labels_are_found() -> None:
    rng = np.random.default_rng(1)
    queries = np.repeat(np.arange(10), 6)
    labels = np.tile([2, 0, 1, 0, 1, 2], 10)
    columns = {
        "noise": rng.random(60),
        "constant": np.zeros(60),
        "number": np.arange(60),
        "back": 100 - np.arange(60),
        "rank": np.tile(np.arange(6), 10),
        "click": 7.0 * labels,
        "noisy label": labels + rng.random(60) / 2,
        "worst first": -1.0 * labels,
        "id": rng.permutation(1000)[:60],
        "nearly": labels + (np.arange(60) == 50) * 1.5,
    }
    features = np.column_stack(list(columns.values())).astype(np.float32)
    said = list(suspicious(features, labels, queries, tuple(columns)))
    assert all(text.endswith(f"--leave-out '{text.split(chr(39))[1]}'") for text in said)
    words = ("the rows", "the labels", "whole number")
    named = {text.split("'")[1]: next(word for word in words if word in text) for text in said}
    assert named == {
        **dict.fromkeys(("number", "back", "rank"), "the rows"),
        **dict.fromkeys(("click", "noisy label", "worst first"), "the labels"),
        "id": "whole number",
    }
    assert not list(suspicious(features[:12], labels[:12], queries[:12], tuple(columns)))
