"""The stored form of data sets."""

from __future__ import annotations

import csv
import os
from pathlib import Path

import numpy as np
import pytest

from directrank.data import prepared
from directrank.data.prepared import (
    COPIES,
    SPLITS,
    Store,
    open_dataset,
    read_record,
    write_prepared,
)
from directrank.lists.packed import RankedLists
from directrank.system import io
from directrank.system.errors import DataError

META = {"name": "small", "origin": "generated", "label_levels": 3}


def lists(n_queries: int, first_id: int = 1, n_features: int = 4, seed: int = 0) -> RankedLists:
    rng = np.random.default_rng([seed, first_id])
    offsets = np.concatenate([[0], np.cumsum(rng.integers(1, 9, n_queries))])
    n_documents = int(offsets[-1])
    return RankedLists(
        rng.normal(size=(n_documents, n_features)).astype(np.float32),
        rng.integers(0, 3, n_documents).astype(np.float32),
        offsets,
        np.arange(first_id, first_id + n_queries),
    )


def assert_same(left: RankedLists, right: RankedLists) -> None:
    for name in ("features", "labels", "offsets", "query_ids"):
        np.testing.assert_array_equal(getattr(left, name), getattr(right, name))


def joined(*parts: RankedLists) -> RankedLists:
    shifts = np.cumsum([0, *(part.n_documents for part in parts)])
    offsets = [part.offsets[1:] + shift for part, shift in zip(parts, shifts[:-1], strict=True)]
    return RankedLists(
        np.concatenate([part.features for part in parts]),
        np.concatenate([part.labels for part in parts]),
        np.concatenate([[0], *offsets]),
        np.concatenate([part.query_ids for part in parts]),
    )


def tree(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.fixture
def splits() -> dict[str, RankedLists]:
    return {"train": lists(20), "vali": lists(5, 100), "test": lists(7, 200)}


@pytest.fixture
def parts() -> dict[str, RankedLists]:
    return {f"S{k}": lists(3 + k, 100 * k) for k in range(1, 6)}


def test_what_is_written_is_what_is_opened(tmp_path, splits):
    write_prepared(tmp_path / "data", splits, META)
    for name, expected in splits.items():
        opened = open_dataset(tmp_path / "data" / name)
        assert_same(opened, expected)
        assert opened.offsets[0] == 0
        assert (opened.features.dtype, opened.labels.dtype) == (np.float32, np.float32)
        assert (opened.offsets.dtype, opened.query_ids.dtype) == (np.int64, np.int64)


def test_opened_features_are_read_only_views_of_the_file(tmp_path, splits):
    write_prepared(tmp_path / "data", splits, META)
    opened = open_dataset(str(tmp_path / "data" / "vali"))
    assert isinstance(opened.features, np.memmap)
    assert isinstance(opened.labels, np.memmap)
    with pytest.raises(ValueError, match="read-only"):
        opened.features[0, 0] = 1


def test_folds_are_views_of_parts_that_are_stored_once_and_two_of_them_twice(tmp_path, parts):
    record = write_prepared(tmp_path / "data", parts, META, folds=5)
    for fold in range(1, 6):
        ring = [parts[f"S{(fold - 1 + step) % 5 + 1}"] for step in range(5)]
        expected = {"train": joined(*ring[:3]), "vali": ring[3], "test": ring[4]}
        for split in SPLITS:
            assert_same(open_dataset(tmp_path / "data" / f"Fold{fold}" / split), expected[split])
    rows = sum(parts[f"S{k}"].n_documents for k in (1, 2, 3, 4, 5, 1, 2))
    assert np.load(tmp_path / "data/store/features.npy", mmap_mode="r").shape == (rows, 4)
    total = record["total"]
    assert total["documents"] == sum(part.n_documents for part in parts.values())
    assert total["queries"] == 30


def test_the_record_says_what_is_there(tmp_path, splits):
    record = write_prepared(tmp_path / "data", splits, {**META, "note": "x"})
    assert record == read_record(tmp_path / "data")
    train = splits["train"]
    counts = record["splits"]["train"]
    assert (counts["queries"], counts["documents"]) == (20, train.n_documents)
    assert counts["empty_queries"] == int((train.relevant_counts() == 0).sum())
    assert counts["labels"] == np.bincount(train.labels.astype(int), minlength=3).tolist()
    assert counts["list_length"]["longest"] == train.lengths.max()
    assert counts["list_length"]["mean"] == pytest.approx(train.lengths.mean())
    assert (record["n_features"], record["label_levels"], record["note"]) == (4, 3, "x")
    assert record["arrays"]["labels.npy"] == io.sha256_of(tmp_path / "data/store/labels.npy")


def test_the_range_of_every_feature_is_written(tmp_path, splits):
    write_prepared(tmp_path / "data", splits, META)
    features = np.concatenate([part.features for part in splits.values()])
    with open(tmp_path / "data/features.csv") as file:
        rows = list(csv.DictReader(file))
    assert [row["feature"] for row in rows] == ["1", "2", "3", "4"]
    np.testing.assert_array_equal(
        np.array([row["minimum"] for row in rows], np.float32), features.min(axis=0)
    )
    np.testing.assert_array_equal(
        np.array([row["maximum"] for row in rows], np.float32), features.max(axis=0)
    )
    assert [int(row["non_zero"]) for row in rows] == (features != 0).sum(axis=0).tolist()


def test_equal_content_gives_equal_bytes_and_other_content_another_digest(tmp_path, splits):
    first = write_prepared(tmp_path / "a", splits, META)
    write_prepared(tmp_path / "b", splits, META)
    assert tree(tmp_path / "a") == tree(tmp_path / "b")
    splits["test"].features[0, 0] += 1
    assert write_prepared(tmp_path / "c", splits, META)["digest"] != first["digest"]


def test_the_same_arrays_split_otherwise_have_another_digest(tmp_path):
    whole = lists(10)
    head, tail = whole.select(np.arange(4)), whole.select(np.arange(4, 10))
    three, four = whole.select(np.arange(3)), whole.select(np.arange(3, 10))
    a = write_prepared(tmp_path / "a", {"train": head, "vali": tail}, META)
    b = write_prepared(tmp_path / "b", {"train": three, "vali": four}, META)
    assert a["arrays"] == b["arrays"]
    assert a["digest"] != b["digest"]


def test_a_prepared_data_set_is_replaced_whole(tmp_path, splits, parts):
    write_prepared(tmp_path / "data", parts, META, folds=5)
    write_prepared(tmp_path / "data", splits, META)
    write_prepared(tmp_path / "fresh", splits, META)
    assert tree(tmp_path / "data") == tree(tmp_path / "fresh")
    assert sorted(os.listdir(tmp_path)) == ["data", "fresh"]


def test_anything_else_is_not_replaced(tmp_path, splits):
    (tmp_path / "home").mkdir()
    (tmp_path / "home/letter.txt").write_text("dear")
    with pytest.raises(DataError, match="not a prepared data set"):
        write_prepared(tmp_path / "home", splits, META)
    with pytest.raises(DataError, match="not a prepared data set"):
        write_prepared(tmp_path / "home/letter.txt", splits, META)
    assert (tmp_path / "home/letter.txt").read_text() == "dear"
    (tmp_path / "empty").mkdir()
    write_prepared(tmp_path / "empty", splits, META)
    (tmp_path / "raw/train").mkdir(parents=True)
    with pytest.raises(DataError, match="not a prepared data set"):
        write_prepared(tmp_path / "raw", splits, META)


def test_a_prepared_data_set_without_its_record_is_replaced(tmp_path, splits):
    write_prepared(tmp_path / "data", splits, META)
    before = tree(tmp_path / "data")
    (tmp_path / "data/prepared.json").unlink()
    write_prepared(tmp_path / "data", splits, META)
    assert tree(tmp_path / "data") == before


def test_a_prepared_data_set_whose_files_a_workflow_has_deleted_is_made_again(tmp_path, splits):
    write_prepared(tmp_path / "data", splits, META)
    before = tree(tmp_path / "data")
    (tmp_path / "data" / COPIES).mkdir()
    (tmp_path / "data" / COPIES / "copy").write_text("scaled")
    for name in before:
        (tmp_path / "data" / name).unlink()
    write_prepared(tmp_path / "data", splits, META)
    assert tree(tmp_path / "data") == before


def test_a_failure_leaves_what_was_there_and_no_rest(tmp_path, splits):
    write_prepared(tmp_path / "data", splits, META)
    before = tree(tmp_path / "data")
    splits["test"].labels[0] = 7
    with pytest.raises(DataError, match="label 7 is not one of 0 … 2"):
        write_prepared(tmp_path / "data", splits, META)
    assert tree(tmp_path / "data") == before
    assert os.listdir(tmp_path) == ["data"]


def test_what_a_killed_process_left_is_removed_but_not_what_another_is_writing(tmp_path, splits):
    stale = tmp_path / ".data.dead.part"
    stale.mkdir()
    (stale / "features.npy").write_bytes(b"x")
    with prepared.replacing(tmp_path / "data") as living:
        (living / "mine").write_text("x")
        write_prepared(tmp_path / "data", splits, META)
        assert living.is_dir()
        assert (living / "mine").is_file()
    assert os.listdir(tmp_path) == ["data"]


@pytest.mark.parametrize("label", [0.5, -1, 3])
def test_labels_must_be_whole_and_in_range(tmp_path, splits, label):
    splits["vali"].labels[1] = label
    with pytest.raises(DataError, match=f"label {label} is not one of"):
        write_prepared(tmp_path / "data", splits, META)


def test_splits_must_agree_and_hold_queries(tmp_path, splits):
    with pytest.raises(DataError, match="number of features"):
        write_prepared(tmp_path / "data", {**splits, "vali": lists(3, n_features=5)}, META)
    with pytest.raises(DataError, match="contains no query"):
        write_prepared(tmp_path / "data", {**splits, "vali": lists(0)}, META)
    assert os.listdir(tmp_path) == []


def test_opening_something_else_says_what_to_open(tmp_path, parts):
    write_prepared(tmp_path / "data", parts, META, folds=5)
    with pytest.raises(DataError, match="Fold1/") as caught:
        open_dataset(tmp_path / "data")
    assert "whole data set" in caught.value.what
    with pytest.raises(DataError, match="does not exist"):
        open_dataset(tmp_path / "nowhere")
    with pytest.raises(DataError, match="not a split"):
        open_dataset(tmp_path / "data/store")
    with pytest.raises(DataError, match="not a prepared data set"):
        read_record(tmp_path)


@pytest.mark.parametrize("name", ["features", "labels", "offsets", "query_ids", "groups"])
def test_a_damaged_store_is_an_error(tmp_path, splits, name):
    write_prepared(tmp_path / "data", splits, META)
    array = tmp_path / f"data/store/{name}.npy"
    whole = array.read_bytes()
    for damaged in (whole[: len(whole) // 2], b"", whole[:20]):
        array.write_bytes(damaged)
        with pytest.raises(DataError, match="store"):
            open_dataset(tmp_path / "data/test")
    array.unlink()
    with pytest.raises(DataError, match="damaged"):
        open_dataset(tmp_path / "data/test")


def test_a_moved_data_set_opens(tmp_path, splits):
    write_prepared(tmp_path / "data", splits, META)
    (tmp_path / "data").rename(tmp_path / "moved")
    assert_same(open_dataset(tmp_path / "moved/train"), splits["train"])


def test_a_store_can_reorder_its_last_part_and_drop_columns(tmp_path):
    one, two = lists(5), lists(6, 100)
    order = np.random.default_rng(1).permutation(two.n_documents)
    with Store(tmp_path / "store", 4) as store:
        for name, part, rows in (("a", one, None), ("b", two, order)):
            store.append(part.features, part.labels)
            store.end_part(name, part.offsets, part.query_ids, order=rows)
        np.testing.assert_array_equal(store.part("a").features, one.features)
        np.testing.assert_array_equal(store.part("b").features, two.features[order])
        np.testing.assert_array_equal(store.part("b").labels, two.labels[order])
        store.keep_columns(np.array([0, 3]))
    expected = np.concatenate([one.features, two.features[order]])[:, [0, 3]]
    np.testing.assert_array_equal(np.load(tmp_path / "store/features.npy"), expected)
    np.testing.assert_array_equal(store.maximum, expected.max(axis=0))
    assert sorted(os.listdir(tmp_path / "store")) == [
        "features.npy",
        "groups.npy",
        "labels.npy",
        "offsets.npy",
        "query_ids.npy",
    ]
