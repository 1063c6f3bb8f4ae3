"""A random order is drawn anew by each trial, whatever other queries are scored."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest

from directrank.learners.untrained.random_order import fit, random_scores
from directrank.lists.packed import RankedLists
from directrank.metrics.packed import metrics_per_query
from directrank.system.errors import ConfigError
from training_data import job, splits


def test_every_trial_and_every_data_set_draws_its_own_order():
    data = splits()
    first, again = (fit(data, {}, job()).predict(data.test) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    for other in (
        dataclasses.replace(job(), trial=1),
        dataclasses.replace(job(), streams="other-f1"),
    ):
        assert not (fit(data, {}, other).predict(data.test) == first).any()


def test_the_order_of_a_query_does_not_depend_on_the_others():
    data = splits()
    some = data.test.select([2, 0])
    begins = data.test.offsets - data.test.offsets[0]
    scores = random_scores(data.test, 7)
    expected = [scores[begins[query] : begins[query + 1]] for query in (2, 0)]
    np.testing.assert_array_equal(random_scores(some, 7), np.concatenate(expected))


def test_all_orders_of_three_documents_are_equally_likely():
    """NDCG@1 of one relevant document among three is 1 in a third of all orders, and each of the
    six orders comes as often."""
    n = 6000
    lists = RankedLists(
        np.zeros((3 * n, 0), np.float32),
        np.tile(np.array([1, 0, 0], np.float32), n),
        np.arange(0, 3 * n + 1, 3),
        np.arange(n),
    )
    scores = random_scores(lists, 1)
    orders = np.argsort(scores.reshape(n, 3), axis=1)
    counts = [
        int((orders == order).all(axis=1).sum()) for order in itertools.permutations(range(3))
    ]
    # Five standard deviations of a binomial count.
    assert np.abs(np.array(counts) - n / 6).max() < 5 * np.sqrt(n * 5 / 36)
    ndcg = metrics_per_query(scores, lists, [{"name": "ndcg", "k": 1}])["ndcg@1"]
    assert abs(ndcg.mean() - 1 / 3) < 5 * np.sqrt(2 / 9 / n)


def test_the_history_has_the_validation_metric_and_there_are_no_settings():
    data = splits()
    fitted = fit(data, {}, job())
    scores = fitted.predict(data.vali)
    (values,) = metrics_per_query(scores, data.vali, [job().selection]).values()
    assert [row["vali_metric"] for row in fitted.history] == [pytest.approx(np.nanmean(values))]
    assert fitted.info["n_parameters"] == 0
    with pytest.raises(ConfigError, match="seed"):
        fit(data, {"seed": 1}, job())
