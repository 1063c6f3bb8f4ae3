"""Features are left out by name, of the rows that the lists have."""

from __future__ import annotations

import numpy as np
import pytest

from directrank.data.columns import kept, select
from directrank.lists.packed import RankedLists
from directrank.system.errors import ConfigError

RECORD = {"name": "films", "feature_names": ["title.bm25", "all.bm25", "votes", "in_title"]}


def test_names_and_patterns_leave_features_out_and_keep_the_order():
    assert kept(RECORD, 4, ["title.*"]).tolist() == [1, 2, 3]
    assert kept(RECORD, 4, ["in_title", "*.bm25"]).tolist() == [2]


def test_without_names_features_have_numbers_from_one():
    assert kept({"name": "letor"}, 12, ["1", "1?"]).tolist() == [1, 2, 3, 4, 5, 6, 7, 8]


def test_a_pattern_without_a_feature_and_no_feature_left_are_errors():
    with pytest.raises(ConfigError, match="no feature of 'films' has the name 'titel"):
        kept(RECORD, 4, ["title.*", "titel.*"])
    with pytest.raises(ConfigError, match="leaves no feature"):
        kept(RECORD, 4, ["*"])


def test_lists_that_do_not_begin_at_the_first_row_keep_their_documents():
    features = np.arange(24, dtype=np.float32).reshape(6, 4)
    lists = RankedLists(
        features,
        np.array([9, 1, 0, 2, 0, 9], np.float32),
        np.array([1, 3, 5]),
        np.array([7, 8]),
        groups=np.array([1, 1]),
    )
    fewer = select(lists, np.array([1, 3]))
    np.testing.assert_array_equal(fewer.features, features[1:5][:, [1, 3]])
    assert fewer.labels.tolist() == [1, 0, 2, 0]
    assert fewer.offsets.tolist() == [0, 2, 4]
    assert fewer.query_ids.tolist() == [7, 8]
    assert fewer.groups is not None
    assert fewer.features.flags.c_contiguous
