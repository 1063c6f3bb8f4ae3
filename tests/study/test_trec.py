"""TREC's formats: what is read and written, and what is refused."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

from directrank.lists.packed import RankedLists
from directrank.study.trec import read_qrels, read_run, write_qrels, write_run
from directrank.system.errors import DataError

RUN = """\
# a comment
qid:7 Q0 a 1 0.5 mine

7\tQ0  b 2 0.75 mine
8 Q0 a 1 1e-3 mine
7 Q0 c 3 0.5 mine
"""


def write(path, text, packed=False):
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    return path


@pytest.mark.parametrize("packed", [False, True])
def test_ranks_are_by_score_and_ties_by_document_falling(tmp_path, packed):
    run = read_run(write(tmp_path / "a.run", RUN, packed))
    assert run.rankings == {"7": ["b", "c", "a"], "8": ["a"]}
    assert run.tied == {"7"}


def test_equal_scores_are_in_the_order_of_trec_eval(tmp_path):
    import ir_measures

    documents = ["d10", "d9", "e", "D9", "d1"]
    text = "".join(f"1 Q0 {name} 1 2.0 t\n" for name in documents)
    qrels = {"1": {name: int(name == "d9") for name in documents}}
    ranking = read_run(write(tmp_path / "a.run", text)).rankings["1"]
    run = {"1": dict.fromkeys(documents, 2.0)}
    (value,) = ir_measures.iter_calc([ir_measures.RR], qrels, run)
    assert 1 / (1 + ranking.index("d9")) == value.value


def test_labels_below_0_are_read_as_0(tmp_path):
    path = write(tmp_path / "qrels", "1 0 a 2\n1 0 b -2\n\nqid:2 0 a 0\n")
    assert read_qrels(path) == {"1": {"a": 2, "b": 0}, "2": {"a": 0}}


@pytest.mark.parametrize(
    ("read", "text", "message"),
    [
        (read_run, "7 Q0 a 1 0.5 t\n7 Q0 b 2 0.4\n", ":2: has 5 fields, expected 6"),
        (read_run, "7 Q0 a 1 high t\n", ":1: the score 'high' is not a finite number"),
        (read_run, "7 Q0 a 1 nan t\n", ":1: the score 'nan' is not a finite number"),
        (
            read_run,
            "7 Q0 a 1 2 t\n8 Q0 a 1 2 t\n7 Q0 a 2 1 t\n",
            ":3: query 7 has document a twice",
        ),
        (read_qrels, "7 0 a 1.5\n", ":1: the label '1.5' is not a whole number"),
        (read_qrels, "7 0 a 1\n7 0 a 1\n", ":2: query 7 has document a twice"),
        (read_qrels, "7 Q0 a 1 0.5 t\n", ":1: has 6 fields, expected 4"),
    ],
)
def test_a_malformed_line_is_one_error_with_file_line_and_remedy(tmp_path, read, text, message):
    path = write(tmp_path / "file", text)
    with pytest.raises(DataError) as error:
        read(path)
    assert f"{path}{message}" in str(error.value)
    assert error.value.remedy


def test_a_file_that_is_missing_damaged_or_no_text_is_one_error(tmp_path):
    with pytest.raises(DataError, match="does not exist"):
        read_run(tmp_path / "nowhere")
    damaged = write(tmp_path / "damaged.gz", RUN * 50, packed=True)
    damaged.write_bytes(damaged.read_bytes()[:60])
    with pytest.raises(DataError, match="damaged"):
        read_run(damaged)
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00 1")
    with pytest.raises(DataError, match="not text"):
        read_run(tmp_path / "binary")


def lists(lengths, labels, queries):
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    labels = np.array(labels, np.float32)
    return RankedLists(np.zeros((len(labels), 1), np.float32), labels, offsets, np.array(queries))


def test_a_written_run_has_the_studys_order_and_no_ties_in_single_precision(tmp_path):
    two = lists([4, 1], [0, 1, 2, 0, 1], [12, 3])
    # Of one value in single precision, and of one in any; below zero the next number is below.
    scores = np.array([0.1, 0.1 + 1e-12, 0.1, -1.0, 0.0])
    write_run(tmp_path / "a.run", [(two, scores)], "mine", "# header\n")
    rows = [line.split() for line in (tmp_path / "a.run").read_text().splitlines()[1:]]
    assert [row[2] for row in rows] == ["12-2", "12-1", "12-3", "12-4", "3-1"]
    assert [row[3] for row in rows] == ["1", "2", "3", "4", "1"]
    written = np.array([row[4] for row in rows[:4]], np.float32)
    assert (np.diff(written) < 0).all()
    np.testing.assert_allclose(written, scores[[1, 0, 2, 3]], rtol=1e-6)
    run = read_run(tmp_path / "a.run")
    assert run.rankings["12"] == ["12-2", "12-1", "12-3", "12-4"]
    assert not run.tied
    write_qrels(tmp_path / "a.qrels", [two])
    judged = read_qrels(tmp_path / "a.qrels")
    assert judged == {"12": {"12-1": 0, "12-2": 1, "12-3": 2, "12-4": 0}, "3": {"3-1": 1}}


@pytest.mark.parametrize(
    ("scores", "message"),
    [([1.0, 2.0], "2 scores for 3 documents"), ([1.0, 2.0, 1e40], "not finite in single")],
)
def test_scores_that_no_run_can_hold_are_refused(tmp_path, scores, message):
    with pytest.raises(DataError, match=message):
        write_run(tmp_path / "a.run", [(lists([3], [0, 1, 0], [1]), np.array(scores))], "mine")
    assert not list(tmp_path.iterdir())
