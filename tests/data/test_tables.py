"""One's own data from CSV, TSV, Parquet and LETOR's text."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from directrank.data.tables import Columns, grades, read
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
    if ending == ".parquet":
        frame.to_parquet(path)
    else:
        frame.to_csv(path, sep="\t" if ending == ".tsv" else ",", index=False)
    return path


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".parquet"])
def test_rows_of_a_query_come_together_in_their_order(tmp_path: Path, ending: str) -> None:
    table = read(written(tmp_path, ending), Columns(group="user"))
    assert table.queries.tolist() == ["b", "b", "a", "a"]
    assert table.labels.tolist() == [1, 2, 0, 1]
    assert table.groups is not None
    assert table.groups.tolist() == [7, 7, 8, 8]
    assert table.names == ("price", "stock")
    assert table.features.tolist() == [[0.5, 1], [2.5, 1], [0, 0], [1, 1]]
    assert table.features.dtype == np.float32
    assert (table.left_out, table.missing) == (("title",), 1)


def test_letor_text_is_read_where_a_query_s_lines_lie_apart(tmp_path: Path) -> None:
    path = tmp_path / "mine.txt"
    path.write_text("1 qid:4 1:0.5 2:1 # a\n0 qid:3 1:1\n2 qid:4 2:0.25\n", encoding="utf-8")
    table = read(path, Columns())
    assert table.queries.tolist() == [4, 4, 3]
    assert table.labels.tolist() == [1, 2, 0]
    assert table.features.tolist() == [[0.5, 1], [0, 0.25], [1, 0]]
    with pytest.raises(DataError, match="has no column names"):
        read(path, Columns(query="qid"))


@pytest.mark.parametrize(
    ("columns", "change", "message"),
    [
        (Columns(query="session"), {}, "should be 'session', but the columns are qid, label"),
        (Columns(), {"query": [1, 2, 3, 4]}, "--query-column NAME"),
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


def test_grades_stay_and_other_labels_are_cut_into_grades_of_about_equal_size() -> None:
    assert grades(np.array([4.0, 0.0, 2.0]), 3).tolist() == [4, 0, 2]
    shares = np.r_[np.zeros(50), np.linspace(0.01, 1, 100)]
    cut = grades(shares, 5)
    assert np.bincount(cut).tolist() == [50, 25, 25, 25, 25]
    assert (np.diff(cut) >= 0).all()
    assert grades(np.array([-1.0, 0.0, 1.0, 1.0]), 3).tolist() == [0, 1, 1, 1]
    assert grades(np.array([0.5, 0.5]), 4).tolist() == [0, 0]
    assert grades(np.array([0.0, 40.0]), 4).tolist() == [0, 1]
