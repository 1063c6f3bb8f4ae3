"""From an archive to a prepared data set."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tarfile
import time
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest
import yaml

from directrank.data import catalog, prepared, standins
from directrank.data.archives import open_archive
from directrank.data.prepare import _locate, prepare, verify
from directrank.data.prepared import SPLITS, open_dataset, read_record, ring_split
from directrank.data.svmlight import read_svmlight
from directrank.system.errors import ConfigError, DataError

ROOT = Path(__file__).resolve().parents[2]
RAW = catalog.raw_folder()
NO_OHSUMED = catalog.find_archive(catalog.get("ohsumed"), RAW) is None
needs_ohsumed = pytest.mark.skipif(NO_OHSUMED, reason=f"OHSUMED is not in {RAW.resolve()}")


def text_part(number: int, n_features: int = 3, n_queries: int = 4) -> str:
    rng = np.random.default_rng(number)
    lines = []
    for query in range(n_queries):
        for _ in range(rng.integers(2, 6)):
            values = " ".join(f"{i + 1}:{rng.normal():.4f}" for i in range(n_features))
            lines.append(f"{rng.integers(0, 3)} qid:{number * 100 + query} {values} #d\n")
    return "".join(lines)


PARTS = {number: text_part(number) for number in range(1, 6)}


def folded_files(prefix: str = "Some/Folder/") -> dict[str, str]:
    return {
        f"{prefix}Fold{fold}/{split}.txt": "".join(PARTS[p] for p in ring_split(fold, split))
        for fold in range(1, 6)
        for split in SPLITS
    }


class World:
    """A raw folder, a catalogue and an out folder of a test."""

    def __init__(self, folder: Path) -> None:
        self.raw = folder / "raw"
        self.raw.mkdir()
        self.out = folder / "out"
        self.catalogue = folder / "datasets.yaml"

    def declare(self, **entry) -> None:
        entry = {"features": 3, "label_levels": 3, **entry}
        self.catalogue.write_text(yaml.safe_dump({"datasets": {"mine": entry}}))
        catalog._load.cache_clear()

    def zip(self, files: dict[str, str | bytes], name: str = "mine.zip") -> None:
        with zipfile.ZipFile(self.raw / name, "w", zipfile.ZIP_DEFLATED) as archive:
            for path, content in files.items():
                archive.writestr(path, content)

    def prepare(self, fold: int | None = None, **options):
        return prepare(
            "mine", self.raw, self.out, fold, catalogue=self.catalogue, threads=1, **options
        )

    def fails(self, match: str, **options) -> DataError:
        with pytest.raises(DataError, match=match) as caught:
            self.prepare(**options)
        assert not self.out.exists()
        assert [p.name for p in self.out.parent.iterdir() if p.name.startswith(".out")] == []
        return caught.value


@pytest.fixture
def world(tmp_path) -> World:
    return World(tmp_path)


def assert_equals_text(split: Path, text: str, tmp_path: Path, n_features: int = 3) -> None:
    file = tmp_path / "expected.txt"
    file.write_text(text)
    expected = read_svmlight(file, n_features)
    opened = open_dataset(split)
    for name in ("features", "labels", "offsets", "query_ids"):
        np.testing.assert_array_equal(getattr(opened, name), getattr(expected, name))


def test_folds_come_out_as_the_files_say(world, tmp_path):
    world.declare(folds=5)
    world.zip(folded_files())
    record = world.prepare()
    for name, text in folded_files("").items():
        assert_equals_text(world.out / name.removesuffix(".txt"), text, tmp_path)
    assert record["folds"] == [1, 2, 3, 4, 5]
    assert record["total"]["queries"] == 20
    files = record["source"]["files"]
    assert len(files) == 15
    digest = hashlib.sha256(folded_files()["Some/Folder/Fold2/vali.txt"].encode()).hexdigest()
    assert files["Fold2/vali"] == {
        "path": "Some/Folder/Fold2/vali.txt",
        "sha256": digest,
        "bytes": len(folded_files()["Some/Folder/Fold2/vali.txt"]),
    }
    rows = sum(PARTS[number].count("\n") for number in (1, 2, 3, 4, 5, 1, 2))
    assert len(np.load(world.out / "store/features.npy", mmap_mode="r")) == rows


def test_single_folds_join_those_that_are_there(world, tmp_path):
    world.declare(folds=5)
    world.zip(folded_files())
    world.prepare(fold=4)
    assert sorted(os.listdir(world.out)) == ["Fold4", "features.csv", "prepared.json", "store"]
    record = world.prepare(fold=2)
    assert record["folds"] == [2, 4]
    for name, text in folded_files("").items():
        if name[4] in "24":
            assert_equals_text(world.out / name.removesuffix(".txt"), text, tmp_path)
    with pytest.raises(ConfigError, match="no fold 6"):
        world.prepare(fold=6)


def test_all_single_folds_together_are_the_whole(world, tmp_path):
    world.declare(folds=5)
    world.zip(folded_files())
    for fold in (3, 1, 5, 2, 4):
        singly = world.prepare(fold=fold)
    shutil.rmtree(world.out)
    assert world.prepare() == singly


def test_a_data_set_of_ones_own_takes_three_lines(world, tmp_path):
    world.declare()
    folder = world.raw / "mine"
    folder.mkdir()
    for number, split in enumerate(SPLITS, start=1):
        (folder / f"{split}.txt").write_text(PARTS[number])
    record = world.prepare()
    for number, split in enumerate(SPLITS, start=1):
        assert_equals_text(world.out / split, PARTS[number], tmp_path)
    assert record["folds"] is None
    assert record["source"]["archive"] == {"name": "mine", "kind": "folder"}


def test_the_container_makes_no_difference_to_the_content(world):
    world.declare(folds=5)
    world.zip(folded_files())
    first = world.prepare()["digest"]
    with zipfile.ZipFile(world.raw / "mine.zip") as archive:
        archive.extractall(world.raw / "mine")
    (world.raw / "mine.zip").unlink()
    assert world.prepare()["digest"] == first
    with tarfile.open(world.raw / "mine.tar.bz2", "w:bz2") as archive:
        archive.add(world.raw / "mine", "mine")
    shutil.rmtree(world.raw / "mine")
    record = world.prepare()
    assert record["digest"] == first
    assert record["source"]["archive"]["name"] == "mine.tar.bz2"


def test_other_layouts_and_names_of_splits_are_found(world):
    world.declare(
        layouts=[
            {"path": "none/{split}.txt"},
            {
                "path": "set1.{split}.txt",
                "splits": {"train": "trainingset", "vali": "valid", "test": "t"},
            },
        ]
    )
    world.zip({f"x/set1.{n}.txt": PARTS[i] for i, n in enumerate(("trainingset", "valid", "t"), 1)})
    assert world.prepare()["splits"]["vali"]["documents"] == PARTS[2].count("\n")


def test_validation_can_be_the_last_training_queries(world):
    world.declare(
        vali_from_train=0.25,
        layouts=[{"path": "{split}.txt", "splits": {"train": "train", "test": "test"}}],
    )
    world.zip({"train.txt": PARTS[1] + PARTS[2], "test.txt": PARTS[3]})
    world.prepare()
    assert open_dataset(world.out / "train").query_ids.tolist() == [100, 101, 102, 103, 200, 201]
    assert open_dataset(world.out / "vali").query_ids.tolist() == [202, 203]


def test_features_that_are_never_used_are_dropped_if_the_catalogue_says_so(world):
    texts = {
        "train.txt": "1 qid:1 2:5\n0 qid:1 7:1\n",
        "vali.txt": "1 qid:2 4:-1\n",
        "test.txt": "1 qid:3 2:1\n",
    }
    world.zip(texts)
    world.declare(features=9, drop_unused_features=True, expect={"active_features": 3})
    record = world.prepare()
    assert record["feature_numbers"] == [2, 4, 7]
    assert record["n_features"] == 3
    assert open_dataset(world.out / "train").features.tolist() == [[5, 0, 0], [0, 0, 1]]
    with open(world.out / "features.csv") as file:
        assert [row["feature"] for row in csv.DictReader(file)] == ["2", "4", "7"]
    world.declare(features=9, drop_unused_features=True, expect={"active_features": 4})
    shutil.rmtree(world.out)
    world.fails("3 features are in use, expected 4")


@pytest.mark.parametrize(("accepted", "passes"), [([4, 3], True), ([3, 2], True), ([5, 4], False)])
def test_counts_of_features_on_which_sources_differ_are_said_and_do_not_stop(
    world, accepted, passes
):
    world.zip(
        {"train.txt": "1 qid:1 2:5\n", "vali.txt": "1 qid:2 4:-1\n", "test.txt": "1 qid:3 7:1\n"}
    )
    world.declare(features=9, drop_unused_features=True, expect={"active_features": accepted})
    counts = " or ".join(map(str, accepted))
    notes: list[str] = []
    if passes:
        world.prepare(note=notes.append)
        assert f"warning: 3 features are in use; sources say {counts}" in notes
    else:
        world.fails(f"3 features are in use, expected {counts}")


def test_split_queries_are_refused_or_merged(world):
    text = "0 qid:1 1:1\n1 qid:2 1:2\n2 qid:1 1:3\n"
    world.zip({"train.txt": text, "vali.txt": PARTS[1], "test.txt": PARTS[2]})
    world.declare()
    assert world.fails("query 1 continues here").line == 3
    world.declare(text={"split_queries": "merge"})
    world.prepare()
    assert open_dataset(world.out / "train").features[:, 0].tolist() == [1, 3, 2]
    assert open_dataset(world.out / "train").labels.tolist() == [0, 2, 1]
    assert open_dataset(world.out / "vali").query_ids.tolist() == [100, 101, 102, 103]


def test_extreme_values_are_clipped_as_the_catalogue_says(world):
    text = "1 qid:1 1:1.797e308 2:-1.797e308 3:5\n"
    world.zip({"train.txt": text, "vali.txt": PARTS[1], "test.txt": PARTS[2]})
    world.declare()
    error = world.fails("does not fit in single precision")
    assert (error.line, "clip" in error.remedy) == (1, True)
    assert error.file.endswith("mine.zip/train.txt")
    world.declare(text={"clip": 1e6})
    world.prepare()
    assert open_dataset(world.out / "train").features.tolist() == [[1e6, -1e6, 5]]


def test_malformed_lines_stop_or_go_to_quarantine(world, tmp_path):
    lines = PARTS[1].splitlines(keepends=True)
    spoiled = "".join([lines[0], "what is this\n", *lines[1:]])
    world.zip({"train.txt": spoiled, "vali.txt": PARTS[2], "test.txt": PARTS[3]})
    world.declare()
    assert world.fails("what is this").line == 2
    record = world.prepare(quarantine=tmp_path / "bad.txt")
    assert record["quarantined_lines"] == 1
    assert "mine.zip/train.txt:2:" in (tmp_path / "bad.txt").read_text()
    assert_equals_text(world.out / "train", PARTS[1], tmp_path)


@pytest.mark.parametrize("change", ["value", "label", "query", "shorter", "longer", "order"])
def test_folds_that_are_not_made_of_the_parts_are_refused(world, change):
    files = folded_files()
    name = "Some/Folder/Fold3/train.txt"
    lines = files[name].splitlines(keepends=True)
    if change == "value":
        lines[5] = re.sub(r" 2:\S+", " 2:9.125", lines[5])
    elif change == "label":
        lines[5] = str((int(lines[5][0]) + 1) % 3) + lines[5][1:]
    elif change == "query":
        lines = [line.replace("qid:401", "qid:999") for line in lines]
    elif change == "shorter":
        lines.pop()
    elif change == "longer":
        lines.append(lines[-1])
    else:
        lines = (PARTS[4] + PARTS[3] + PARTS[5]).splitlines(keepends=True)
    files[name] = "".join(lines)
    world.zip(files)
    world.declare(folds=5)
    error = world.fails("does not consist of the parts S3, S4, S5")
    if change in ("value", "label"):
        assert error.line == 6


def test_unrelated_folds_are_stored_each_for_itself(world, tmp_path):
    files = folded_files("")
    files["Fold3/train.txt"] = PARTS[4]
    world.zip(files)
    world.declare(folds=5, cyclic=False)
    world.prepare()
    for name, text in files.items():
        assert_equals_text(world.out / name.removesuffix(".txt"), text, tmp_path)


def test_counts_that_differ_are_all_named(world):
    world.zip({"train.txt": PARTS[1], "vali.txt": PARTS[2], "test.txt": PARTS[3]})
    documents = PARTS[1].count("\n")
    world.declare(
        expect={
            "total": {"queries": 13},
            "train": {"queries": 4, "documents": documents + 1},
            "test": {"empty_queries": 3},
            "filtered": {"min_documents": 99, "min_relevant": 1, "queries": 1},
        }
    )
    message = str(world.fails("differs from the catalogue"))
    assert "total: 12 queries, expected 13" in message
    assert f"train: {documents} documents, expected {documents + 1}" in message
    assert "expected 3" in message
    assert "filtered: 0 queries, expected 1" in message
    assert "4 queries" not in message


def test_counts_after_a_filter_are_checked(world):
    texts = [PARTS[1], PARTS[2], PARTS[3]]
    world.zip(dict(zip(("train.txt", "vali.txt", "test.txt"), texts, strict=True)))
    by_query: dict[str, list[str]] = {}
    for line in "".join(texts).splitlines():
        by_query.setdefault(line.split()[1], []).append(line)
    kept = [
        lines
        for lines in by_query.values()
        if len(lines) >= 4 and sum(line[0] != "0" for line in lines) >= 2
    ]
    assert 0 < len(kept) < len(by_query)
    expected = {"queries": len(kept), "documents": sum(map(len, kept))}
    world.declare(expect={"filtered": {"min_documents": 4, "min_relevant": 2, **expected}})
    world.prepare()


def test_a_file_with_another_digest_is_refused(world):
    world.zip({"train.txt": PARTS[1], "vali.txt": PARTS[2], "test.txt": PARTS[3]})
    right = hashlib.sha256(PARTS[2].encode()).hexdigest()
    world.declare(sha256={"vali": right, "test": "0" * 64})
    assert "mine.zip/test.txt" in str(world.fails(f"expected {'0' * 64}"))
    with pytest.raises(DataError, match="expected 000"):
        verify("mine", world.raw, catalogue=world.catalogue)
    world.declare(sha256={"vali": right})
    assert verify("mine", world.raw, catalogue=world.catalogue)["files"]["vali"]["sha256"] == right


def test_an_archive_that_holds_something_else_says_what(world):
    world.declare()
    world.zip({"readme.txt": "x", "train.txt": PARTS[1]})
    message = str(world.fails("does not contain mine"))
    assert "vali.txt" in message
    assert "readme.txt" in message


def test_two_versions_in_one_archive_are_not_chosen_between(world):
    world.declare()
    files = {f"{v}/{s}.txt": PARTS[1] for v in ("null", "min") for s in SPLITS}
    world.zip(files)
    world.fails("several places")


def test_labels_beyond_the_declared_levels_are_refused(world):
    world.declare(label_levels=2)
    world.zip({f"{s}.txt": "3 qid:1 1:1\n" for s in SPLITS})
    world.fails("label 3 is not one of 0 … 1")


def test_an_empty_file_is_refused(world):
    world.declare()
    world.zip({"train.txt": PARTS[1], "vali.txt": "\n", "test.txt": PARTS[3]})
    world.fails("contains no query")


def test_settings_and_folds_where_there_are_none_are_errors(world):
    world.declare()
    world.zip({f"{s}.txt": PARTS[i] for i, s in enumerate(SPLITS, 1)})
    with pytest.raises(ConfigError, match="has no folds"):
        world.prepare(fold=1)
    with pytest.raises(ConfigError, match="takes no settings"):
        world.prepare(settings={"queries": 1})
    with pytest.raises(ConfigError, match="has no folds"):
        prepare("cubic", world.raw, world.out, 1)
    with pytest.raises(ConfigError, match="generated and has no archive"):
        verify("cubic", world.raw)
    assert not world.out.exists()


def test_generated_data_are_written_by_the_same_writer(world):
    settings = {"queries": {"train": 4, "vali": 2, "test": 3}, "n_features": 5}
    record = prepare("cubic", world.raw, world.out, settings=settings)
    assert (record["origin"], record["standin"]) == ("generated", False)
    assert record["source"]["settings"] == settings
    assert open_dataset(world.out / "train").features.shape == (200, 5)


def test_a_full_disk_leaves_nothing(world, monkeypatch):
    world.declare()
    world.zip({f"{s}.txt": PARTS[i] for i, s in enumerate(SPLITS, 1)})

    def full(self, values):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("directrank.data.prepared._NpyWriter.append", full)
    with pytest.raises(OSError, match="No space left"):
        world.prepare()
    assert not world.out.exists()
    assert [path.name for path in world.out.parent.iterdir() if "out" in path.name] == []


def _tree(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


PREPARE_WHEN_TOLD = """
import sys
from directrank.data.prepare import prepare
raw, out, catalogue = sys.argv[1:]
print("ready", flush=True)
sys.stdin.readline()
prepare("mine", raw, out, catalogue=catalogue, threads=1)
"""


def test_folds_of_an_archive_of_test_sets_rotate_as_letors_do(world):
    world.declare(folds=5, test_sets_only=True)
    parts = {number: text_part(number, n_queries=3) for number in PARTS}
    tested_in = {ring_split(fold, "test")[0]: fold for fold in range(1, 6)}
    world.zip({f"Fold{tested_in[part]}/test.txt": text for part, text in parts.items()})
    world.prepare()
    made = _tree(world.out)
    files = {
        f"Fold{fold}/{split}.txt": "".join(parts[part] for part in ring_split(fold, split))
        for fold in range(1, 6)
        for split in SPLITS
    }
    for name, text in files.items():
        fold, split = name.removesuffix(".txt").split("/")
        lists = open_dataset(world.out / fold / split)
        assert lists.n_documents == text.count("\n")
    world.declare(folds=5)
    world.zip(files)
    world.prepare()
    whole = _tree(world.out)
    stores = [{k: v for k, v in tree.items() if k.startswith("store")} for tree in (made, whole)]
    assert stores[0] == stores[1]


def test_one_fold_of_an_archive_of_test_sets_is_refused(world):
    world.declare(folds=5, test_sets_only=True)
    world.zip({f"Fold{fold}/test.txt": text_part(fold, n_queries=3) for fold in range(1, 6)})
    with pytest.raises(ConfigError, match="leave --fold out"):
        world.prepare(2)


def test_folds_are_made_of_one_file(world, tmp_path):
    text = text_part(1, n_queries=23)
    world.declare(folds=5, one_file="all.txt")
    world.zip({"Some/Folder/all.txt": text})
    record = world.prepare()
    assert (record["folds"], record["total"]["queries"]) == ([1, 2, 3, 4, 5], 23)
    assert record["source"]["files"]["all"]["path"] == "Some/Folder/all.txt"
    assert sorted(os.listdir(world.out / "store")) == sorted(
        f"{name}.npy" for name in ("features", "labels", "offsets", "query_ids", "groups")
    )
    assert not (world.out / "one_file").exists()
    tests = [open_dataset(world.out / f"Fold{fold}/test") for fold in range(1, 6)]
    assert sorted(lists.n_queries for lists in tests) == [4, 4, 5, 5, 5]
    for fold in range(1, 6):
        splits = [open_dataset(world.out / f"Fold{fold}/{split}") for split in SPLITS]
        assert len(set(np.concatenate([lists.query_ids for lists in splits]).tolist())) == 23
    file = tmp_path / "all.txt"
    file.write_text(text)
    whole = read_svmlight(file, 3)
    place = {query: number for number, query in enumerate(whole.query_ids.tolist())}
    for lists in tests:
        expected = whole.select(np.array([place[query] for query in lists.query_ids.tolist()]))
        np.testing.assert_array_equal(lists.features, expected.features)
        np.testing.assert_array_equal(lists.labels, expected.labels)


def test_folds_of_one_file_do_not_part_groups(world):
    ids = [100 + query for query in range(24)]
    world.declare(folds=3, one_file="all.txt", groups="groups.tsv")
    groups = {query: query // 5 for query in ids}
    lines = "".join(f"{query}\t{group}\n" for query, group in groups.items())
    world.zip({"all.txt": text_part(1, n_queries=24), "groups.tsv": lines})
    world.prepare()
    tested = {
        fold: {groups[query] for query in open_dataset(world.out / f"Fold{fold}/test").query_ids}
        for fold in (1, 2, 3)
    }
    assert sorted(group for found in tested.values() for group in found) == sorted(
        set(groups.values())
    )


@pytest.mark.parametrize("queries", [0, 4])
def test_one_file_with_too_few_queries_is_refused(world, queries):
    world.declare(one_file="all.txt", folds=5)
    world.zip({"all.txt": text_part(1, n_queries=queries)})
    world.fails(f"has {queries} queries or groups of queries, which are too few for 5 parts")


def test_one_file_without_folds_is_refused(world):
    world.declare(one_file="all.txt")
    with pytest.raises(ConfigError, match="folds"):
        catalog.get("mine", world.catalogue)


def _killed(world: World, kills: int) -> None:
    """Kill a preparation at ``kills`` random moments, then compare with an undisturbed one."""
    world.declare(folds=5)
    parts = {number: text_part(number, n_queries=99) for number in PARTS}
    world.zip(
        {
            f"Fold{fold}/{split}.txt": "".join(parts[part] for part in ring_split(fold, split))
            for fold in range(1, 6)
            for split in SPLITS
        }
    )
    began = time.perf_counter()
    world.prepare()
    usual = time.perf_counter() - began
    expected = _tree(world.out)
    chance = random.Random(7)
    unfinished = 0
    for kill in range(kills):
        if kill % 2:
            shutil.rmtree(world.out, ignore_errors=True)
        process = subprocess.Popen(
            [sys.executable, "-c", PREPARE_WHEN_TOLD, world.raw, world.out, world.catalogue],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout.readline() == "ready\n"
        process.stdin.write("go\n")
        process.stdin.flush()
        time.sleep(usual * chance.uniform(0, 1.5))
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()
        unfinished += any(path.name.startswith(".out") for path in world.out.parent.iterdir())
        # What stands there is whole at every moment, or absent.
        assert not world.out.exists() or _tree(world.out) == expected
    assert unfinished > 0
    world.prepare()
    assert _tree(world.out) == expected
    assert [p.name for p in world.out.parent.iterdir() if p.name.startswith(".out")] == []


@pytest.mark.slow
def test_killed_three_times_the_next_run_gives_the_same_bytes(world):
    _killed(world, 3)


@pytest.mark.long
def test_killed_at_twenty_random_moments_the_next_run_gives_the_same_bytes(world):
    _killed(world, 20)


@pytest.mark.real_data
@needs_ohsumed
def test_ohsumed_is_what_is_published(tmp_path):
    record = prepare("ohsumed", RAW, tmp_path / "ohsumed")
    assert record["total"]["queries"] == 106
    assert record["total"]["documents"] == 16140
    fold1 = [record["splits"][f"Fold1/{split}"] for split in SPLITS]
    assert [part["queries"] for part in fold1] == [63, 21, 22]
    assert [part["documents"] for part in fold1] == [9219, 3538, 3383]
    features = np.load(tmp_path / "ohsumed/store/features.npy")
    assert features.shape[1] == 45
    assert (features.min(), features.max()) == (0, 1)
    assert read_record(tmp_path / "ohsumed")["digest"] == record["digest"]


@pytest.mark.slow
@pytest.mark.real_data
@needs_ohsumed
def test_the_command_line_prepares_a_fold_of_ohsumed(tmp_path):
    command = [sys.executable, "-m", "directrank", "prepare", "ohsumed", "--raw", str(RAW)]
    done = subprocess.run(
        [*command, "--out", str(tmp_path / "o"), "--fold", "1"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "16140 documents" in done.stdout
    assert open_dataset(tmp_path / "o/Fold1/test").n_documents == 3383
    assert json.loads((tmp_path / "o/prepared.json").read_text())["folds"] == [1]


@pytest.mark.parametrize(
    ("name", "number"),
    [
        (entry.name, number)
        for entry in catalog.load().values()
        for number in range(len(entry.layouts))
    ],
)
def test_every_layout_of_the_catalogue_is_found(tmp_path, name, number):
    entry = catalog.get(name)
    layout = entry.layouts[number]
    members = {file: f"Top/{layout.member(*file)}" for file in entry.files}
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        for path in [*members.values(), "Top/readme.txt"]:
            archive.writestr(path, "x")
    found = _locate(entry, open_archive(tmp_path / "a.zip"))
    assert found == {file: [path] for file, path in members.items()}


def test_the_version_of_letor_that_is_wanted_is_chosen(tmp_path):
    entry = catalog.get("td2003")
    with zipfile.ZipFile(tmp_path / "Gov.zip", "w") as archive:
        for version in ("Feature_null", "Feature_min", "QueryLevelNorm"):
            for task in ("2003_td_dataset", "2004_td_dataset"):
                for fold, split in entry.files:
                    archive.writestr(f"Gov/{version}/{task}/Fold{fold}/{split}.txt", "x")
    members = _locate(entry, open_archive(tmp_path / "Gov.zip"))
    assert members[2, "vali"] == ["Gov/QueryLevelNorm/2003_td_dataset/Fold2/vali.txt"]


def test_a_tar_in_a_tar_and_a_table_are_prepared(world, tmp_path):
    rows = [f"{i % 3}\t{i // 4}\t{i}\t0.5\t-{i}e-1\n" for i in range(12)]
    inner, outer = tmp_path / "inner.tar.bz2", world.raw / "mine.tgz"
    with tarfile.open(inner, "w:bz2") as archive:
        for number, split in enumerate(("train", "valid", "test")):
            text = "".join(rows[4 * number : 4 * number + 4]).encode()
            info = tarfile.TarInfo(f"deep/set1.{split}.tsv")
            info.size = len(text)
            archive.addfile(info, io.BytesIO(text))
    with tarfile.open(outer, "w:gz") as archive:
        archive.add(inner, "dataset/inner.tar.bz2")
    names = {"train": "train", "vali": "valid", "test": "test"}
    world.declare(text={"lines": "table"}, layouts=[{"path": "set1.{split}.tsv", "splits": names}])
    world.prepare()
    vali = open_dataset(world.out / "vali")
    assert vali.query_ids.tolist() == [1]
    np.testing.assert_array_equal(
        vali.features, np.array([[i, 0.5, float(f"-{i}e-1")] for i in range(4, 8)], np.float32)
    )


@pytest.mark.parametrize("name", ["web30k_standin", "yahoo1_standin"])
def test_a_standin_written_in_chunks_has_the_bytes_of_one_made_in_memory(name, tmp_path):
    settings = {"queries": {"train": 300, "vali": 3, "test": 0}, "mean_length": 9, "max_length": 30}
    record = prepare(name, tmp_path, tmp_path / "chunks", settings=settings)
    meta = {
        key: record[key]
        for key in ("name", "title", "origin", "standin", "label_levels", "folds", "source")
    }
    prepared.write_prepared(tmp_path / "memory", standins.generate(name, settings), meta)
    files = [path.relative_to(tmp_path / "memory") for path in (tmp_path / "memory").rglob("*.*")]
    assert len(files) == 9
    for file in files:
        assert (tmp_path / "chunks" / file).read_bytes() == (
            tmp_path / "memory" / file
        ).read_bytes()


@pytest.mark.slow
def test_a_standin_is_made_in_memory_bounded_by_a_chunk(tmp_path):
    """The same peak, give or take the measurement, for a set eight times as large."""

    def peak(queries: int) -> int:
        settings = {"queries": {"train": queries}, "mean_length": 20, "max_length": 60}
        prepare("mq2007_standin", tmp_path, tmp_path / "warm", settings=settings)
        tracemalloc.start()
        prepare("mq2007_standin", tmp_path, tmp_path / "out", settings=settings)
        result = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return result

    assert peak(2048) < 1.3 * peak(256)


def test_a_standin_without_queries_is_an_error(tmp_path):
    for split, message in (("test", "no split has a query"), ("train", "no training query")):
        with pytest.raises(ConfigError, match=message):
            prepare("web30k_standin", tmp_path, tmp_path / "out", settings={"queries": {split: 0}})
    assert list(tmp_path.iterdir()) == []


def split_texts() -> dict[str, str]:
    return {f"{split}.txt": PARTS[number] for number, split in enumerate(SPLITS, 1)}


def test_groups_of_queries_are_read_from_a_file_of_the_archive(world):
    queries = sorted(set(re.findall(r"qid:(\d+)", "".join(split_texts().values()))))
    lines = "".join(f"{query}\t{int(query) // 2}\n" for query in queries)
    world.declare(groups="groups.tsv")
    files = split_texts() | {"groups.tsv": lines}
    world.zip({f"mine/{name}": text for name, text in files.items()})
    world.prepare()
    lists = open_dataset(world.out / "vali")
    assert lists.groups.tolist() == [query // 2 for query in lists.query_ids.tolist()]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (None, "contains no files 'groups.tsv'"),
        ("100\t1\n", "names no group for 3 queries, such as 101"),
        ("100\t1\n100\t2\n", "names the group of query 100 twice"),
        ("100\t1\n101 2\n", "does not name a query and a group: '101 2'"),
        ("100\tone\n", "does not name a query and a group"),
    ],
)
def test_a_file_of_groups_that_cannot_be_meant_is_refused(world, lines, message):
    world.declare(groups="groups.tsv")
    world.zip(split_texts() | ({} if lines is None else {"groups.tsv": lines}))
    error = world.fails(message)
    assert "groups.tsv" in str(error)
