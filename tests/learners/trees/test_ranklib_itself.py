"""RankLib itself, where Java and its jar are here (docs/trees.md says how they get here)."""

from __future__ import annotations

import numpy as np
import pytest

from directrank.learners.trees import ranklib
from tree_data import job, mean_ndcg, splits

pytestmark = pytest.mark.real_data


@pytest.fixture(scope="module", autouse=True)
def program() -> None:
    availability = ranklib.available()
    if not availability.ok:
        pytest.skip(f"NOT TESTED: RankLib itself: {availability.reason}")


def test_it_learns_and_its_table_is_the_studys_metric():
    data = splits()
    settings = {"n_trees": 60, "early_stopping_rounds": 10}
    fitted, again = (ranklib.fit(data, settings, job(trial)) for trial in (0, 1))
    kept = fitted.history[fitted.info["best_epoch"] - 1]["vali_metric"]
    assert kept == pytest.approx(mean_ndcg(fitted.predict(data.vali), data.vali), abs=1e-4)
    best_feature = max(mean_ndcg(column, data.test) for column in data.test.features.T)
    scores = fitted.predict(data.test)
    assert mean_ndcg(scores, data.test) > best_feature + 0.03
    np.testing.assert_array_equal(again.predict(data.test), scores)  # nothing is random
