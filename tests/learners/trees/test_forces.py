"""What docs/trees.md says of the libraries' forces, against a sum over pairs in plain NumPy.

A library shows its forces in the leaves of a first tree: a leaf's value is the sum of its
documents' forces over the sum of their second derivatives and the L2 penalty. The scores that the
tree starts from are given.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import lightgbm
import numpy as np
import pytest

LENGTHS = np.array([7, 1, 12, 9, 2])
OFFSETS = np.concatenate([[0], np.cumsum(LENGTHS)])
PENALTY = 0.5

Weight = Callable[[np.ndarray, int, int], float]
"""``weight(labels by rank, i, j)``: the change of a metric if ranks i and j (from 0) swapped."""


@pytest.fixture(scope="module")
def lists() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A feature of each document's own, labels 0 to 3, scores without ties."""
    generator = np.random.default_rng(5)
    labels = generator.integers(0, 4, OFFSETS[-1]).astype(np.float32)
    labels[OFFSETS[3] : OFFSETS[4]] = 0  # an empty query
    scores = generator.normal(size=OFFSETS[-1]).astype(np.float32)
    return np.eye(OFFSETS[-1], dtype=np.float32), labels, scores


def ndcg_change(cut: int) -> Weight:
    def change(labels: np.ndarray, i: int, j: int) -> float:
        gains = 2.0**labels - 1
        discounts = 1 / np.log2(np.arange(len(labels)) + 2)
        ideal = (np.sort(gains)[::-1] * discounts)[:cut].sum()
        return abs((gains[i] - gains[j]) * (discounts[i] - discounts[j])) / ideal

    return change


def ap_change(labels: np.ndarray, i: int, j: int) -> float:
    def ap(relevant: np.ndarray) -> float:
        hits = np.cumsum(relevant)
        return float((hits / np.arange(1, len(relevant) + 1) * relevant).sum() / hits[-1])

    swapped = labels.copy()
    swapped[[i, j]] = labels[[j, i]]
    return abs(ap(labels) - ap(swapped))


def no_change(labels: np.ndarray, i: int, j: int) -> float:
    return 1.0


def forces(
    labels: np.ndarray, scores: np.ndarray, weight: Weight, cut: int, norm: bool, by_score: bool
) -> np.ndarray:
    """Force and second derivative of each document, ``[2, N]``.

    Pairs have a document among the first ``cut``. The second derivative is that of RankNet's loss
    with the same weight.
    """
    result = np.zeros((2, len(labels)))
    for begin, end in itertools.pairwise(OFFSETS):
        order = begin + np.argsort(-scores[begin:end], kind="stable")
        own, total = labels[order].astype(float), 0.0
        for i, j in itertools.combinations(range(end - begin), 2):
            if i >= cut or own[i] == own[j]:
                continue
            high, low = (order[i], order[j]) if own[i] > own[j] else (order[j], order[i])
            margin = float(scores[high]) - float(scores[low])
            force = weight(own, i, j) / (1 + np.exp(margin))
            if by_score:
                force /= 0.01 + abs(margin)
            result[0, high] += force
            result[0, low] -= force
            result[1, [high, low]] += force / (1 + np.exp(-margin))
            total += 2 * force
        if norm and total:
            result[:, begin:end] *= np.log2(1 + total) / total
    return result


def assert_leaves_hold(
    forces: np.ndarray, seconds: np.ndarray, leaves: np.ndarray, values: np.ndarray
) -> None:
    """Each leaf's value is its documents' forces over second derivatives and penalty."""
    assert len(np.unique(leaves)) > 5
    for leaf in np.unique(leaves):
        (value,) = np.unique(values[leaves == leaf])
        there = leaves == leaf
        expected = forces[there].sum() / (seconds[there].sum() + PENALTY)
        assert value == pytest.approx(expected, rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("norm", [True, False])
@pytest.mark.parametrize("cut", [2, 30])
def test_lightgbms_lambdarank(lists, norm, cut):
    features, labels, scores = lists
    parameters = {
        "objective": "lambdarank",
        "lambdarank_norm": norm,
        "lambdarank_truncation_level": cut,
        "label_gain": [0, 1, 3, 7],
        "lambda_l2": PENALTY,
        "learning_rate": 1.0,
        "num_leaves": len(labels),
        "min_data_in_leaf": 1,
        "min_data_in_bin": 1,
        "min_sum_hessian_in_leaf": 0.0,
        "num_threads": 1,
        "verbosity": -1,
    }
    train = lightgbm.Dataset(features, labels, group=LENGTHS, init_score=scores)
    booster = lightgbm.train(parameters, train, num_boost_round=1)
    force, second = forces(labels, scores, ndcg_change(cut), cut, norm, by_score=norm)
    leaves = booster.predict(features, pred_leaf=True).ravel()
    assert_leaves_hold(force, second, leaves, booster.predict(features))


@pytest.mark.parametrize("norm", [True, False])
@pytest.mark.parametrize("score_norm", [True, False])
@pytest.mark.parametrize("cut", [2, 32])
@pytest.mark.parametrize("objective", ["rank:pairwise", "rank:ndcg", "rank:map"])
def test_xgboosts_objectives_with_topk(lists, objective, cut, norm, score_norm):
    xgboost = pytest.importorskip("xgboost", reason="NOT TESTED: needs the package xgboost-cpu")
    features, labels, scores = lists
    if objective == "rank:map":
        labels = (labels > 0).astype(np.float32)
    train = xgboost.DMatrix(features, labels, group=LENGTHS, base_margin=scores)
    parameters = {
        "objective": objective,
        "lambdarank_pair_method": "topk",
        "lambdarank_num_pair_per_sample": cut,
        "lambdarank_normalization": norm,
        "lambdarank_score_normalization": score_norm,
        "reg_lambda": PENALTY,
        "base_score": 0.0,
        "learning_rate": 1.0,
        "max_depth": 20,
        "min_child_weight": 0,
        "tree_method": "exact",
        "nthread": 1,
        "verbosity": 0,
    }
    booster = xgboost.train(parameters, train, num_boost_round=1)
    weight = {
        "rank:pairwise": no_change,
        "rank:ndcg": ndcg_change(cut),
        "rank:map": ap_change,
    }[objective]
    force, second = forces(labels, scores, weight, cut, norm, score_norm)
    scored = xgboost.DMatrix(features)
    leaves = booster.predict(scored, pred_leaf=True).ravel()
    # XGBoost doubles the second derivatives.
    assert_leaves_hold(force, 2 * second, leaves, booster.predict(scored))


def catboosts_leaves(lists, loss: str, penalty: float) -> np.ndarray:
    """The value of each document's own leaf in the first tree after the given scores."""
    catboost = pytest.importorskip("catboost", reason="NOT TESTED: needs the package catboost")
    _, labels, scores = lists
    bits = (np.arange(len(labels))[:, None] >> np.arange(5) & 1).astype(np.float32)
    parameters = {
        "loss_function": loss,
        "l2_leaf_reg": penalty,
        "iterations": 1,
        "depth": 5,
        "learning_rate": 1.0,
        "leaf_estimation_iterations": 1,
        "random_strength": 0,
        "bootstrap_type": "No",
        "boosting_type": "Plain",
        "thread_count": 1,
        "logging_level": "Silent",
        "allow_writing_files": False,
    }
    queries = np.repeat(np.arange(len(LENGTHS)), LENGTHS)
    train = catboost.Pool(bits, labels, group_id=queries, baseline=scores)
    return catboost.CatBoost(parameters).fit(train).predict(catboost.Pool(bits))


@pytest.mark.parametrize("norm", [True, False])
@pytest.mark.parametrize("cut", [3, None])
def test_catboosts_lambdamart(lists, norm, cut):
    _, labels, scores = lists
    top = f";top={cut}" if cut else ""
    loss = f"LambdaMart:metric=NDCG;type=Exp;norm={str(norm).lower()}{top}"
    values = catboosts_leaves(lists, loss, penalty=0.0)
    cut = cut or 99
    force, second = forces(labels, scores, ndcg_change(cut), cut, norm, by_score=norm)
    moved = second > 0
    assert moved.sum() > 15
    np.testing.assert_allclose(values[moved], force[moved] / second[moved], rtol=1e-3)
    assert (values[~moved] == 0).all()


def test_a_penalty_reverses_catboosts_lambdamart(lists):
    """Why the learner has none: in version 1.2 both derivatives have the wrong sign."""
    _, labels, scores = lists
    values = catboosts_leaves(lists, "LambdaMart:metric=NDCG;type=Exp;norm=false", penalty=3.0)
    force, second = forces(labels, scores, ndcg_change(99), 99, norm=False, by_score=False)
    np.testing.assert_allclose(values, -force / (3.0 - second), rtol=1e-3, atol=1e-6)


def test_catboosts_pairlogit(lists):
    _, labels, scores = lists
    values = catboosts_leaves(lists, "PairLogit", PENALTY)
    force, second = forces(labels, scores, no_change, 99, norm=False, by_score=False)
    # A constant is added to all leaves, which changes no order.
    found, expected = values - values.mean(), force / (second + PENALTY)
    np.testing.assert_allclose(found, expected - expected.mean(), rtol=1e-3, atol=1e-5)
