"""Leaving queries out."""

from __future__ import annotations

import numpy as np
import pytest

from directrank.data import filters
from directrank.data.filters import filter_queries
from directrank.errors import ConfigError, DataError
from directrank.lists import RankedLists


@pytest.fixture
def lists() -> RankedLists:
    lengths = [3, 12, 1, 10, 11]
    labels = np.concatenate(
        [[0, 1, 0], np.zeros(12), [2], [1, *np.zeros(9)], [1, 2, *np.zeros(9)]]
    ).astype(np.float32)
    return RankedLists(
        np.arange(len(labels) * 2, dtype=np.float32).reshape(-1, 2),
        labels,
        np.concatenate([[0], np.cumsum(lengths)]),
        np.array([5, 4, 3, 2, 1]),
    )


def test_queries_with_too_few_documents_or_relevant_ones_go(lists):
    kept = filter_queries(lists, min_documents=10, min_relevant=1)
    assert kept.query_ids.tolist() == [2, 1]
    assert kept.lengths.tolist() == [10, 11]
    np.testing.assert_array_equal(kept.features, lists.features[16:])
    np.testing.assert_array_equal(kept.labels, lists.labels[16:])


@pytest.mark.parametrize(
    ("limits", "ids"),
    [
        ({"min_documents": 11}, [4, 1]),
        ({"min_relevant": 1}, [5, 3, 2, 1]),
        ({"min_relevant": 2}, [1]),
        ({"min_documents": 3, "min_relevant": 1}, [5, 2, 1]),
    ],
)
def test_each_limit_is_the_fewest_that_may_be(lists, limits, ids):
    assert filter_queries(lists, **limits).query_ids.tolist() == ids


def test_nothing_is_copied_where_nothing_goes(lists):
    assert filter_queries(lists) is lists


def test_a_split_that_would_be_empty_is_an_error_that_names_it(lists):
    with pytest.raises(DataError, match="split 'vali': no query has 99 documents"):
        filters.apply({"min_documents": 99}, {"vali": lists})


def test_every_split_is_filtered_and_unknown_settings_are_errors(lists):
    kept = filters.apply({"min_relevant": 2}, {"train": lists, "test": lists})
    assert [part.n_queries for part in kept.values()] == [1, 1]
    with pytest.raises(ConfigError, match="did you mean 'min_documents'"):
        filters.apply({"min_docs": 1}, {"train": lists})
