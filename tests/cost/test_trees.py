"""What is expected of the times of trees that take longer than their size says."""

from __future__ import annotations

import numpy as np
import pytest

from directrank.cost.predict import units
from directrank.learners import REGISTRY
from directrank.system.schema import complete


@pytest.mark.parametrize(
    ("objective", "times"), [("QueryRMSE", 1), ("StochasticRank", 5), ("YetiRankPairwise", 15)]
)
def test_an_objective_that_is_slow_costs_more(objective, times):
    def work(settings: dict) -> float:
        settings = complete(settings, REGISTRY["catboost"].settings, "test")
        return units("catboost", settings, np.full(1000, 100), 136)

    assert work({"objective": objective}) == times * work({})
