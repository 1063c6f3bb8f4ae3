import os

import pandas as pd
import pytest
import torch

from directrank.system import io
from directrank.system.seeds import derive_seed, numpy_stream, torch_stream


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "result.txt"
    io.write_text(path, "old")
    with pytest.raises(RuntimeError), io.atomic_path(path) as temporary:
        temporary.write_text("half")
        raise RuntimeError
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["result.txt"]


def test_a_failed_folder_leaves_the_old_folder_and_nothing_else(tmp_path):
    with io.atomic_folder(tmp_path / "set") as folder:
        (folder / "a").write_text("1")
    with pytest.raises(RuntimeError), io.atomic_folder(tmp_path / "set") as folder:
        (folder / "b").write_text("2")
        raise RuntimeError
    assert os.listdir(tmp_path) == ["set"]
    assert os.listdir(tmp_path / "set") == ["a"]


def test_written_files_have_the_permissions_of_any_other_file(tmp_path):
    io.write_text(tmp_path / "ours", "x")
    (tmp_path / "plain").write_text("x")
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_equal_content_gives_equal_bytes_whatever_the_order_of_keys(tmp_path):
    io.write_json(tmp_path / "a", {"x": 1, "y": [1, 2]})
    io.write_json(tmp_path / "b", {"y": [1, 2], "x": 1})
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert io.digest_of({"x": 1, "y": 2}) == io.digest_of({"y": 2, "x": 1})
    assert io.digest_of({"x": 1}) != io.digest_of({"x": 1.5})


def test_csv_floats_have_six_significant_digits_and_unix_line_ends(tmp_path):
    io.write_csv(tmp_path / "t.csv", pd.DataFrame({"a": [1 / 3, 1e-9], "b": [1, 2]}))
    assert (tmp_path / "t.csv").read_bytes() == b"a,b\n0.333333,1\n1e-09,2\n"


def test_streams_differ_by_every_name_and_repeat():
    names = [("run", 0, "init"), ("run", 1, "init"), ("run", 0, "shuffle"), ("run0", "init")]
    assert len({derive_seed(*name) for name in names}) == len(names)
    assert numpy_stream("a", 1).integers(1 << 30) == numpy_stream("a", 1).integers(1 << 30)
    first, second = (torch.rand(3, generator=torch_stream("a")) for _ in range(2))
    assert torch.equal(first, second)


def test_what_a_killed_writer_left_is_removed_but_not_what_another_is_writing(tmp_path):
    path = tmp_path / "result.txt"
    (tmp_path / ".result.txt.x1.part").write_text("half")
    (tmp_path / ".other.txt.x1.part").write_text("of another file")
    with io.atomic_path(path) as first, io.atomic_path(path) as second:
        assert first.exists()
        second.write_text("second")
        first.write_text("first")
    assert path.read_text() == "first"
    assert sorted(os.listdir(tmp_path)) == [".other.txt.x1.part", "result.txt"]
