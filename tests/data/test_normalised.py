"""Stored copies of filtered and normalised splits."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from directrank.cli import main
from directrank.data import filters, normalise, normalised, prepared
from directrank.data.normalised import open_splits
from directrank.data.prepared import SPLITS, open_dataset, split_folder, write_prepared
from directrank.lists.packed import RankedLists
from directrank.study.run import load_splits
from directrank.system.errors import ConfigError, DataError

META = {"name": "small", "title": "Small", "origin": "generated", "label_levels": 3}
NORMALISATIONS = [
    {"name": "none", "clip": 20.0},
    {"name": "query_zscore"},
    {"name": "query_minmax", "clip": 30.0},
    {"name": "standardise"},
    {"name": "log_standardise", "negate": [1], "without_log": [2]},
    {"name": "signed_log_standardise"},
]
ZSCORE = {"name": "query_zscore"}
NONE = {"name": "none"}


def lists(n_queries: int, seed: int, n_features: int = 5) -> RankedLists:
    rng = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(rng.integers(1, 15, n_queries))])
    features = rng.lognormal(1, 2, (int(offsets[-1]), n_features)).astype(np.float32)
    features[:, 3] -= 40
    labels = rng.integers(0, 3, len(features)) * (rng.random(len(features)) < 0.2)
    return RankedLists(
        features, labels.astype(np.float32), offsets, np.arange(n_queries) + 1000 * seed
    )


@pytest.fixture
def flat(tmp_path) -> Path:
    splits = {"train": lists(40, 1), "vali": lists(9, 2), "test": lists(12, 3)}
    write_prepared(tmp_path / "flat", splits, META)
    return tmp_path / "flat"


@pytest.fixture
def ring(tmp_path) -> Path:
    parts = {f"S{k}": lists(6 + k, k) for k in range(1, 6)}
    meta = {**META, "folds": [1, 2, 3, 4, 5]}
    write_prepared(tmp_path / "ring", parts, meta, folds=5)
    return tmp_path / "ring"


def in_memory(data: Path, fold: int | None, limits: dict, normalisation: dict):
    """The splits computed without a copy."""
    splits = {}
    for split in SPLITS:
        opened = open_dataset(split_folder(data, fold, split))
        splits[split] = opened.select(np.flatnonzero(filters.is_kept(opened, **limits)))
    return normalise.apply(normalisation, splits)


def assert_same(left: dict[str, RankedLists], right: dict[str, RankedLists]) -> None:
    assert list(left) == list(right) == list(SPLITS)
    for split in SPLITS:
        for name in ("features", "labels", "offsets", "query_ids"):
            one, other = (np.asarray(getattr(part[split], name)) for part in (left, right))
            assert one.dtype == other.dtype
            assert one.tobytes() == other.tobytes(), (split, name)


def folders(data: Path) -> list[str]:
    return sorted(path.name for path in (data / "normalised").glob("[!.]*"))


@pytest.mark.parametrize("limits", [{}, {"min_documents": 4, "min_relevant": 1}])
@pytest.mark.parametrize("settings", NORMALISATIONS, ids=lambda settings: settings["name"])
def test_a_copy_holds_bit_for_bit_what_is_computed_in_memory(
    flat, ring, monkeypatch, settings, limits
):
    monkeypatch.setattr(normalise, "ROWS", 32)
    for data, folds in ((flat, [None]), (ring, [1, 3, 5])):
        for fold in folds:
            expected = in_memory(data, fold, limits, settings)
            assert_same(open_splits(data, fold, limits, settings), expected)
            assert_same(open_splits(data, fold, limits, settings), expected)


def test_what_is_neither_filtered_nor_scaled_is_not_copied(flat):
    opened = open_splits(flat, None, {"min_documents": 1}, NONE)
    assert_same(opened, {split: open_dataset(flat / split) for split in SPLITS})
    assert not (flat / "normalised").exists()


def test_queries_left_out_alone_are_a_copy_too(flat):
    limits = {"min_documents": 5}
    opened = open_splits(flat, None, limits, NONE)
    assert_same(opened, in_memory(flat, None, limits, NONE))
    assert min(part.lengths.min() for part in opened.values()) == 5


def test_a_copy_is_made_once_and_memory_mapped(flat, monkeypatch):
    open_splits(flat, None, {}, ZSCORE)
    monkeypatch.setattr(normalised, "_write", None)
    for part in open_splits(flat, None, {"min_relevant": 0}, ZSCORE).values():
        assert isinstance(part.features, np.memmap)
        assert not part.features.flags.writeable


def test_folds_share_a_copy_where_scaling_is_within_queries_and_only_there(ring):
    for fold in range(1, 6):
        open_splits(ring, fold, {}, ZSCORE)
    assert len(folders(ring)) == 1
    for fold in (1, 2):
        open_splits(ring, fold, {}, {"name": "standardise"})
    assert len(folders(ring)) == 3


def test_a_copy_is_a_prepared_data_set_and_says_what_it_was_made_from(ring):
    open_splits(ring, 2, {"min_relevant": 1}, ZSCORE)
    (copy,) = normalised.copies(ring)
    record = prepared.read_record(copy.folder)
    original = prepared.read_record(ring)
    assert copy.made_from["data"] == original["digest"]
    assert copy.made_from["filter"] == {"min_documents": 1, "min_relevant": 1}
    assert copy.made_from["normalisation"] == ZSCORE
    assert copy.bytes > record["total"]["documents"] * 4 * 5
    full = original["total"]
    assert record["total"]["queries"] == full["queries"] - full["empty_queries"]
    assert record["splits"].keys() == original["splits"].keys()


def test_other_settings_code_or_arithmetic_make_another_copy(flat, monkeypatch):
    open_splits(flat, None, {}, ZSCORE)
    open_splits(flat, None, {"min_documents": 2}, ZSCORE)
    open_splits(flat, None, {}, {**ZSCORE, "clip": 3.0})
    assert len(folders(flat)) == 3
    monkeypatch.setenv("NPY_DISABLE_CPU_FEATURES", "AVX512F")
    open_splits(flat, None, {}, ZSCORE)
    assert len(folders(flat)) == 4
    arithmetic = {**normalised._arithmetic(), "code": "0"}
    monkeypatch.setattr(normalised, "_arithmetic", lambda: arithmetic)
    open_splits(flat, None, {}, ZSCORE)
    assert len(folders(flat)) == 5


@pytest.mark.parametrize("damage", ["shorter", "no record", "another record", "no split"])
def test_a_damaged_copy_is_made_again(flat, damage):
    expected = in_memory(flat, None, {}, ZSCORE)
    open_splits(flat, None, {}, ZSCORE)
    (copy,) = normalised.copies(flat)
    if damage == "shorter":
        os.truncate(copy.folder / "store/features.npy", 300)
    elif damage == "no record":
        (copy.folder / "prepared.json").unlink()
    elif damage == "no split":
        shutil.rmtree(copy.folder / "vali")
    else:
        record = json.loads((copy.folder / "prepared.json").read_text())
        record["made_from"]["data"] = "another"
        (copy.folder / "prepared.json").write_text(json.dumps(record))
    assert_same(open_splits(flat, None, {}, ZSCORE), expected)


def test_a_data_set_with_copies_can_be_prepared_again(flat):
    open_splits(flat, None, {}, ZSCORE)
    (flat / "prepared.json").unlink()
    splits = {"train": lists(4, 7), "vali": lists(9, 2), "test": lists(12, 3)}
    write_prepared(flat, splits, META)
    assert normalised.copies(flat) == []
    assert open_splits(flat, None, {}, ZSCORE)["train"].n_queries == 4


def test_what_cannot_be_meant_is_an_error_and_leaves_nothing(flat, ring):
    with pytest.raises(ConfigError, match="has no setting 'min_docs'"):
        open_splits(flat, None, {"min_docs": 1}, NONE)
    with pytest.raises(ConfigError, match="unknown normalisation 'zscore'"):
        open_splits(flat, None, {}, {"name": "zscore"})
    with pytest.raises(ConfigError, match="no column 110 of 5"):
        open_splits(flat, None, {}, {"name": "log_standardise"})
    with pytest.raises(DataError, match="no split 'Fold6/train'"):
        open_splits(ring, 6, {}, ZSCORE)
    for data, fold, name in ((flat, None, "train"), (ring, 1, "Fold1/train")):
        for settings in (ZSCORE, {"name": "standardise"}):
            with pytest.raises(DataError, match=f"split '{name}': no query has 99 documents"):
                open_splits(data, fold, {"min_documents": 99}, settings)
        assert folders(data) == []
        assert not list((data / "normalised").glob(".*.part"))


def test_the_command_line_shows_and_removes_copies(ring, capsys):
    open_splits(ring, 2, {"min_documents": 2}, {"name": "standardise"})
    (ring.parent / "note.json").write_text("no folder, as a shell's * gives it")
    assert main(["data", "copies", str(ring), str(ring.parent / "note.json")]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith(f"{ring}/normalised/")
    assert line.endswith("MB, fold 2; name standardise; min_documents 2 min_relevant 0")
    assert main(["data", "copies", str(ring), "--remove"]) == 0
    assert not (ring / "normalised").exists()
    assert open_dataset(ring / "Fold2/train").n_queries > 0


def test_a_split_of_another_fold_may_be_left_empty(tmp_path):
    parts = {f"S{k}": lists(6, k) for k in range(1, 6)}
    parts["S3"] = RankedLists(
        parts["S3"].features, parts["S3"].labels * 0, parts["S3"].offsets, parts["S3"].query_ids
    )
    write_prepared(tmp_path / "ring", parts, META, folds=5)
    limits = {"min_relevant": 1}
    # Fold 5 trains on S5, S1, S2, validates on S3; fold 1 trains on S1 to S3 and never on it alone.
    assert_same(
        open_splits(tmp_path / "ring", 1, limits, ZSCORE),
        in_memory(tmp_path / "ring", 1, limits, ZSCORE),
    )
    with pytest.raises(DataError, match="split 'Fold5/vali': no query has"):
        open_splits(tmp_path / "ring", 5, limits, ZSCORE)


def _open(data: Path, start, results) -> None:
    written = []
    original = normalised._write
    normalised._write = lambda *arguments: (written.append(1), original(*arguments))
    start.wait()
    part = open_splits(data, None, {}, {"name": "standardise"})["test"]
    results.put((len(written), part.features.tobytes()))


def test_jobs_that_want_the_same_copy_at_once_make_it_once(flat):
    context = multiprocessing.get_context("fork")
    start, results = context.Barrier(4), context.Queue()
    jobs = [context.Process(target=_open, args=(flat, start, results)) for _ in range(4)]
    for job in jobs:
        job.start()
    results_of_jobs = [results.get(timeout=60) for _ in jobs]
    for job in jobs:
        job.join()
    assert sum(written for written, _ in results_of_jobs) == 1
    assert len({content for _, content in results_of_jobs}) == 1


SLOWLY = """
import sys, time
from directrank.data import normalise, normalised
scaled = normalise.scaled
def slow(*arguments):
    print("making", flush=True)
    for block in scaled(*arguments):
        time.sleep(0.02)
        yield block
normalise.ROWS = 16
normalise.scaled = slow
normalised.open_splits(sys.argv[1], None, {}, {"name": "query_zscore"})
"""


def test_after_a_kill_the_next_run_makes_the_copy_and_waits_for_nobody(flat):
    expected = in_memory(flat, None, {}, ZSCORE)
    draw = random.Random(5)
    for _ in range(2):
        job = subprocess.Popen([sys.executable, "-c", SLOWLY, flat], stdout=subprocess.PIPE)
        assert job.stdout.readline() == b"making\n"
        time.sleep(draw.uniform(0, 0.3))
        job.send_signal(signal.SIGKILL)
        job.wait()
        job.stdout.close()
    assert folders(flat) == []
    assert_same(open_splits(flat, None, {}, ZSCORE), expected)
    assert not list((flat / "normalised").glob(".*.part"))


def test_memory_is_that_of_a_block_and_not_of_the_data(tmp_path, monkeypatch):
    monkeypatch.setattr(normalise, "ROWS", 256)
    train = lists(12000, 1, n_features=40)
    few = lists(5, 2, n_features=40)
    write_prepared(tmp_path / "data", {"train": train, "vali": few, "test": few}, META)
    # Compiled loops and imports are there already: the first copy pays for them.
    open_splits(tmp_path / "data", None, {}, ZSCORE)
    tracemalloc.start()
    open_splits(tmp_path / "data", None, {"min_documents": 2}, {"name": "standardise"})
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert train.features.nbytes > 12e6
    assert peak < train.features.nbytes / 4


@pytest.mark.parametrize("settings", [NONE, ZSCORE, {"name": "standardise"}], ids=str)
def test_training_and_validation_split_can_be_opened_as_one(flat, ring, settings):
    for data, fold in ((flat, None), (ring, 2)):
        separate = open_splits(data, fold, {}, settings)
        whole = open_splits(data, fold, {}, settings, "train_and_vali")
        for name in ("features", "labels", "query_ids"):
            parts = [np.asarray(getattr(separate[split], name)) for split in ("train", "vali")]
            assert np.array_equal(getattr(whole["train"], name), np.concatenate(parts))
        lengths = [separate[split].lengths for split in ("train", "vali")]
        assert np.array_equal(whole["train"].lengths, np.concatenate(lengths))
        assert_same({**whole, "train": separate["train"]}, separate)


def test_parts_that_are_not_stored_side_by_side_are_not_made_one(flat):
    with pytest.raises(DataError, match="is not stored directly before"):
        open_dataset(flat / "train", through=flat / "test")


def test_a_run_says_what_it_was_trained_on(flat):
    data = {"name": prepared.read_record(flat)["name"], "settings": {}}
    spec = {"fold": None, "filter": {}, "normalisation": ZSCORE, "data": data}
    alone, _ = load_splits(spec, flat)
    both, origin = load_splits({**spec, "train_on": "train_and_vali"}, flat)
    assert both.train.n_queries == alone.train.n_queries + alone.vali.n_queries
    assert origin["splits"]["train"]["queries"] == both.train.n_queries
