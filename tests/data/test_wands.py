"""WANDS from small files of its form to a prepared data set."""

from __future__ import annotations

import hashlib
import math
import random
from pathlib import Path

import numpy as np
import pytest
import yaml

from directrank.data import catalog
from directrank.data.archives import open_archive
from directrank.data.prepare import prepare, verify
from directrank.data.prepared import open_dataset
from directrank.data.text.words import words
from directrank.data.wands import FIELDS, GRADES, extract, features, read
from directrank.system.errors import DataError
from wands_archive import LABELS, PRODUCTS, QUERIES, contents, write

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def extracted(tmp_path_factory):
    collection, _ = read(open_archive(write(tmp_path_factory.mktemp("wands") / "WANDS.zip")))
    names, values = features(collection)
    return collection, dict(zip(names, values.T, strict=True))


def at(extracted, query: int, product: str, name: str) -> float:
    collection, values = extracted
    for number, (q, d) in enumerate(zip(collection.query, collection.document, strict=True)):
        if (collection.query_ids[q], collection.documents[d]["id"]) == (query, product):
            return float(values[name][number])
    raise AssertionError((query, product))


def test_grades_are_those_of_the_pairs_whatever_the_order_of_the_file(tmp_path):
    collection, _ = read(open_archive(write(tmp_path / "a.zip")))
    assert collection.query_ids.tolist() == [0, 4, 7, 9, 12, 13, 20, 21]
    assert collection.queries[3] == '64" wide'
    grades = {
        (str(collection.query_ids[q]), collection.documents[d]["id"]): label
        for q, d, label in zip(
            collection.query, collection.document, collection.labels, strict=True
        )
    }
    assert grades == {(query, product): GRADES[label] for query, product, label in LABELS}
    assert collection.omitted == {}
    shuffled = random.Random(1).sample(LABELS, len(LABELS))
    again, _ = read(open_archive(write(tmp_path / "b.zip", labels=shuffled)))
    np.testing.assert_array_equal(again.document, collection.document)
    np.testing.assert_array_equal(again.labels, collection.labels)


def test_queries_for_one_class_of_products_are_a_group(tmp_path):
    collection, group = read(open_archive(write(tmp_path / "a.zip")))
    assert dict(zip(collection.query_ids.tolist(), group.tolist(), strict=True)) == {
        **{0: 0, 4: 0, 7: 7, 13: 7},
        **{9: 9, 12: 12, 20: 20, 21: 21},
    }
    lists, _ = extract(open_archive(tmp_path / "a.zip"), 3, lambda text: None)
    parts = [set(part.groups.tolist()) for part in lists]
    assert sum(part.n_queries for part in lists) == len(QUERIES)
    assert not (parts[0] & parts[1] | parts[0] & parts[2] | parts[1] & parts[2])


def test_of_several_judgements_the_highest_counts_and_what_is_left_out_is_counted(tmp_path):
    more = [
        *LABELS,
        ("20", "5", "Exact"),
        ("20", "2", "Irrelevant"),
        ("21", "2", "Partial"),
        ("0", "99", "Exact"),
        ("99", "0", "Exact"),
    ]
    queries = [*QUERIES, ("50", "a query without judgements", "Beds")]
    path = write(tmp_path / "a.zip", labels=more, queries=queries)
    collection, _ = read(open_archive(path))
    assert len(collection.labels) == len(LABELS)
    assert collection.labels[collection.query == 6].max() == 2
    assert collection.labels[collection.query == 7].max() == 2
    assert collection.omitted == {
        "judgements of a query or product that is not there": 2,
        "judgements of a pair that is judged several times": 3,
        "queries without a judgement that is left": 1,
    }


def test_every_feature_has_a_name_of_its_own_and_is_finite(extracted):
    collection, values = extracted
    assert len(values) == catalog.get("wands").features
    for column in values.values():
        assert column.shape == collection.labels.shape
        assert np.isfinite(column).all()


def test_the_page_names_the_features_in_their_order(extracted):
    page = (ROOT / "docs/wands.md").read_text(encoding="utf-8")
    assert page.split("```text")[1].split("```")[0].split() == list(extracted[1])


@pytest.mark.parametrize("field", ["name", "attributes"])
def test_bm25_is_the_sum_over_the_words_of_the_query(extracted, field):
    collection, values = extracted
    documents = [words(FIELDS[field](product)) for product in collection.documents]
    mean = sum(map(len, documents)) / len(documents)
    some = False
    for number, (q, d) in enumerate(zip(collection.query, collection.document, strict=True)):
        expected = 0.0
        for word in words(collection.queries[q]):
            df = sum(word in text for text in documents)
            idf = math.log(1 + (len(documents) - df + 0.5) / (df + 0.5))
            tf = documents[d].count(word)
            expected += idf * tf * 2.2 / (tf + 1.2 * (0.25 + 0.75 * len(documents[d]) / mean))
        some = some or expected > 0
        assert values[f"{field}.bm25"][number] == pytest.approx(expected, rel=1e-5, abs=1e-6)
    assert some


def test_values_of_attributes_are_text_but_their_names_are_not(extracted):
    assert at(extracted, 4, "1", "attributes.bm25") > 0
    collection, _ = extracted
    assert FIELDS["attributes"](collection.documents[3]).split() == ["velvet", "blue"]


def test_fields_match_and_facts_are_scaled(extracted):
    assert at(extracted, 0, "0", "name.bigrams") == 1
    assert at(extracted, 0, "1", "name.bigrams") == 0
    assert at(extracted, 13, "3", "class.coverage") == pytest.approx(1)
    assert at(extracted, 9, "0", "description.coverage") == pytest.approx(1)
    assert at(extracted, 0, "0", "query.length") == 2
    assert at(extracted, 0, "0", "rating_count") == pytest.approx(math.log(16))
    assert at(extracted, 0, "0", "average_rating") == 4.5
    assert at(extracted, 7, "2", "review_count") == 0


def changed(rows, place: int, column: int, value: str):
    row = list(rows[place])
    row[column] = value
    return [*rows[:place], tuple(row), *rows[place + 1 :]]


@pytest.mark.parametrize(
    ("tables", "file", "message"),
    [
        ({"labels": changed(LABELS, 3, 2, "Good")}, "label.csv", "the label is 'Good'"),
        ({"labels": [*LABELS[:4], ("1",)]}, "label.csv", "has 2 fields"),
        ({"products": changed(PRODUCTS, 3, 6, "many")}, "product.csv", "'many' is not a number"),
        ({"products": changed(PRODUCTS, 3, 0, "0")}, "product.csv", "gives product 0 a second"),
        ({"queries": changed(QUERIES, 3, 0, "x")}, "query.csv", "'x' is not a query's id"),
        ({"queries": changed(QUERIES, 3, 0, "4")}, "query.csv", "gives query 4 a second time"),
        ({"queries": changed(QUERIES, 3, 1, " ")}, "query.csv", "query 9 has no text"),
    ],
)
def test_a_broken_row_is_named_with_file_and_line(tmp_path, tables, file, message):
    with pytest.raises(DataError, match=message) as caught:
        read(open_archive(write(tmp_path / "WANDS.zip", **tables)))
    # A description of product 1 goes on in a second line.
    assert caught.value.line == {"product.csv": 6, "query.csv": 5}.get(file, caught.value.line)
    assert file in str(caught.value)
    assert caught.value.line > 4
    assert caught.value.remedy


def test_a_missing_column_or_file_is_named(tmp_path):
    files = contents()
    (tmp_path / "WANDS").mkdir()
    for name, content in files.items():
        (tmp_path / "WANDS" / name).write_bytes(content.replace(b"product_name", b"title", 1))
    with pytest.raises(DataError, match="has no column 'product_name'"):
        read(open_archive(tmp_path / "WANDS"))
    (tmp_path / "WANDS/product.csv").unlink()
    with pytest.raises(DataError, match=r"holds 0 files product\.csv"):
        read(open_archive(tmp_path / "WANDS"))


@pytest.fixture
def world(tmp_path):
    """A raw folder with a small archive; the catalogue's entry, with git's names of its files."""
    (tmp_path / "raw").mkdir()
    write(tmp_path / "raw/WANDS.zip")
    entry = yaml.safe_load((ROOT / "data/datasets.yaml").read_text())["datasets"]["wands"]
    for name, content in contents().items():
        named = hashlib.sha1(b"blob %d\0" % len(content) + content)
        entry["archives"][0]["files"][name] = named.hexdigest()
    entry["expect"]["total"]["queries"] = len(QUERIES)
    (tmp_path / "datasets.yaml").write_text(yaml.safe_dump({"datasets": {"wands": entry}}))
    catalog._load.cache_clear()
    return tmp_path


def test_features_groups_and_folds_are_stored(world):
    catalogue = world / "datasets.yaml"
    record = prepare("wands", world / "raw", world / "out", catalogue=catalogue)
    assert record["label_levels"] == 3
    assert record["feature_names"][:3] == ["name.coverage", "name.bm25", "name.tfidf"]
    tests = [open_dataset(world / f"out/Fold{fold}/test") for fold in range(1, 6)]
    ids = np.concatenate([lists.query_ids for lists in tests])
    assert sorted(ids.tolist()) == [0, 4, 7, 9, 12, 13, 20, 21]
    assert sum(lists.n_documents for lists in tests) == len(LABELS)
    again = prepare("wands", world / "raw", world / "out", catalogue=catalogue)
    assert again["arrays"] == record["arrays"]


def test_another_version_of_a_file_is_refused_by_gits_name(world):
    catalogue = world / "datasets.yaml"
    assert len(verify("wands", world / "raw", catalogue=catalogue)["files"]) == 3
    write(world / "raw/WANDS.zip", labels=LABELS[::-1])
    with pytest.raises(DataError, match="its git name is"):
        prepare("wands", world / "raw", world / "out", catalogue=catalogue)
    assert not (world / "out").exists()
