"""Prepared data that are damaged are never trained on, and are prepared anew."""

import pytest

from directrank.cli import main
from directrank.data import standins
from directrank.data.normalised import open_splits
from directrank.data.prepared import verify, write_prepared
from directrank.system.errors import DataError

SETTINGS = {"queries": {"train": 20, "vali": 10, "test": 10}, "mean_length": 10}
META = {"name": "web30k_standin", "title": "t", "origin": "standin", "label_levels": 5}
SCALED = {"name": "standardise"}


@pytest.fixture
def data(tmp_path):
    """A prepared stand-in of a few queries."""
    write_prepared(tmp_path / "data", standins.generate("web30k_standin", SETTINGS), META)
    return tmp_path / "data"


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("name", ["features", "labels", "offsets", "query_ids", "groups"])
def test_one_bit_of_an_array_is_noticed_and_costs_the_record(name, data):
    verify(data)
    flip(data / f"store/{name}.npy")
    with pytest.raises(DataError, match=f"store/{name}.npy: is damaged") as error:
        open_splits(data, None, {}, {"name": "none"})
    assert "start again" in str(error.value)
    assert not (data / "prepared.json").exists()
    write_prepared(data, standins.generate("web30k_standin", SETTINGS), META)
    verify(data)


@pytest.mark.parametrize("name", ["prepared.json", "train/split.json"])
def test_a_record_or_a_split_cut_short_is_noticed(name, data):
    path = data / name
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(DataError, match=f"{name}: is damaged"):
        open_splits(data, None, {}, {"name": "none"})
    assert not (data / "prepared.json").exists()


def test_a_split_that_names_other_queries_is_noticed(data):
    path = data / "train/split.json"
    path.write_text(path.read_text().replace("20", "19"))
    with pytest.raises(DataError, match="is damaged"):
        open_splits(data, None, {}, {"name": "none"})


def test_the_splits_of_other_folds_need_not_be_there(data):
    (data / "vali/split.json").unlink()
    verify(data)
    flip(data / "store/labels.npy")
    with pytest.raises(DataError, match=r"labels\.npy: is damaged"):
        verify(data)


def test_a_damaged_copy_is_made_again_from_data_that_were_compared(data):
    expected = open_splits(data, None, {}, SCALED)["train"].features.copy()
    (copy,) = (data / "normalised").glob("*/store/features.npy")
    flip(copy)
    assert (open_splits(data, None, {}, SCALED)["train"].features == expected).all()
    flip(copy)
    flip(data / "store/features.npy")
    with pytest.raises(DataError, match=r"data/store/features\.npy: is damaged"):
        open_splits(data, None, {}, SCALED)


def test_a_folder_that_is_no_data_set_loses_nothing(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(DataError, match="not a prepared data set"):
        verify(tmp_path)
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_memory_that_runs_out_anywhere_is_one_error(monkeypatch, tmp_path, capsys):
    def full(*_):
        raise MemoryError("Unable to allocate 9 EiB")

    monkeypatch.setattr("directrank.cli.data._prepare", full)
    arguments = ["prepare", "web30k", "--out", str(tmp_path / "out")]
    assert main(arguments) == 2
    printed = capsys.readouterr().err
    assert "error: out of memory (Unable to allocate 9 EiB)" in printed
    assert "remedy: give this job more memory" in printed
