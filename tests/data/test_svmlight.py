"""The reader of LETOR/svmlight text."""

from __future__ import annotations

import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_svmlight_file

from directrank.data import svmlight
from directrank.data.archives import open_archive
from directrank.data.catalog import raw_folder
from directrank.data.svmlight import TextFormat, parse, read_svmlight
from directrank.system.errors import DataError


def read(tmp_path, text: bytes | str, n_features=None, **options):
    file = tmp_path / "data.txt"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_svmlight(file, n_features, **options)


def values(text: bytes, n_features: int, piece: int = 1 << 20, **options):
    """Features of ``text``, parsed in pieces of ``piece`` bytes."""
    blocks = parse(io.BytesIO(text), TextFormat(n_features, **options), "text", piece=piece)
    return np.concatenate([block.features for block in blocks])


def test_reads_a_plain_file(tmp_path):
    lists = read(tmp_path, "2 qid:10 1:0.5 2:1\n0 qid:10 1:3 2:-4e-2\n1 qid:7 1:1 2:2\n")
    np.testing.assert_array_equal(
        lists.features, np.array([[0.5, 1], [3, -0.04], [1, 2]], np.float32)
    )
    assert lists.labels.tolist() == [2, 0, 1]
    assert lists.offsets.tolist() == [0, 2, 3]
    assert lists.query_ids.tolist() == [10, 7]
    assert (lists.features.dtype, lists.labels.dtype) == (np.float32, np.float32)
    assert (lists.offsets.dtype, lists.query_ids.dtype) == (np.int64, np.int64)


@pytest.mark.parametrize(
    "text",
    [
        b"1 qid:3 1:2 2:5",
        b"1 qid:3 1:2 2:5\r\n",
        b"\n\n  \n1 qid:3 1:2 2:5\n\n",
        b"# a comment\n1 qid:3 1:2 2:5 #docid = GX000 inc = 1 prob = 0.08\n#",
        b"1 qid:3 1:2 2:5 # caf\xe9 \xff\x00\n",
        b"1 qid:3 1:2 2:5#no blank before\n",
        b"1\tqid:3\t1:2\t2:5\n",
        b"  1   qid:3  1:2  2:5  \n",
        b"1.0 qid:3 1:2.0 2:5.\n",
        b"+1e0 qid:3 1:+2 2:0.5E1\n",
        b"1 qid:3 2:5 1:2\n",
        b"\xef\xbb\xbf1 qid:3 1:2 2:5\n",
        b"01 qid:003 01:02 002:05.0\n",
    ],
)
def test_accepts_every_way_of_writing_the_same_document(tmp_path, text):
    lists = read(tmp_path, text, 2)
    assert lists.features.tolist() == [[2, 5]]
    assert (lists.labels.tolist(), lists.query_ids.tolist()) == ([1], [3])


def test_absent_features_and_null_are_zero_also_after_other_rows(tmp_path):
    lists = read(tmp_path, "0 qid:1 1:7 2:7 3:7\n1 qid:1 2:NULL\n1 qid:1 3:1\n0 qid:1\n")
    assert lists.features.tolist() == [[7, 7, 7], [0, 0, 0], [0, 0, 1], [0, 0, 0]]


def test_query_ids_may_be_any_64_bit_numbers_in_any_order(tmp_path):
    big = 2**63 - 1
    lists = read(tmp_path, f"0 qid:{big} 1:1\n0 qid:-5 1:1\n0 qid:0 1:1\n")
    assert lists.query_ids.tolist() == [big, -5, 0]


def test_features_may_be_counted_from_zero(tmp_path):
    assert read(tmp_path, "0 qid:1 0:4 2:6\n", first_index=0).features.tolist() == [[4, 0, 6]]


def test_table_lines_hold_every_feature(tmp_path):
    lists = read(tmp_path, "2\t9\t1.5\t0\t-3\n0\t9\t1\t2\t3\n", 3, lines="table")
    assert lists.features.tolist() == [[1.5, 0, -3], [1, 2, 3]]
    assert lists.query_ids.tolist() == [9]


def test_an_empty_file_has_no_queries(tmp_path):
    lists = read(tmp_path, "# nothing\n\n", 3)
    assert lists.features.shape == (0, 3)
    assert lists.offsets.tolist() == [0]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("x qid:1 1:1", "label is not a number"),
        ("1,2 qid:1 1:1", "label is not a number"),
        ("nan qid:1 1:1", "label is not a number"),
        ("1 1:1 2:2", "no 'qid:'"),
        ("1", "no 'qid:'"),
        ("1 qid: 1:1", "query id"),
        ("1 qid:1.5 1:1", "query id"),
        ("1 qid:x 1:1", "query id"),
        ("1 qid:9223372036854775808 1:1", "query id"),
        ("1 qid:99999999999999999999999 1:1", "query id"),
        ("1 qid:1 1", "not of the form index:value"),
        ("1 qid:1 a:1", "not of the form index:value"),
        ("1 qid:1 1.5:1", "not of the form index:value"),
        ("1 qid:1 1 :1", "not of the form index:value"),
        ("1 qid:1 1:", "not a finite number"),
        ("1 qid:1 1: 2", "not a finite number"),
        ("1 qid:1 1:x", "not a finite number"),
        ("1 qid:1 1:nan", "not a finite number"),
        ("1 qid:1 1:inf", "not a finite number"),
        ("1 qid:1 1:1e", "not a finite number"),
        ("1 qid:1 1:.", "not a finite number"),
        ("1 qid:1 1:1_0", "not a finite number"),
        ("1 qid:1 1:2:3", "not a finite number"),
        ("1 qid:1 1:null", "not a finite number"),
        ("1 qid:1 1:NULLS", "not a finite number"),
        ("1 qid:1 1:1\x002", "not a finite number"),
        ("1 qid:1 1:1e39", "does not fit in single precision"),
        ("1 qid:1 1:1.8e308", "does not fit in single precision"),
        ("1 qid:1 1:1e999999999999", "does not fit in single precision"),
        ("1e39 qid:1 1:1", "does not fit in single precision"),
        ("1 qid:1 0:1", "below the first"),
        ("1 qid:1 -2:1", "below the first"),
        ("1 qid:1 4:1", "larger than the number of features"),
        ("1 qid:1 99999999999999999999999999:1", "larger than the number of features"),
        ("1 qid:1 2:1 2:1", "occurs twice"),
        ("1 qid:1 3:1 2:1 1:1 2:1", "occurs twice"),
        ("1 qid:1 1:1 qid:1", "wrong place"),
    ],
)
def test_a_malformed_line_is_named_with_file_number_and_text(tmp_path, line, reason):
    with pytest.raises(DataError) as caught:
        read(tmp_path, f"1 qid:1 1:1\n\n# c\n{line}\n1 qid:1 1:2\n", 3)
    assert caught.value.line == 4
    assert caught.value.file == str(tmp_path / "data.txt")
    assert reason in caught.value.what
    assert repr(line)[1:-1] in caught.value.what
    assert caught.value.remedy


def test_table_lines_with_too_few_or_too_many_values_are_errors(tmp_path):
    for line in ("1 7 1 2", "1 7 1 2 3 4"):
        with pytest.raises(DataError, match="number of values"):
            read(tmp_path, line, 3, lines="table")
    with pytest.raises(DataError, match="no query id"):
        read(tmp_path, "1", 3, lines="table")


def test_the_first_of_several_bad_lines_is_reported_whatever_the_pieces(tmp_path):
    good = b"1 qid:1 1:1 2:2\n\n# c\n"
    text = good * 500 + b"bad\n" + good * 500 + b"worse\n"
    for piece in (64, 1000, 1 << 20):
        with pytest.raises(DataError) as caught:
            values(text, 2, piece)
        assert caught.value.line == 1501


def test_quarantine_keeps_the_good_lines_and_counts_the_bad(tmp_path):
    text = "1 qid:1 1:1\nbad\n2 qid:1 1:2\n3 qid:2 9:1\n0 qid:2 1:5"
    file = tmp_path / "bad.txt"
    lists = read(tmp_path, text, 1, quarantine=file)
    assert lists.features.ravel().tolist() == [1, 2, 5]
    assert lists.labels.tolist() == [1, 2, 0]
    assert lists.offsets.tolist() == [0, 2, 3]
    kept = file.read_text().splitlines()
    assert kept[1::2] == ["bad", "3 qid:2 9:1"]
    assert [line.split(":")[1] for line in kept[::2]] == ["2", "4"]


def test_no_quarantine_file_without_a_bad_line(tmp_path):
    read(tmp_path, "1 qid:1 1:1\n", quarantine=tmp_path / "bad.txt")
    assert not (tmp_path / "bad.txt").exists()


def test_clip_acts_on_float64_before_single_precision(tmp_path):
    lists = read(tmp_path, "0 qid:1 1:1.8e308 2:-1.797e308 3:2e6 4:7\n0 qid:1 1:1e400\n", clip=1e6)
    assert lists.features.tolist() == [[1e6, -1e6, 1e6, 7], [1e6, 0, 0, 0]]


def test_a_query_in_two_places_is_an_error_that_names_both(tmp_path):
    text = "0 qid:1 1:1\n0 qid:2 1:2\n1 qid:1 1:3\n"
    with pytest.raises(DataError, match="query 1 continues here, but began at line 1") as caught:
        read(tmp_path, text)
    assert caught.value.line == 3
    assert "merge" in caught.value.remedy


def test_queries_in_two_places_can_be_merged_in_the_order_of_their_lines(tmp_path):
    text = "0 qid:8 1:1\n1 qid:2 1:2\n2 qid:8 1:3\n3 qid:5 1:4\n4 qid:2 1:5\n"
    lists = read(tmp_path, text, split_queries="merge")
    assert lists.query_ids.tolist() == [8, 2, 5]
    assert lists.offsets.tolist() == [0, 2, 4, 5]
    assert lists.features.ravel().tolist() == [1, 3, 2, 5, 4]
    assert lists.labels.tolist() == [0, 2, 1, 4, 3]


def test_a_query_may_go_on_in_the_next_piece():
    text = b"".join(b"0 qid:%d 1:1\n" % (i // 100) for i in range(1000))
    index = svmlight.QueryIndex("text")
    for block in parse(io.BytesIO(text), TextFormat(1), "text", piece=777):
        index.add(block)
    assert index.query_ids().tolist() == list(range(10))
    assert index.offsets().tolist() == list(range(0, 1001, 100))


def test_pieces_and_threads_make_no_difference():
    rng = np.random.default_rng(5)
    text = "".join(
        f"{rng.integers(5)} qid:{i // 7} "
        + " ".join(f"{j}:{rng.normal():.{j}g}" for j in (1, 9, 4))
        + ("\r\n" if i % 3 else " # c\n")
        for i in range(400)
    ).encode()
    whole = values(text, 9)
    for piece in (50, 333, 4096):
        for threads in (1, 3):
            blocks = parse(io.BytesIO(text), TextFormat(9), "", piece=piece, threads=threads)
            np.testing.assert_array_equal(np.concatenate([b.features for b in blocks]), whole)


def test_a_line_longer_than_any_real_one_is_refused(monkeypatch):
    monkeypatch.setattr(svmlight, "LONGEST_LINE", 1000)
    with pytest.raises(DataError, match="line is longer"):
        values(b"1 qid:1 1:1 # " + b"x" * 3000, 1, piece=100)


def test_many_features_with_many_digits_use_the_slow_way_and_are_exact():
    # Every value lies next to the middle between two single-precision numbers.
    middle = (np.float64(np.float32(1.1)) + np.float64(np.nextafter(np.float32(1.1), 2))) / 2
    numbers = [
        f"{middle:.60f}",
        f"{np.nextafter(middle, 0):.60f}",
        f"{np.nextafter(middle, 2):.60f}",
    ]
    n_features = 3000
    line = "0 qid:1 " + " ".join(f"{i + 1}:{numbers[i % 3]}" for i in range(n_features))
    expected = np.array([float(number) for number in numbers], np.float64).astype(np.float32)
    got = values((line + "\n").encode() * 3, n_features)
    np.testing.assert_array_equal(got, np.tile(expected, (3, n_features // 3)))


number_texts = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.floats(width=32, allow_nan=False, allow_infinity=False).map(repr),
    st.floats(-1e6, 1e6).map(lambda x: f"{x:.6f}"),
    st.integers(-(10**25), 10**25).map(str),
    st.from_regex(
        r"[+-]?([0-9]{1,25}\.?[0-9]{0,25}|\.[0-9]{1,25})([eE][+-]?[0-9]{1,3})?", fullmatch=True
    ),
)


@pytest.mark.slow
@given(st.lists(number_texts, min_size=1, max_size=30))
@settings(max_examples=300, deadline=None)
def test_every_number_equals_pythons_rounded_to_single_precision(texts):
    largest = float(np.finfo(np.float32).max)
    texts = [text if abs(float(text)) < largest else "0" for text in texts]
    expected = np.array([float(text) for text in texts], np.float64).astype(np.float32)
    line = "0 qid:1 " + " ".join(f"{i + 1}:{text}" for i, text in enumerate(texts))
    got = values(line.encode(), len(texts))[0]
    assert got.tobytes() == expected.tobytes()


def test_halfway_cases_of_double_and_single_precision_are_rounded_as_python_rounds_them():
    rng = np.random.default_rng(0)
    texts = []
    for bits in rng.integers(0x00800000, 0x7F000000, 2000):
        low = np.uint32(bits).view(np.float32)
        middle = (np.float64(low) + np.float64(np.nextafter(low, np.float32(np.inf)))) / 2
        texts += [f"{middle:.50e}", repr(float(np.nextafter(middle, 0))), f"{middle:.17e}"]
    line = "0 qid:1 " + " ".join(f"{i + 1}:{text}" for i, text in enumerate(texts))
    expected = np.array([float(text) for text in texts]).astype(np.float32)
    np.testing.assert_array_equal(values(line.encode(), len(texts))[0], expected)


documents = st.lists(
    st.tuples(
        st.integers(0, 4),
        st.dictionaries(
            st.integers(1, 12), number_texts.filter(lambda t: abs(float(t)) < 1e38), max_size=12
        ),
        st.sampled_from(["", " ", " # doc = 7", "#x"]),
        st.sampled_from(["\n", "\r\n", "\n\n", "\n# c\n"]),
    ),
    min_size=1,
    max_size=12,
)


@pytest.mark.slow
@given(documents, st.integers(20, 400))
@settings(max_examples=150, deadline=None)
def test_valid_files_are_read_as_scikit_learn_reads_them(rows, piece):
    text = "".join(
        f"{label} qid:{i // 3 + 1} "
        + " ".join(f"{k}:{v}" for k, v in sorted(features.items()))
        + comment
        + end
        for i, (label, features, comment, end) in enumerate(rows)
    ).encode()
    x, y, q = load_svmlight_file(
        io.BytesIO(text), n_features=12, dtype=np.float32, query_id=True, zero_based=False
    )
    blocks = list(parse(io.BytesIO(text), TextFormat(12), "text", piece=piece))
    np.testing.assert_array_equal(np.concatenate([b.features for b in blocks]), x.toarray())
    np.testing.assert_array_equal(np.concatenate([b.labels for b in blocks]), y)
    np.testing.assert_array_equal(np.concatenate([b.query_ids for b in blocks]), q)


@pytest.fixture(scope="module")
def raw_member():
    """A member of an archive in the raw folder, as bytes; skips where the archive is not there."""

    def read_member(archive: str, member: str) -> bytes:
        path = raw_folder() / archive
        if not path.is_file():
            pytest.skip(f"{archive} is not in {raw_folder().resolve()}")
        with open_archive(path).open(member) as stream:
            return b"".join(iter(lambda: stream.read(1 << 20), b""))

    return read_member


@pytest.mark.slow
@pytest.mark.real_data
@pytest.mark.parametrize(
    ("archive", "member", "n_features", "counts"),
    [
        ("MSLR-sample.zip", "MSLR-sample/all.txt", 136, [10_880, 5_909, 2_568, 305, 118]),
        ("OHSUMED.zip", "OHSUMED/QueryLevelNorm/Fold1/train.txt", 45, [6_052, 1_765, 1_402]),
    ],
)
def test_real_files_are_read_as_scikit_learn_reads_them(
    raw_member, archive, member, n_features, counts
):
    text = raw_member(archive, member)
    x, y, q = load_svmlight_file(
        io.BytesIO(text), n_features=n_features, dtype=np.float32, query_id=True
    )
    blocks = list(parse(io.BytesIO(text), TextFormat(n_features), member))
    np.testing.assert_array_equal(np.concatenate([b.features for b in blocks]), x.toarray())
    np.testing.assert_array_equal(np.concatenate([b.query_ids for b in blocks]), q)
    labels = np.concatenate([b.labels for b in blocks])
    np.testing.assert_array_equal(labels, y)
    assert np.bincount(labels.astype(int)).tolist() == counts
