"""The sample of MSRD's features that is part of the repository."""

from __future__ import annotations

import io
import lzma
import re
import tarfile
from pathlib import Path

import numpy as np
import pytest

from directrank.data import catalog
from directrank.data.msrd import sample
from directrank.data.prepare import prepare
from directrank.data.prepared import SPLITS, open_dataset, write_prepared
from directrank.lists.packed import RankedLists

ROOT = Path(__file__).resolve().parents[3]
ARCHIVE = ROOT / "data/embedded/MSRD-sample.tar.xz"
RAW = catalog.raw_folder()
NO_MSRD = catalog.find_archive(catalog.get("msrd"), RAW) is None


def packed() -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(lzma.decompress(ARCHIVE.read_bytes()))) as archive:
        return {
            Path(member.name).name: archive.extractfile(member).read()  # type: ignore[union-attr]
            for member in archive.getmembers()
        }


def test_it_is_small_names_its_licence_and_holds_numbers_alone() -> None:
    assert ARCHIVE.stat().st_size < 8_000_000
    files = packed()
    assert b"CC BY-SA 4.0" in files.pop("LICENCE.txt")
    assert set(files) == {"train.txt", "vali.txt", "test.txt", "groups.tsv"}
    for content in files.values():
        assert set(content.decode()) <= set("0123456789.:-+e \tqid\n")


@pytest.mark.slow
def test_it_needs_no_raw_folder_and_has_groups(tmp_path: Path) -> None:
    prepare("msrd_sample", tmp_path / "nowhere", tmp_path / "out")
    of_split = {split: open_dataset(tmp_path / "out" / split) for split in SPLITS}
    assert {split: lists.n_queries for split, lists in of_split.items()} == sample.QUERIES
    groups = [set(lists.groups.tolist()) for lists in of_split.values()]
    for lists, group in zip(of_split.values(), groups, strict=True):
        assert 20 < len(group) < lists.n_queries / 4
    assert not groups[0] & groups[1] | groups[0] & groups[2] | groups[1] & groups[2]


def test_letor_text_leaves_zeros_out_and_keeps_four_digits() -> None:
    lists = RankedLists(
        features=np.array([[0.123456, 0.0], [12345.6, -1e-9]], np.float32),
        labels=np.array([0, 1], np.float32),
        offsets=np.array([0, 1, 2]),
        query_ids=np.array([7, 9]),
    )
    assert sample.as_letor(lists) == "0 qid:7 1:0.1235\n1 qid:9 1:1.235e+04 2:-1e-09\n"


def test_the_archives_bytes_do_not_depend_on_the_clock(tmp_path: Path) -> None:
    for name in ("a", "b"):
        sample.write({"x.txt": b"1\n", "y.txt": b"2\n"}, tmp_path / f"{name}.tar.xz")
    first, second = (tmp_path / f"{name}.tar.xz" for name in ("a", "b"))
    assert first.read_bytes() == second.read_bytes()


def test_a_sample_is_of_the_first_fold_with_the_groups_of_its_queries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = np.random.default_rng(0)

    def part(number: int) -> RankedLists:
        lengths = stream.integers(1, 6, 9)
        rows, ids = lengths.sum(), 100 * number + np.arange(9)
        return RankedLists(
            features=stream.normal(size=(rows, 4)).astype(np.float32),
            labels=stream.integers(0, 2, rows).astype(np.float32),
            offsets=np.concatenate([[0], lengths.cumsum()]),
            query_ids=ids,
            groups=ids // 3,
        )

    parts = {f"S{number}": part(number) for number in range(1, 6)}
    record = {"name": "msrd", "title": "t", "origin": "real", "label_levels": 2}
    write_prepared(tmp_path / "msrd", parts, record, folds=5)
    monkeypatch.setattr(sample, "QUERIES", {"train": 8, "vali": 3, "test": 5})
    files = sample.files(tmp_path / "msrd")
    assert files == sample.files(tmp_path / "msrd")
    groups = dict(map(str.split, files.pop("groups.tsv").decode().splitlines()))
    assert groups == {query: str(int(query) // 3) for query in groups}
    assert files.pop("LICENCE.txt") == sample.LICENCE.encode()
    drawn = 0
    for name, content in files.items():
        split = name.removesuffix(".txt")
        lists = open_dataset(tmp_path / "msrd/Fold1" / split)
        ids = {int(query) for query in re.findall(r"qid:(\d+)", content.decode())}
        assert len(ids) == sample.QUERIES[split]
        chosen = lists.select(np.flatnonzero(np.isin(lists.query_ids, list(ids))))
        assert content.decode() == sample.as_letor(chosen)
        assert {str(query) for query in ids} <= set(groups)
        drawn += len(ids)
    assert drawn == len(groups) == 16


@pytest.mark.long
@pytest.mark.skipif(NO_MSRD, reason=f"MSRD IS NOT IN {RAW.resolve()}: its sample is not made again")
def test_the_sample_is_what_the_collection_gives(tmp_path: Path) -> None:
    prepare("msrd", RAW, tmp_path / "msrd")
    assert sample.files(tmp_path / "msrd") == packed()
