"""Drawing queries of all parts of a data set and dividing them anew."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from directrank.data.sample import draw, fewer
from directrank.lists.packed import RankedLists
from directrank.study.specification import validate
from directrank.system.errors import ConfigError, DataError

SIZES = {"train": 6, "vali": 6, "test": 3}


def part(first: int, lengths: list[int]) -> RankedLists:
    """Queries numbered from ``first``; a document's feature is 100 · query + its place."""
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    ids = np.arange(first, first + len(lengths), dtype=np.int64)
    places = np.concatenate([np.arange(length) for length in lengths])
    value = 100 * np.repeat(ids, lengths) + places
    features = np.stack([value, -value], 1).astype(np.float32)
    return RankedLists(features, (places % 3).astype(np.float32), offsets, ids)


def parts(order: tuple[str, ...] = ("train", "vali", "test")) -> dict[str, RankedLists]:
    """Thirty queries of 3 to 12 documents, in parts whose content depends on the fold."""
    blocks = [part(10 * number, [3 + place for place in range(10)]) for number in range(3)]
    return dict(zip(order, blocks, strict=True))


def test_parts_are_as_large_as_asked_and_share_no_query() -> None:
    drawn = draw(parts(), "web30k", 1, SIZES)
    assert {split: lists.n_queries for split, lists in drawn.items()} == SIZES
    ids = np.concatenate([lists.query_ids for lists in drawn.values()])
    assert len(set(ids)) == 15
    assert set(ids // 10) == {0, 1, 2}  # from all parts


def test_every_query_keeps_its_own_documents_in_their_order() -> None:
    drawn = draw(parts(), "web30k", 1, SIZES, max_documents=5)
    for lists in drawn.values():
        assert lists.lengths.max() == 5
        for number, query in enumerate(lists.query_ids):
            rows = slice(lists.offsets[number], lists.offsets[number + 1])
            places = lists.features[rows, 0] - 100 * query
            assert np.all(np.diff(places) > 0)
            assert places.max() < 3 + query % 10
            assert len(places) == min(5, 3 + query % 10)
            assert np.array_equal(lists.labels[rows], places % 3)
            assert np.array_equal(lists.features[rows, 1], -lists.features[rows, 0])


def test_folds_share_the_queries_and_test_on_each_once() -> None:
    orders = (("train", "vali", "test"), ("vali", "test", "train"), ("test", "train", "vali"))
    folds = [draw(parts(orders[k % 3]), "mq2007", k + 1, SIZES, 5) for k in range(5)]
    every = [
        {
            int(query): lists.features[lists.offsets[n] : lists.offsets[n + 1], 0].tolist()
            for lists in fold.values()
            for n, query in enumerate(lists.query_ids)
        }
        for fold in folds
    ]
    assert all(one == every[0] for one in every)
    tested = np.concatenate([fold["test"].query_ids for fold in folds])
    assert sorted(tested) == sorted(every[0])


def test_another_data_set_is_drawn_otherwise() -> None:
    ids = [tuple(draw(parts(), name, 1, SIZES)["train"].query_ids) for name in ("a", "a", "b")]
    assert ids[0] == ids[1] != ids[2]


def test_too_few_queries_are_an_error() -> None:
    with pytest.raises(DataError, match="has 30 queries, but 31 are to be drawn"):
        draw(parts(), "web30k", 1, {"train": 29, "vali": 1, "test": 1})


def test_a_normalisation_that_is_fitted_to_the_old_parts_is_refused() -> None:
    spec = {
        "data": {"name": "web30k", "settings": {}},
        "fold": 1,
        "normalisation": {"name": "standardise"},
        "filter": {},
        "sample": {"queries": SIZES},
        "learner": "ranking_svm",
        "model": {},
        "selection": {"name": "ndcg"},
        "evaluation": [{"name": "ndcg"}],
        "trials": 1,
    }
    with pytest.raises(ConfigError, match="divides again"):
        validate(spec)
    validate(spec | {"normalisation": {"name": "query_zscore"}})


def test_fewer_training_queries_are_drawn_whole_and_in_order() -> None:
    lists = parts()["train"]
    some = fewer(lists, ("train_queries", "web30k", 1), 4)
    assert some.n_queries == 4
    places = [lists.query_ids.tolist().index(query) for query in some.query_ids]
    assert places == sorted(places)
    for number, place in enumerate(places):
        old, new = lists.offsets[place : place + 2], some.offsets[number : number + 2]
        np.testing.assert_array_equal(lists.features[slice(*old)], some.features[slice(*new)])
    again = fewer(lists, ("train_queries", "web30k", 1), 4)
    assert again.query_ids.tolist() == some.query_ids.tolist()
    other = fewer(lists, ("train_queries", "web30k", 2), 4)
    assert other.query_ids.tolist() != some.query_ids.tolist()
    assert fewer(lists, ("train_queries", "web30k", 1), lists.n_queries + 1) is lists


def test_drawn_queries_keep_their_groups() -> None:
    grouped = {
        split: replace(lists, groups=lists.query_ids // 2) for split, lists in parts().items()
    }
    for lists in draw(grouped, "web30k", 1, SIZES).values():
        assert lists.groups.tolist() == (lists.query_ids // 2).tolist()
    assert draw(parts(), "web30k", 1, SIZES)["train"].groups is None


@pytest.mark.parametrize("key", ["train_queries", "vali_queries"])
def test_two_ways_to_say_how_many_queries_there_are_are_refused(key: str) -> None:
    spec = {
        "data": {"name": "web30k", "settings": {}},
        "fold": 1,
        "normalisation": {"name": "query_zscore"},
        "filter": {},
        "sample": {"queries": SIZES},
        key: 10,
        "learner": "ranking_svm",
        "model": {},
        "selection": {"name": "ndcg"},
        "evaluation": [{"name": "ndcg"}],
        "trials": 1,
    }
    with pytest.raises(ConfigError, match=f"both 'sample' and '{key}' set"):
        validate(spec)
