"""Leaving queries out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from directrank.data import filters
from directrank.lists.packed import RankedLists
from directrank.system.errors import ConfigError, DataError


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


@pytest.mark.parametrize(
    ("limits", "ids"),
    [
        ({}, [5, 4, 3, 2, 1]),
        ({"min_documents": 11}, [4, 1]),
        ({"min_relevant": 1}, [5, 3, 2, 1]),
        ({"min_relevant": 2}, [1]),
        ({"min_documents": 3, "min_relevant": 1}, [5, 2, 1]),
        ({"min_documents": 10, "min_relevant": 1}, [2, 1]),
    ],
)
def test_each_limit_is_the_fewest_that_may_be(lists, limits, ids):
    assert lists.query_ids[filters.is_kept(lists, **limits)].tolist() == ids
    assert lists.query_ids[filters.select(lists, **limits).queries].tolist() == ids


@pytest.mark.parametrize("documents", [1, 11, 14, 1000])
@pytest.mark.parametrize("limits", [{}, {"min_documents": 10}, {"min_relevant": 1}])
def test_blocks_joined_are_the_queries_that_were_selected(lists, limits, documents):
    selection = filters.select(lists, **limits)
    expected = lists.select(selection.queries)
    blocks = list(selection.blocks(documents))
    for name in ("features", "labels", "query_ids"):
        joined = np.concatenate([getattr(block, name) for block in blocks])
        np.testing.assert_array_equal(joined, getattr(expected, name))
    lengths = np.concatenate([block.lengths for block in blocks])
    np.testing.assert_array_equal(lengths, expected.lengths)
    assert all(block.offsets[0] == 0 for block in blocks)
    assert all(block.n_documents <= documents or block.n_queries == 1 for block in blocks)
    assert (selection.n_queries, selection.n_documents, selection.n_features) == (
        expected.n_queries,
        expected.n_documents,
        2,
    )


def test_nothing_is_copied_where_nothing_goes(lists):
    (block,) = filters.select(lists).blocks(1000)
    assert np.shares_memory(block.features, lists.features)


def test_a_split_that_would_be_empty_is_an_error_that_names_it(lists):
    with pytest.raises(DataError, match="split 'vali': no query has 99 documents"):
        filters.select(lists, min_documents=99, where="split 'vali'")


def test_unknown_settings_are_errors():
    with pytest.raises(ConfigError, match="did you mean 'min_documents'"):
        filters.check({"min_docs": 1})


def test_blocks_keep_the_groups_of_their_queries():
    features = np.zeros((6, 1), np.float32)
    lists = RankedLists(
        features, features[:, 0], np.array([0, 2, 4, 6]), np.array([7, 8, 9]), np.array([1, 2, 1])
    )
    assert [b.groups.tolist() for b in filters.Selection.of_all(lists).blocks(4)] == [[1, 2], [1]]
    assert lists.select(np.array([2, 0])).groups.tolist() == [1, 1]


def mapped_pages() -> int:
    """Megabytes of files that are mapped into this process and in its memory."""
    (line,) = (line for line in STATUS.read_text().splitlines() if line.startswith("RssFile"))
    return int(line.split()[1]) // 1024


STATUS = Path("/proc/self/status")


@pytest.mark.skipif(not STATUS.is_file(), reason="the system does not tell a process's memory")
def test_reading_a_mapped_collection_once_does_not_keep_its_pages(tmp_path):
    queries, documents, width = 640, 100, 256
    np.save(tmp_path / "features.npy", np.ones((queries * documents, width), np.float32))
    features = np.load(tmp_path / "features.npy", mmap_mode="r")
    lists = RankedLists(
        features,
        np.zeros(len(features), np.float32),
        np.arange(queries + 1) * documents,
        np.arange(queries),
    )
    before, read, most = mapped_pages(), 0.0, 0
    for block in filters.Selection.of_all(lists).blocks(6400):
        read += float(block.features.sum())
        most = max(most, mapped_pages() - before)
    assert read == features.size
    assert most < 20  # of 62; a block has 6
    assert features[-1].tolist() == [1.0] * width


def test_pages_that_may_have_been_written_to_are_kept(tmp_path):
    np.save(tmp_path / "features.npy", np.zeros((4, 2), np.float32))
    features = np.load(tmp_path / "features.npy", mmap_mode="c")
    features[:] = 7
    lists = RankedLists(features, np.zeros(4, np.float32), np.array([0, 2, 4]), np.arange(2))
    for _ in filters.Selection.of_all(lists).blocks(2):
        pass
    assert (features == 7).all()
