"""The cutting-plane solver, and Ranking SVM on top of it."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.svm import LinearSVC

from directrank.learners.contract import Splits
from directrank.learners.linear import ranking_svm
from directrank.learners.linear.cutting_plane import minimise
from directrank.learners.linear.ranking_svm import pairwise_hinge
from directrank.lists.packed import RankedLists
from directrank.metrics.packed import metrics_per_query
from directrank.system.errors import ConfigError, DataError, TrainingError
from linear_data import JOB, lists


@pytest.fixture(scope="module")
def data() -> Splits:
    return Splits(lists(30, 0), lists(20, 1), lists(20, 2), label_levels=3)


def differences(part: RankedLists) -> np.ndarray:
    """``x_i - x_j`` of all pairs with ``y_i > y_j``, the slow way."""
    rows = []
    for begin, end in pairwise(part.offsets):
        for i in range(begin, end):
            rows += [
                part.features[i] - part.features[j]
                for j in range(begin, end)
                if part.labels[i] > part.labels[j]
            ]
    return np.array(rows, dtype=np.float64)


@pytest.mark.parametrize("c", [0.01, 1.0, 300.0])
def test_the_minimum_is_that_of_another_solver(c: float) -> None:
    generator = np.random.default_rng(5)
    normals, heights = generator.normal(size=(40, 4)), generator.normal(size=40)

    def risk(weights: np.ndarray) -> tuple[float, np.ndarray]:
        values = np.append(normals @ weights + heights, 0.0)
        worst = int(np.argmax(values))
        return values[worst], np.append(normals, np.zeros((1, 4)), axis=0)[worst]

    minimum = minimise(risk, 4, c, 1e-9, 500)
    # The same programme over (w, ξ), solved by sequential quadratic programming.
    other = minimize(
        lambda x: 0.5 * x[:4] @ x[:4] / c + x[4],
        np.append(np.zeros(4), heights.max()),
        method="SLSQP",
        bounds=[(None, None)] * 4 + [(0, None)],
        constraints={"type": "ineq", "fun": lambda x: x[4] - normals @ x[:4] - heights},
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert minimum.objective == pytest.approx(other.fun, abs=1e-6)
    assert minimum.weights == pytest.approx(other.x[:4], abs=1e-3 * max(1, np.sqrt(c)))
    assert minimum.gap <= 1e-9


def test_history_falls_and_ends_within_the_tolerance(data: Splits) -> None:
    minimum = minimise(pairwise_hinge(data.train), 5, 10.0, 1e-4, 500)
    losses = [row["train_loss"] for row in minimum.history]
    assert all(after <= before for before, after in pairwise(losses))
    assert minimum.gap <= 1e-4 < losses[1] - losses[-1]


def test_too_few_planes_are_an_error(data: Splits) -> None:
    with pytest.raises(TrainingError, match="after 2 planes"):
        minimise(pairwise_hinge(data.train), 5, 10.0, 1e-6, 2)


@pytest.mark.parametrize("c", [0.1, 10.0])
def test_ranking_svm_is_liblinear_on_the_differences(data: Splits, c: float) -> None:
    fitted = ranking_svm.fit(data, {"c": c, "tolerance": 1e-7}, JOB)
    pairs = differences(data.train)
    # Half of the pairs turned round: liblinear wants both classes.
    sign = np.where(np.arange(len(pairs)) % 2 == 0, 1.0, -1.0)
    other = LinearSVC(
        C=c / len(pairs), loss="hinge", fit_intercept=False, tol=1e-8, max_iter=2_000_000
    ).fit(pairs * sign[:, None], sign)
    weights = other.coef_[0]
    scores = fitted.predict(data.test)
    assert scores == pytest.approx(data.test.features @ weights, abs=2e-3 * np.abs(scores).max())


def test_subgradient_is_that_of_finite_differences(data: Splits) -> None:
    risk = pairwise_hinge(data.train, "queries")
    at = np.random.default_rng(3).normal(size=5)
    gradient = risk(at)[1]
    step = 1e-7 * np.eye(5)
    numeric = [(risk(at + one)[0] - risk(at - one)[0]) / 2e-7 for one in step]
    assert gradient == pytest.approx(numeric, abs=1e-5)


def test_every_query_or_every_pair_has_the_same_weight(data: Splits) -> None:
    at = np.random.default_rng(4).normal(size=5)
    margins = 1 - differences(data.train) @ at
    assert pairwise_hinge(data.train)(at)[0] == pytest.approx(np.maximum(margins, 0).mean())
    single = [
        pairwise_hinge(data.train.select(np.array([query])))(at)[0]
        for query in range(data.train.n_queries)
        if np.ptp(data.train.select(np.array([query])).labels) > 0
    ]
    assert pairwise_hinge(data.train, "queries")(at)[0] == pytest.approx(np.mean(single))


def test_ranking_svm_ranks_well_what_it_has_not_seen(data: Splits) -> None:
    fitted = ranking_svm.fit(data, {"c": 10.0}, JOB)
    ndcg = np.nanmean(
        metrics_per_query(fitted.predict(data.test), data.test, [{"name": "ndcg"}])["ndcg"]
    )
    chance = np.nanmean(
        metrics_per_query(data.test.features[:, 4], data.test, [{"name": "ndcg"}])["ndcg"]
    )
    assert ndcg > chance + 0.15


def test_bad_input_is_one_clear_error(data: Splits) -> None:
    with pytest.raises(ConfigError, match="'C'"):
        ranking_svm.fit(data, {"C": 1.0}, JOB)
    part = data.train
    flat = RankedLists(part.features, np.ones_like(part.labels), part.offsets, part.query_ids)
    with pytest.raises(DataError, match="two grades"):
        ranking_svm.fit(Splits(flat, data.vali, data.test, 3), {}, JOB)
    features = part.features.copy()
    features[3, 1] = np.nan
    broken = RankedLists(features, part.labels, part.offsets, part.query_ids)
    with pytest.raises(DataError, match="missing or infinite"):
        ranking_svm.fit(Splits(broken, data.vali, data.test, 3), {}, JOB)
