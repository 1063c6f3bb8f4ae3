"""LETOR's, LightGBM's and XGBoost's text as users have it."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from directrank.data.own_text import read_text
from directrank.system.errors import DataError


def read(folder: Path, text: str, name: str = "rank.train", **beside: str):
    for ending, content in beside.items():
        (folder / f"{name}.{ending}").write_text(content, encoding="utf-8")
    (folder / name).write_text(text, encoding="utf-8")
    return read_text(folder / name)


def test_query_ids_are_any_text(tmp_path: Path) -> None:
    ids = ["1.1", "1.10", "001", "1", "NA", "nan", "q:7", "é", "1.1"]
    text = read(tmp_path, "".join(f"1 qid:{name} 1:2\n" for name in ids))
    assert text.queries.tolist() == ids


def test_missing_values_are_zeros_and_are_counted(tmp_path: Path) -> None:
    text = read(tmp_path, "1 qid:1 1:nan 2:NULL 3:4 # a:nan\n0 qid:1 1:NaN 2:5 3:na\n")
    assert text.features.tolist() == [[0, 0, 4], [0, 5, 0]]
    assert text.missing == 4


def test_costs_and_slacks_are_ignored_and_it_is_said(tmp_path: Path) -> None:
    text = read(tmp_path, "1 qid:1 cost:2 1:3\n0 qid:1 sid:4 1:5\n")
    assert text.features.tolist() == [[3], [5]]
    assert text.remarks == ("'cost:' and 'sid:' are ignored",)


def test_features_are_counted_from_0_if_there_is_one_with_that_index(tmp_path: Path) -> None:
    zero = read(tmp_path, "1 qid:0 1:3\n0 qid:0 0:5 # 7:1\n")
    assert (zero.first_index, zero.features.tolist()) == (0, [[0, 3], [5, 0]])
    assert len(zero.remarks) == 1
    one = read(tmp_path, "1 qid:0 1:3\n0 qid:0 2:5 # 0:1\n")
    assert (one.first_index, one.features.tolist()) == (1, [[3, 0], [0, 5]])
    assert one.remarks == ()


@pytest.mark.parametrize("ending", ["query", "group"])
def test_queries_are_counted_in_a_file_beside_the_data(tmp_path: Path, ending: str) -> None:
    text = read(tmp_path, "1 1:3\n0 1:5 # c\n\n2 1:4\n", **{ending: "2\n0\n1\n", "weight": "1\n"})
    assert text.queries.tolist() == ["1", "1", "3"]
    assert text.labels.tolist() == [1, 0, 2]
    assert text.remarks == (
        "rank.train.weight is ignored, because all documents have the same weight here",
    )
    (tmp_path / "rank.train.gz").write_bytes(gzip.compress(b"1 1:3\n0 1:5\n2 1:4\n"))
    assert read_text(tmp_path / "rank.train.gz").queries.tolist() == ["1", "1", "3"]


@pytest.mark.parametrize(
    ("beside", "message", "file", "line"),
    [
        ({"query": "2\n"}, "counts 2 documents, but rank.train has 3", "rank.train.query", None),
        ({"query": "2\nx\n"}, "'x' is not a number of documents", "rank.train.query", 2),
        ({"query": "4\n-1\n"}, "'-1' is not a number", "rank.train.query", 2),
        ({"query": "3\n", "group": "3\n"}, "both rank.train.query and", "rank.train", None),
    ],
)
def test_sizes_that_do_not_fit_are_refused(
    tmp_path: Path, beside: dict[str, str], message: str, file: str, line: int | None
) -> None:
    with pytest.raises(DataError, match=message) as caught:
        read(tmp_path, "1 1:3\n0 1:5\n2 1:4\n", **beside)
    assert (caught.value.file, caught.value.line) == (str(tmp_path / file), line)


@pytest.mark.parametrize(
    ("line", "reason", "remedy"),
    [
        ("1 1:2", "no 'qid:'", "rank.train.query"),
        ("1", "no 'qid:'", "rank.train.query"),
        ("1 qid: 1:2", "no query id after", "correct the line"),
        ("query\tlabel\ta", "label is not a number", ".csv"),
        ("1:0.5 qid:a 1:2", "label is not a number", "correct the line"),
        ("nan qid:a 1:2", "label is not a number", "correct the line"),
        ("1 qid:a docid:2 1:2", "not of the form index:value", "correct the line"),
        ("1 qid:a 1:inf", "not a finite number", "correct the line"),
        ("1 qid:a 1:", "not a finite number", "correct the line"),
        ("1 qid:a 1:1e39", "single precision", "scale or clip"),
        ("1 qid:a 1:2 1:2", "occurs twice", "correct the line"),
        ("1 qid:a 1:2 qid:b", "wrong place", "correct the line"),
    ],
)
def test_a_malformed_line_is_shown_as_it_is_in_the_file(
    tmp_path: Path, line: str, reason: str, remedy: str
) -> None:
    with pytest.raises(DataError) as caught:
        read(tmp_path, f"1 qid:b 1:1\n# c\n\n{line} # nan\n1 qid:b 1:x\n")
    assert caught.value.line == 4
    assert reason in caught.value.what
    assert repr(f"{line} # nan") in caught.value.what
    assert remedy in caught.value.remedy


def test_queries_that_are_given_twice_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is a 'qid:', although a file") as caught:
        read(tmp_path, "1 qid:b 1:1\n", query="1\n")
    assert caught.value.line == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [("", "has no rows"), ("# c\n\n", "has no rows"), ("1 qid:1\n0 qid:1 # 1:2\n", "no line has")],
)
def test_files_without_rows_or_features_are_refused(
    tmp_path: Path, text: str, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        read(tmp_path, text)


@pytest.mark.parametrize("index", [100_001, 2_000_000_000, 10**30])
def test_a_huge_feature_index_is_refused_with_its_line(tmp_path: Path, index: int) -> None:
    with pytest.raises(DataError, match=r"feature index \d+ is too large") as caught:
        read(tmp_path, f"# c\n1 qid:1 1:2\n0 qid:1 {index}:1\n0 qid:1 1:1\n")
    assert caught.value.line == 3
    assert "renumber" in caught.value.remedy


def test_labels_are_the_decimals_of_the_file(tmp_path: Path) -> None:
    labels = [0.07, 0.14, 0.41, 1e-5, 3.0]
    text = read(tmp_path, "".join(f"{label} qid:1 1:1\n" for label in labels))
    assert text.labels.dtype == np.float64
    assert text.labels.tolist() == labels
