"""One's own data from CSV, TSV, Parquet and LETOR's text."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from directrank.data.tables import Columns, read
from directrank.system.errors import DataError

FRAME = pd.DataFrame(
    {
        "qid": ["b", "a", "b", "a"],
        "label": [1, 0, 2, 1],
        "price": [0.5, np.nan, 2.5, 1.0],
        "stock": [True, False, True, True],
        "title": ["x", "y", "x", "z"],
        "user": [7, 8, 7, 8],
    }
)


def written(folder: Path, ending: str, frame: pd.DataFrame = FRAME) -> Path:
    path = folder / f"mine{ending}"
    if ".parquet" in ending:
        content = frame.to_parquet()
    else:
        content = frame.to_csv(sep="\t" if ".tsv" in ending else ",", index=False).encode()
    path.write_bytes(gzip.compress(content) if ending.endswith(".gz") else content)
    return path


@pytest.mark.parametrize(
    "ending", [".csv", ".tsv", ".parquet", ".csv.gz", ".tsv.gz", ".parquet.gz"]
)
def test_tables_are_read_in_the_order_of_their_rows(tmp_path: Path, ending: str) -> None:
    table = read(written(tmp_path, ending), Columns(group="user"))
    assert table.queries.tolist() == ["b", "a", "b", "a"]
    assert table.labels.tolist() == [1, 0, 2, 1]
    assert table.groups is not None
    assert table.groups.tolist() == ["7", "8", "7", "8"]
    assert table.names == ("price", "stock")
    assert table.features.tolist() == [[0.5, 1], [0, 0], [2.5, 1], [1, 1]]
    assert table.features.dtype == np.float32
    assert (table.words, table.missing) == ({"title": "title (row 1: 'x')"}, 1)


def test_letor_text_has_features_by_number(tmp_path: Path) -> None:
    path = tmp_path / "mine.txt"
    path.write_text("1 qid:4 1:0.5 2:1 # a\n0 qid:3 1:1\n2 qid:4 2:0.25\n", encoding="utf-8")
    table = read(path, Columns())
    assert table.queries.tolist() == ["4", "3", "4"]
    assert table.labels.tolist() == [1, 0, 2]
    assert table.features.tolist() == [[0.5, 1], [1, 0], [0, 0.25]]
    assert table.names == ("1", "2")
    assert read(path, Columns(leave_out=("1",))).features.tolist() == [[1], [0], [0.25]]
    with pytest.raises(DataError, match="has no column names"):
        read(path, Columns(query="qid"))


@pytest.mark.parametrize(
    "ids", [["1.1", "1.10", "001", "1", str(2**63 + 1)], ["NA", "null", "None", "nan", "1"]]
)
def test_ids_are_text_of_which_no_word_is_missing(tmp_path: Path, ids: list[str]) -> None:
    frame = pd.DataFrame({"qid": ids, "user": ids, "label": 1, "price": ["nan", *range(4)]})
    for ending in (".csv", ".tsv", ".parquet"):
        path = written(tmp_path, ending, frame.assign(price=range(5)))
        table = read(path, Columns(group="user"))
        assert table.groups is not None
        assert table.queries.tolist() == table.groups.tolist() == ids
    assert read(written(tmp_path, ".csv", frame), Columns(group="user")).missing == 1
    with pytest.raises(DataError, match="row 3 has no value in the column 'qid'"):
        read(written(tmp_path, ".csv", frame.assign(qid=["a", "b", *[""] * 3])), Columns())


@pytest.mark.parametrize(
    ("separator", "said"),
    [(";", "a semicolon"), ("\t", "a tab"), (" ", "blanks"), ("|", "'|'"), (",", None)],
)
def test_the_separator_is_that_of_the_header(
    tmp_path: Path, separator: str, said: str | None
) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(separator.join(["qid", "label", "a"]) + "\n" + separator.join("753") + "\n")
    table = read(path, Columns())
    assert (table.queries.tolist(), table.labels.tolist()) == (["7"], [5])
    assert table.names == ("a",)
    expected = () if said is None else (f"the columns of mine.csv are separated by {said}",)
    assert table.remarks == expected


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be-mark"])
def test_encodings_with_a_mark_are_read(tmp_path: Path, encoding: str) -> None:
    path, letor = tmp_path / "mine.csv", tmp_path / "mine.txt"
    for file, text in ((path, "qid,label,é\n7,1,2\n"), (letor, "1 qid:é 1:2\n")):
        if encoding == "utf-16-be-mark":
            file.write_bytes(("\ufeff" + text).encode("utf-16-be"))
        else:
            file.write_text(text, encoding=encoding)
    assert read(path, Columns()).names == ("é",)
    assert read(letor, Columns()).queries.tolist() == ["é"]


def test_lines_that_end_with_cr_alone_are_one_error(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_bytes(b"qid,label,a\r7,1,2\r")
    with pytest.raises(DataError, match="lines end with CR alone; save it with LF or CRLF"):
        read(path, Columns())


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16-le"])
def test_other_encodings_are_refused_with_their_first_line(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "mine.csv"
    path.write_bytes("qid,label,a,title\n7,1,2,café\n".encode(encoding))
    with pytest.raises(DataError, match="is not UTF-8 text") as caught:
        read(path, Columns())
    assert caught.value.line == (2 if encoding == "latin-1" else 1)
    assert caught.value.remedy == "save it as UTF-8"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("7,1,0.5\n7,0,0.25\n", "first line seems to hold values"),
        ("a,1,0.5\nb,0,0.25\n", "first line seems to hold values"),
        ("qid,label,a,a\n7,1,2,3\n", "the column 'a' occurs twice"),
        ("qid,label,a\n7,1,2,3\n", "more values than the first line has names"),
        ("qid,label,a\n7,1,2\n7,1,2,3\n", "line 3"),
        ("qid;label;a\n7;1;0,5\n", "no other numeric column; a .row 1: '0,5'.\n.*decimal point"),
        ("qid,query,label,a\n7,1,2,3\n", "qid, query\n.*--query-column qid --leave-out query"),
        ("qid,label,rel,a\n7,1,2,3\n", "label, rel\n.*--label-column label --leave-out rel"),
        ("", "has no rows"),
        ("qid,label,a\n", "has no rows"),
    ],
)
def test_what_is_wrong_with_a_table_is_said(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=message):
        read(path, Columns())


def test_names_that_are_numbers_are_names(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("qid,label,1,2\n7,1,2,3\n", encoding="utf-8")
    assert read(path, Columns()).names == ("1", "2")


def test_one_of_two_columns_of_queries_is_chosen(tmp_path: Path) -> None:
    path = written(tmp_path, ".csv", FRAME.assign(query=[1, 2, 3, 4]))
    chosen = read(path, Columns(query="query"))
    assert chosen.queries.tolist() == ["1", "2", "3", "4"]
    assert "qid" in chosen.words
    assert read(path, Columns(leave_out=("query",))).queries.tolist() == ["b", "a", "b", "a"]


def test_columns_without_a_name_are_no_features(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    FRAME.to_csv(path)
    pd.read_csv(path).to_csv(path)
    table = read(path, Columns())
    assert table.names == ("price", "stock", "user")
    assert table.remarks == ("a column without a name is left out: Unnamed: 0.1, Unnamed: 0",)


def test_an_index_holds_the_query_but_no_feature(tmp_path: Path) -> None:
    path = tmp_path / "mine.parquet"
    FRAME.assign(doc=range(4)).set_index(["qid", "doc"]).to_parquet(path)
    table = read(path, Columns())
    assert table.queries.tolist() == ["b", "a", "b", "a"]
    assert table.names == ("price", "stock", "user")
    assert table.remarks == ("the index 'doc' of mine.parquet is not a feature",)


def test_truth_values_may_be_missing_and_one_word_makes_a_column_words(tmp_path: Path) -> None:
    price = [0.5, 1, "cheap", 2]
    table = read(
        written(tmp_path, ".csv", FRAME.assign(stock=[True, None, False, True], price=price)),
        Columns(),
    )
    assert table.names == ("stock", "user")
    assert table.features[:, 0].tolist() == [1, 0, 0, 1]
    assert table.words["price"] == "price (row 3: 'cheap')"


def test_a_column_can_be_left_out_before_it_is_an_error(tmp_path: Path) -> None:
    path = written(tmp_path, ".csv", FRAME.assign(price=[1, 2, np.inf, 0]))
    with pytest.raises(DataError, match="--leave-out 'price'"):
        read(path, Columns())
    table = read(path, Columns(leave_out=("price", "none")))
    assert (table.names, table.left_out) == (("stock", "user"), ("price",))


@pytest.mark.parametrize(
    ("columns", "change", "message"),
    [
        (Columns(query="session"), {}, "should be 'session', but the columns are qid, label"),
        (Columns(label="stars"), {}, "--label-column NAME"),
        (Columns(), {"label": [1, None, 0, 1]}, "row 2 has no value in the column 'label'"),
        (Columns(), {"label": ["1", "good", "0", "1"]}, "the label 'good' of row 2"),
        (Columns(), {"price": [1, 2, np.inf, 0]}, "inf of column 'price', row 3"),
        (Columns(), {"price": [1, 1e39, 2, 0]}, "row 2, is not finite, or too large"),
        (
            Columns(),
            {"price": list("abcd"), "stock": list("abcd"), "user": "u"},
            "no other numeric",
        ),
    ],
)
def test_what_is_wrong_is_said_with_its_place(
    tmp_path: Path, columns: Columns, change: dict, message: str
) -> None:
    path = written(tmp_path, ".csv", FRAME.assign(**change))
    with pytest.raises(DataError, match=message) as caught:
        read(path, columns)
    assert str(path) in str(caught.value)


def test_files_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="does not exist"):
        read(tmp_path / "none.csv", Columns())
    for name, text in {"a.xlsx": "?", "b.parquet": "no parquet", "c.csv": 'a,b\n1,"2\n'}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
        with pytest.raises(DataError):
            read(tmp_path / name, Columns())
    for ending in (".csv.gz", ".parquet.gz"):
        path = written(tmp_path, ending)
        path.write_bytes(path.read_bytes()[:-9])
        with pytest.raises(DataError, match="is damaged"):
            read(path, Columns())
