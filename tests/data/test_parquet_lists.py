"""Parquet copies of collections give the lists that the text gives, and are checked as closely."""

from __future__ import annotations

import io
from itertools import groupby
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import yaml
from pyarrow import parquet

from directrank.data import catalog, parquet_lists
from directrank.data.prepare import prepare, verify
from directrank.data.prepared import SPLITS
from directrank.system.errors import DataError

ROOT = Path(__file__).resolve().parents[2]
F = 3


def documents(split: str, n_queries: int = 7) -> list[tuple[int, int, list[float]]]:
    """Query, label and features of documents; each split has queries of its own."""
    stream = np.random.default_rng(SPLITS.index(split))
    return [
        (100 * SPLITS.index(split) + query, int(stream.integers(0, 3)), stream.random(F).tolist())
        for query in range(n_queries)
        for _ in range(stream.integers(1, 5))
    ]


def as_text(rows) -> bytes:
    return "".join(
        f"{label} qid:{query} {' '.join(f'{n}:{x!r}' for n, x in enumerate(features, 1))}\n"
        for query, label, features in rows
    ).encode()


def packed(table: pa.Table) -> bytes:
    stream = io.BytesIO()
    parquet.write_table(table, stream)
    return stream.getvalue()


def row_per_query(rows) -> bytes:
    """As Yahoo's files are converted: ids are text, and features single precision."""
    lists = [(query, list(group)) for query, group in groupby(rows, lambda row: row[0])]
    return packed(
        pa.table(
            {
                "query_id": pa.array([str(query) for query, _ in lists]),
                "features": pa.array(
                    [[row[2] for row in group] for _, group in lists],
                    pa.list_(pa.list_(pa.float32())),
                ),
                "relevance": pa.array(
                    [[row[1] for row in group] for _, group in lists], pa.list_(pa.int8())
                ),
            }
        )
    )


def row_per_document(rows) -> bytes:
    queries, labels, features = zip(*rows, strict=True)
    return packed(pa.table({"qid": queries, "label": labels, "features": features}))


def column_per_feature(rows) -> bytes:
    queries, labels, features = zip(*rows, strict=True)
    columns = {f"f{n}": values for n, values in enumerate(zip(*features, strict=True))}
    return packed(pa.table({"label": labels, "query": queries, **columns}))


class World:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        entry = yaml.safe_load((ROOT / "data/datasets.yaml").read_text())["datasets"]["yahoo1"]
        entry |= {"features": F, "label_levels": 3, "expect": {"train": {"queries": 7}}}
        (folder / "datasets.yaml").write_text(yaml.safe_dump({"datasets": {"yahoo1": entry}}))
        catalog._load.cache_clear()
        self.options = {"catalogue": folder / "datasets.yaml"}

    def prepare(self, files: dict[str, bytes], **options):
        raw = self.folder / f"raw{len(list(self.folder.iterdir()))}"
        for name, content in files.items():
            path = raw / "Yahoo-Learning-to-Rank-Challenge" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        self.raw = raw
        return prepare("yahoo1", raw, self.folder / "out", **self.options, **options)


@pytest.fixture
def world(tmp_path) -> World:
    return World(tmp_path)


NAMES = {"train": "train", "vali": "valid", "test": "test"}
TEXT = {f"set1.{NAMES[split]}.txt": as_text(documents(split)) for split in SPLITS}


@pytest.mark.parametrize("form", [row_per_query, row_per_document, column_per_feature])
@pytest.mark.parametrize("name", ["set1.{}.parquet", "x/set1/{}.parquet"])
def test_a_parquet_copy_is_prepared_like_the_text_and_called_unverified(world, form, name):
    notes: list[str] = []
    expected = world.prepare(TEXT, note=notes.append)
    assert not any("Parquet" in note for note in notes)
    copy = {name.format(NAMES[split]): form(documents(split)) for split in SPLITS}
    record = world.prepare(copy, note=notes.append)
    assert record["digest"] == expected["digest"]
    assert any("Parquet copies have no known digest" in note for note in notes)
    read = [file["path"] for file in record["source"]["files"].values()]
    assert sorted(read) == sorted(copy)
    assert len(verify("yahoo1", world.raw, **world.options)["files"]) == 3


@pytest.mark.parametrize("name", ["set1/{}/chunk_{:04}.parquet", "data/set1.{}-{:05}-of-2.parquet"])
def test_a_split_in_several_files_is_read_in_their_order(world, name):
    expected = world.prepare(TEXT)["digest"]
    copy = {}
    for split in SPLITS:
        rows = documents(split)
        half = next(n for n, row in enumerate(rows) if row[0] % 100 == 3)
        for number, part in enumerate((rows[:half], rows[half:])):
            copy[name.format(NAMES[split], number)] = row_per_query(part)
    record = world.prepare(copy)
    assert record["digest"] == expected
    assert len(record["source"]["files"]) == 6


def test_text_comes_before_a_parquet_copy(world):
    copy = {f"set1/{NAMES[split]}.parquet": row_per_query(documents(split)) for split in SPLITS}
    record = world.prepare({**TEXT, **copy})
    assert sorted(file["path"] for file in record["source"]["files"].values()) == sorted(TEXT)


def test_copies_in_two_places_are_refused(world):
    copy = {
        f"{place}/set1/{NAMES[split]}.parquet": row_per_query(documents(split))
        for split in SPLITS
        for place in "ab"
    }
    with pytest.raises(DataError, match=r"in several places: a/set1/train\.parquet, b/set1/"):
        world.prepare(copy)


def test_the_counts_of_a_parquet_copy_are_asserted(world):
    copy = {f"set1/{NAMES[s]}.parquet": row_per_query(documents(s, 6)) for s in SPLITS}
    with pytest.raises(DataError, match="train: 6 queries, expected 7"):
        world.prepare(copy)


def read(content: bytes, **options):
    return list(parquet_lists.parse(io.BytesIO(content), F, "a.parquet", **options))


def test_blocks_hold_a_part_of_the_file_and_number_its_documents(monkeypatch):
    monkeypatch.setattr(parquet_lists, "_ROWS", 2)
    rows = documents("train")
    blocks = read(row_per_query(rows))
    assert len(blocks) == 4
    lines = np.concatenate([block.lines for block in blocks])
    np.testing.assert_array_equal(lines, np.arange(1, len(rows) + 1))
    np.testing.assert_array_equal(
        np.concatenate([block.features for block in blocks]), np.float32([row[2] for row in rows])
    )


def test_values_are_clipped_if_the_catalogue_says_so():
    content = row_per_document([(1, 0, [1.797e308, -1e300, 5.0])])
    assert read(content, clip=1e6)[0].features.tolist() == [[1e6, -1e6, 5]]
    with pytest.raises(DataError, match="too large for single precision"):
        read(content)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"qid": [1], "features": [[1.0] * F]}, "none of which is the query's or the label's"),
        ({"qid": [1], "label": [0], "features": [[1.0] * 2]}, "2 features, expected 3"),
        ({"qid": [1], "label": [0], "a": [1.0], "b": [1.0]}, "2 columns of features, expected 3"),
        ({"qid": ["a"], "label": [0], "features": [[1.0] * F]}, "is not a whole number"),
        ({"qid": [None, 1], "label": [0, 0], "features": [[1.0] * F] * 2}, "has no id"),
        ({"qid": [1], "label": [0], "features": [[1.0, None, 2.0]]}, "a value is missing"),
        ({"qid": [1], "label": [0], "features": [[1.0, np.nan, 2.0]]}, "is not finite"),
        ({"qid": [1], "label": [np.inf], "features": [[1.0] * F]}, "is not finite"),
        (
            {"qid": [1], "label": [[0, 1]], "features": [[[1.0] * F]]},
            "another number of labels than of documents",
        ),
    ],
)
def test_a_file_that_cannot_be_meant_is_refused(table, message):
    with pytest.raises(DataError, match=message) as caught:
        read(packed(pa.table(table)))
    assert caught.value.file == "a.parquet"


def test_what_is_no_parquet_is_refused():
    with pytest.raises(DataError, match="cannot be read as Parquet"):
        read(b"<html>please log in</html>")
