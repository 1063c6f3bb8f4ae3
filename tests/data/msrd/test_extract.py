"""MSRD from its archive to a prepared data set."""

from __future__ import annotations

import os
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import yaml

from directrank.data import catalog
from directrank.data.prepare import prepare, verify
from directrank.data.prepared import open_dataset
from directrank.system.errors import ConfigError, DataError
from msrd_archive import JUDGEMENTS, lines, write, write_world

ROOT = Path(__file__).resolve().parents[3]
RAW = Path(os.environ.get("DIRECTRANK_RAW") or ROOT / "data/raw")


@pytest.fixture
def world(tmp_path):
    """A raw folder with a small archive, and a catalogue without digests and counts."""
    write_world(tmp_path)
    return tmp_path


def made(world, **options):
    return prepare(
        "msrd", world / "raw", world / "out", catalogue=world / "datasets.yaml", **options
    )


def test_features_groups_and_folds_are_stored(world):
    record = made(world)
    assert record["folds"] == [1, 2, 3]
    assert len(record["feature_names"]) == record["n_features"] == 54
    tests = [open_dataset(world / f"out/Fold{fold}/test") for fold in (1, 2, 3)]
    ids = np.concatenate([lists.query_ids for lists in tests])
    assert sorted(ids.tolist()) == [2, 3, 4, 7, 9]
    groups = dict(zip(ids, np.concatenate([lists.groups for lists in tests]), strict=True))
    assert groups[3] == groups[7]  # both ask for The Godfather
    assert len({groups[2], groups[3], groups[4], groups[9]}) == 4
    assert sum(lists.n_documents for lists in tests) == len(JUDGEMENTS)


def test_what_was_left_out_is_on_record(world):
    more = [*JUDGEMENTS, ("qid:7", "godfather 2", "99", 0)]
    write(world / "raw/MSRD.zip", judgements=lines(more))
    assert made(world)["omitted"] == {"judgements of a movie that is not in the corpus": 1}


def test_the_same_archive_gives_the_same_bytes(world):
    first = made(world)["arrays"]
    assert made(world)["arrays"] == first


def test_another_version_of_a_file_is_refused_before_it_is_read(world):
    content = yaml.safe_load((world / "datasets.yaml").read_text())
    content["datasets"]["msrd"]["sha256"] = {"movies-corpus.jsonl.gz": "0" * 64}
    (world / "datasets.yaml").write_text(yaml.safe_dump(content))
    catalog._load.cache_clear()
    with pytest.raises(DataError, match="differs from the published file"):
        made(world)
    with pytest.raises(DataError, match="differs from the published file"):
        verify("msrd", world / "raw", catalogue=world / "datasets.yaml")
    assert not (world / "out").exists()


def test_a_single_fold_is_refused(world):
    with pytest.raises(ConfigError, match="leave --fold out"):
        made(world, fold=1)


@pytest.mark.long
@pytest.mark.skipif(not (RAW / "MSRD.zip").is_file(), reason=f"MSRD.zip is not in {RAW}")
def test_the_real_collection_has_the_counts_of_the_catalogue_and_no_leak(tmp_path):
    from directrank.data.archives import open_archive
    from directrank.data.msrd.source import answers, read

    catalog._load.cache_clear()
    prepare("msrd", RAW, tmp_path / "msrd", catalogue=ROOT / "data/datasets.yaml")
    collection = read(open_archive(RAW / "MSRD.zip"))
    answering = dict(zip(collection.query_ids, answers(collection), strict=True))
    parts = [open_dataset(tmp_path / f"msrd/Fold{fold}/test").query_ids for fold in range(1, 6)]
    movies = [set(np.concatenate([answering[query] for query in part])) for part in parts]
    for a, b in combinations(movies, 2):
        assert not a & b
