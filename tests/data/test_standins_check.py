"""The comparison of a stand-in with a sample of real data."""

import importlib.util
import zipfile
from pathlib import Path

import numpy as np
import pytest

from directrank.data import standins
from directrank.lists.packed import RankedLists
from directrank.system.errors import DataError

_spec = importlib.util.spec_from_file_location(
    "standin_check", Path(__file__).resolve().parents[2] / "benchmarks/standin_check.py"
)
standin_check = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(standin_check)


def _small(seed=0):
    return standins.generate(
        "web30k_standin", {"queries": {"train": 12}, "mean_length": 20, "seed": seed}
    )["train"]


def _write_sample(path, lists):
    lines = []
    query = np.repeat(lists.query_ids, lists.lengths)
    for row, label, qid in zip(lists.features, lists.labels, query, strict=True):
        values = " ".join(f"{j}:{value:.9g}" for j, value in enumerate(row, 1))
        lines.append(f"{int(label)} qid:{qid} {values}")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("MSLR-sample/all.txt", "\n".join(lines) + "\n")


@pytest.fixture(scope="module")
def raw(tmp_path_factory):
    folder = tmp_path_factory.mktemp("raw")
    _write_sample(folder / standin_check.SAMPLE, _small(seed=9))
    return folder


def test_sample_is_read_back_exactly(raw):
    lists, written = standin_check.load_sample(raw / standin_check.SAMPLE), _small(seed=9)
    assert (lists.features == written.features).all()
    assert (lists.labels == written.labels).all()
    assert (lists.offsets == written.offsets).all()
    assert (lists.query_ids == written.query_ids).all()


@pytest.mark.slow
def test_data_equal_themselves():
    lists = _small()
    table = standin_check.compare(lists, lists)
    assert len(table) == 136
    assert (table["ks"] == 0).all()
    for name in standin_check.describe(lists).columns:
        assert (table[f"{name}_sample"] == table[f"{name}_standin"]).all()


def test_description_of_a_known_column():
    features = np.zeros((6, 3), dtype=np.float32)
    features[:, 0] = [1, 1, 1, 5, 5, 5]  # constant within queries
    features[:, 1] = [0, 1, 2, 0, 1, 2]  # orders the labels perfectly
    features[:, 2] = [0.5, 0, 0, 0, 0, 0]
    lists = RankedLists(
        features,
        np.array([0, 1, 2, 0, 1, 2], dtype=np.float32),
        np.array([0, 3, 6]),
        np.array([1, 2]),
    )
    table = standin_check.describe(lists)
    assert table["query_share"][0] == pytest.approx(1)
    assert table["correlation"][0] == 0
    assert table["query_share"][1] == pytest.approx(0)
    assert table["correlation"][1] == pytest.approx(1)
    assert table["ndcg5"][1] == pytest.approx(1)
    assert list(table["integers"]) == [True, True, False]
    assert table["zeros"][2] == pytest.approx(5 / 6)
    # Ties count with their expectation: every place has the mean gain 4/3.
    discounts = 1 / np.log2([2, 3, 4])
    assert table["ndcg5"][0] == pytest.approx(
        4 / 3 * discounts.sum() / (3 * discounts[0] + discounts[1])
    )


def test_spectrum_sums_to_one():
    values = standin_check.spectrum(standin_check.rank_correlations(_small()))
    assert values.sum() == pytest.approx(1)
    assert (np.diff(values) <= 1e-12).all()


def test_block_correlations_find_a_block():
    correlations = np.eye(136)
    for i in range(0, 125, 5):
        for j in range(0, 125, 5):
            correlations[i, j] = 1.0
    table = standin_check.block_correlations(correlations)
    assert table.loc["body", "body"] == pytest.approx(1)
    assert table.drop(index="body").to_numpy().sum() == 0


@pytest.mark.slow
def test_files_are_complete_and_reproducible(raw, tmp_path):
    for name in ("first", "second"):
        assert standin_check.write_check(raw, tmp_path / name)
    names = ["README.md", "comparison.csv", "comparison.png", "comparison_summary.csv"]
    assert sorted(path.name for path in (tmp_path / "first").iterdir()) == names
    for name in names:
        first = (tmp_path / "first" / name).read_bytes()
        assert len(first) > 500
        assert first == (tmp_path / "second" / name).read_bytes()


def test_skips_with_a_message_where_there_is_no_sample(tmp_path, capsys):
    assert standin_check.main(["--raw", str(tmp_path), "--out", str(tmp_path / "out")]) == 0
    assert "skipped: there is no MSLR-sample.zip" in capsys.readouterr().out
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("content", [b"not a zip", None])
def test_a_broken_sample_is_one_clear_error(tmp_path, content):
    path = tmp_path / standin_check.SAMPLE
    if content is None:
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("MSLR-sample/other.txt", "x")
    else:
        path.write_bytes(content)
    with pytest.raises(DataError, match="not the sample of MSLR"):
        standin_check.write_check(tmp_path, tmp_path / "out")
    assert not (tmp_path / "out").exists()
