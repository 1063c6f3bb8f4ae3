"""What is expected of the times of trees, beside the times that were measured."""

from __future__ import annotations

import numpy as np
import pytest

from directrank.cost.predict import binning_units, units
from directrank.cost.rates import document
from directrank.learners import REGISTRY
from directrank.system.schema import complete

#: Seconds per tree on one thread of an AMD EPYC at about two thirds of the reference's seconds, on
#: lists of as many documents as the second number, of continuous features.
MEASURED = [
    ("catboost", {"objective": "YetiRank"}, (470, 20, 46), 0.0148),
    ("catboost", {"objective": "YetiRank"}, (2500, 100, 136), 0.475),
    ("catboost", {"objective": "QueryRMSE"}, (470, 20, 46), 0.0057),
    ("catboost", {"objective": "QueryRMSE"}, (2500, 100, 136), 0.116),
    ("catboost", {"objective": "QuerySoftMax"}, (600, 60, 136), 0.0719),
    ("catboost", {"objective": "StochasticRank"}, (600, 60, 136), 0.0973),
    ("catboost", {"objective": "YetiRankPairwise"}, (600, 60, 136), 0.851),
    ("lightgbm", {"num_leaves": 31}, (200, 150, 45), 0.0101),
    ("lightgbm", {"num_leaves": 31}, (2500, 100, 136), 0.143),
    ("lightgbm", {"num_leaves": 255}, (2500, 100, 136), 0.303),
    ("xgboost", {"max_depth": 6}, (470, 20, 46), 0.0062),
    ("xgboost", {"max_depth": 6}, (2500, 100, 136), 0.162),
]


@pytest.mark.parametrize(("library", "settings", "size", "seconds"), MEASURED)
def test_the_time_of_a_tree_is_within_twice_of_what_was_measured(library, settings, size, seconds):
    queries, length, features = size
    settings = complete(settings, REGISTRY[library].settings, "test")
    work = units(library, settings, np.full(queries, length), features)
    predicted = work * document("reference")["learners"][library] * 2 / 3
    assert 0.5 < predicted / seconds < 2


#: Seconds before the first tree, on the same machine: documents to train and to validate on, and
#: features.
BINNED = [
    ("lightgbm", (384_000, 2, 136), 4.6),
    ("lightgbm", (2_260_000, 755_000, 136), 15.9),
    ("xgboost", (384_000, 2, 136), 8.2),
    ("catboost", (384_000, 2, 136), 4.5),
]


@pytest.mark.parametrize(("library", "size", "seconds"), BINNED)
def test_the_time_before_the_first_tree_is_close_to_what_was_measured(library, size, seconds):
    predicted = binning_units(library, *size) * document("reference")["learners"][library] * 2 / 3
    assert 0.8 < predicted / seconds < 1.25
