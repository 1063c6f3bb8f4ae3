"""The catalogue, the archives that are there, and the command line."""

from __future__ import annotations

import csv
import dataclasses
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from directrank.cli import main
from directrank.data import catalog, standins
from directrank.data.pages import write_pages
from directrank.data.prepare import prepare
from directrank.system.errors import ConfigError, DataError

ROOT = Path(__file__).resolve().parents[2]
PUBLISHED = ROOT / "paper_tables/published"
NAMES = [
    *("web30k", "web10k", "yahoo1", "yahoo2", "istella", "istella_s", "istella_x", "ohsumed"),
    *("td2003", "td2004", "mq2007", "mq2008", "clueweb09", "msrd", "cubic"),
]


def published(name: str) -> list[dict[str, str]]:
    with open(PUBLISHED / name, newline="") as file:
        return list(csv.DictReader(file))


def test_every_data_set_of_the_study_is_there():
    entries = catalog.load()
    assert set(NAMES) <= set(entries)
    for name, entry in entries.items():
        assert entry.name == name
        assert entry.title != name
        assert entry.page.startswith("http")
        assert entry.generator or entry.licence


@pytest.mark.parametrize("name", standins.names())
def test_every_stand_in_is_called_one(name):
    entry = catalog.get(name)
    assert name.endswith("_standin")
    assert "stand-in" in entry.title
    assert entry.label_levels == catalog.get(name.removesuffix("_standin")).label_levels


def test_digests_and_empty_queries_are_the_published_ones():
    web30k = catalog.get("web30k")
    for row in published("web30k_empty_queries.csv"):
        for split in ("train", "vali", "test"):
            expected = web30k.expect[f"Fold{row['fold']}/{split}"]
            assert expected["queries"] == int(row[f"{split}_queries"])
            assert expected["empty_queries"] == int(row[f"{split}_empty"])
    names = {
        "MSLR-WEB30K": "web30k",
        "MSLR-WEB10K": "web10k",
        "Istella": "istella",
        "Istella-S": "istella_s",
        "Istella-X": "istella_x",
    }
    for row in published("dataset_file_checksums.csv"):
        key = row["path_in_archive"].removesuffix(".txt")
        key = key if key.startswith("Fold") else key.rpartition("/")[2]
        assert catalog.get(names[row["dataset"]]).sha256[key] == row["digest"]
    for row in published("dataset_archive_checksums.csv"):
        if row["dataset"] in names:
            archive = catalog.get(names[row["dataset"]]).archives[0]
            assert (archive.name, archive.sha256) == (row["archive"], row["digest"])
            assert str(archive.bytes) == row["bytes"]


def test_the_same_part_has_the_same_digest_in_every_fold():
    for name in ("web30k", "web10k", "ohsumed"):
        sha256 = catalog.get(name).sha256
        assert len(sha256) == 15
        for fold in range(1, 6):
            assert sha256[f"Fold{fold}/vali"] == sha256[f"Fold{(fold - 2) % 5 + 1}/test"]


def test_counts_of_the_parts_add_up():
    for name in ("web30k", "web10k", "ohsumed", "yahoo1", "yahoo2"):
        expect = catalog.get(name).expect
        folds = [f"Fold{fold}/test" for fold in range(1, 6)]
        parts = folds if folds[0] in expect else ["train", "vali", "test"]
        for key, total in expect["total"].items():
            if all(key in expect[part] for part in parts):
                assert sum(expect[part][key] for part in parts) == total, (name, key)


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"mine": {"features": 3}}, "label_levels"),
        ({"mine": {"features": 3, "label_levels": 1}}, "minimum"),
        ({"Mine": {"features": 3, "label_levels": 3}}, "does not match"),
        ({"mine": {"features": 3, "label_levels": 3, "fold": 5}}, "fold"),
        (
            {"mine": {"features": 3, "label_levels": 3, "sha256": {"dev": "0" * 64}}},
            "no split 'dev'",
        ),
        ({"mine": {"features": 3, "label_levels": 3, "expect": {"dev": {}}}}, "no split 'dev'"),
        ({"mine": {"features": 3, "label_levels": 3, "layouts": [{"path": "x"}]}}, "match"),
    ],
)
def test_a_catalogue_that_cannot_be_meant_is_refused(tmp_path, document, message):
    file = tmp_path / "datasets.yaml"
    file.write_text(yaml.safe_dump({"datasets": document}))
    with pytest.raises(ConfigError) as caught:
        catalog.load(file)
    assert message in str(caught.value)


def test_the_fingerprint_is_of_what_decides_the_prepared_data(monkeypatch):
    entry = catalog.get("istella_s")
    same = dataclasses.replace(
        entry,
        page="elsewhere",
        quirks=(),
        archives=(dataclasses.replace(entry.archives[0], urls=()),),
    )
    assert catalog.fingerprint(same) == catalog.fingerprint(entry)
    for changes in ({"text": {"clip": 5.0}}, {"expect": {}}, {"features": 221}, {"sha256": {}}):
        other = dataclasses.replace(entry, **changes)
        assert catalog.fingerprint(other) != catalog.fingerprint(entry)
    standin = catalog.get("yahoo1_standin")
    before = catalog.fingerprint(standin)
    assert before != catalog.fingerprint(catalog.get("istella_standin"))
    profile = {**standins.profile("yahoo1_standin"), "empty_share": 0.5}
    monkeypatch.setattr(standins, "profile", lambda name: profile)
    assert catalog.fingerprint(standin) != before


def test_an_unknown_name_is_answered_with_the_nearest():
    with pytest.raises(ConfigError, match="did you mean 'ohsumed'"):
        catalog.get("osumed")


@pytest.mark.parametrize(
    "name", ["OHSUMED.rar", "OHSUMED.zip", "ohsumed.ZIP", "OHSUMED.tar.gz", "ohsumed.tgz"]
)
def test_archives_are_found_by_their_names(tmp_path, name):
    (tmp_path / name).write_bytes(b"x")
    assert catalog.find_archive(catalog.get("ohsumed"), tmp_path) == tmp_path / name


def test_a_file_as_published_comes_before_others_and_a_folder_last(tmp_path):
    entry = catalog.get("web30k")
    for name in ("MSLR-WEB30K", "web30k"):
        (tmp_path / name).mkdir()
    assert catalog.find_archive(entry, tmp_path).name == "MSLR-WEB30K"
    (tmp_path / "web30k.tar").write_bytes(b"x")
    assert catalog.find_archive(entry, tmp_path).name == "web30k.tar"
    (tmp_path / "MSLR-WEB30K.zip").write_bytes(b"x")
    assert catalog.find_archive(entry, tmp_path).name == "MSLR-WEB30K.zip"
    assert catalog.find_archive(entry, tmp_path / "nowhere") is None


def test_everything_that_is_missing_is_listed_at_once(tmp_path):
    (tmp_path / "OHSUMED.zip").write_bytes(b"x")
    entries = [catalog.get(name) for name in ("web30k", "ohsumed", "cubic", "td2003", "yahoo1")]
    with pytest.raises(DataError) as caught:
        catalog.require(entries, tmp_path)
    message = str(caught.value)
    assert "3 data sets have no archive" in message
    assert str(tmp_path) in message
    for entry in (entries[0], entries[3], entries[4]):
        assert entry.page in message
        for archive in entry.archives:
            assert archive.name in message
            assert archive.sha256 is None or archive.sha256 in message
    assert "OHSUMED" not in message
    assert "3 849 406 307 bytes" in message


def test_the_files_of_a_collection_that_is_missing_are_named_with_their_address():
    entry = catalog.get("msrd")
    lines = catalog.describe_missing(entry).splitlines()
    (named,) = [place for place, line in enumerate(lines) if "or a folder MSRD of these" in line]
    files = [line.strip() for line in lines[named + 1 : named + 3]]
    assert files == list(entry.archives[0].files) == list(entry.sha256)
    assert f"    from:    {entry.archives[0].urls[0]}" in lines


def test_nothing_missing_is_no_error(tmp_path):
    (tmp_path / "OHSUMED.zip").write_bytes(b"x")
    archives = catalog.require([catalog.get("ohsumed"), catalog.get("cubic")], tmp_path)
    assert archives == {"ohsumed": tmp_path / "OHSUMED.zip"}


def test_the_raw_folder_comes_from_option_then_environment(monkeypatch):
    monkeypatch.setenv("DIRECTRANK_RAW", "/from/environment")
    assert catalog.raw_folder("here") == Path("here")
    assert catalog.raw_folder() == Path("/from/environment")
    monkeypatch.delenv("DIRECTRANK_RAW")
    assert catalog.raw_folder() == Path("data/raw")


def test_every_key_of_the_schema_is_explained_in_the_readme():
    from directrank.system.schema import package_schema

    text = (ROOT / "data/README.md").read_text(encoding="utf-8")
    schema = package_schema("datasets")["$defs"]
    for key in {**schema["archived"]["properties"], **schema["generated"]["properties"]}:
        assert f"`{key}`" in text, key


@pytest.fixture
def small(tmp_path) -> Path:
    raw = tmp_path / "raw/mine"
    raw.mkdir(parents=True)
    for number, split in enumerate(("train", "vali", "test")):
        lines = [f"{i % 3} qid:{number * 9 + i // 4} 1:{i} 2:-{i}.5\n" for i in range(12)]
        (raw / f"{split}.txt").write_text("".join(lines))
    (tmp_path / "mine.yaml").write_text("datasets:\n  mine: {features: 2, label_levels: 3}\n")
    return tmp_path


def test_the_command_line_prepares_lists_and_verifies(small, capsys):
    catalogue = ["--catalogue", str(small / "mine.yaml")]
    raw = ["--raw", str(small / "raw")]
    out = str(small / "out")
    assert main(["prepare", "mine", *raw, *catalogue, "--out", out]) == 0
    assert "9 queries" in capsys.readouterr().out
    assert main(["data", "verify", *raw, *catalogue]) == 0
    assert "mine is intact" in capsys.readouterr().out
    assert main(["data", "status", *raw, *catalogue]) == 0
    assert "mine: present, mine" in capsys.readouterr().out
    assert main(["data", "list", *catalogue]) == 0
    assert "web30k_standin" in capsys.readouterr().out
    assert main(["data", "page", out, "--out", str(small / "pages")]) == 0
    assert str(small / "pages/mine.md") in capsys.readouterr().out


def test_status_says_what_is_missing_and_where_to_get_it(tmp_path, capsys):
    assert main(["data", "status", "web30k", "cubic", "--raw", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert "web30k: MISSING: MSLR-WEB30K" in shown
    assert catalog.get("web30k").archives[0].sha256 in shown
    assert "cubic: generated" in shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["prepare", "web30k"], "no archive"),
        (["prepare", "nothing"], "unknown data set"),
        (["data", "fetch", "ohsumed"], "cannot be fetched unattended"),
        (["data", "fetch", "istella"], "licence"),
        (["data", "verify", "web30k"], "no archive"),
    ],
)
def test_errors_are_one_message_and_exit_status_two(tmp_path, capsys, arguments, message):
    out = ["--out", str(tmp_path / "out")] if arguments[0] == "prepare" else []
    assert main([*arguments, "--raw", str(tmp_path), *out]) == 2
    shown = capsys.readouterr().err
    assert message in shown
    assert "remedy" in shown
    assert not (tmp_path / "out").exists()


def test_help_is_given_for_every_command():
    for arguments in (["prepare"], ["data"], ["data", "fetch"], ["data", "status"]):
        done = subprocess.run(
            [sys.executable, "-m", "directrank", *arguments, "--help"],
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0
        assert "usage: directrank" in done.stdout


@pytest.mark.slow
def test_a_page_says_what_the_data_are_and_is_the_same_every_time(small):
    raw, catalogue = small / "raw", small / "mine.yaml"
    prepare("mine", raw, small / "out", catalogue=catalogue)
    first = write_pages([small / "out"], small / "a")
    second = write_pages([small / "out"], small / "b")
    for one, two in zip(first, second, strict=True):
        assert one.read_bytes() == two.read_bytes()
    page = (small / "a/mine.md").read_text()
    assert "Real data" in page
    assert "the largest value is 11, in feature 1" in page
    with open(small / "a/datasets.csv") as file:
        row = next(csv.DictReader(file))
    assert (row["queries"], row["documents"], row["features"]) == ("9", "36", "2")
    with open(small / "a/mine.csv") as file:
        rows = list(csv.DictReader(file))
    assert [row["split"] for row in rows] == ["train", "vali", "test"]
    assert rows[0]["label 0"] == "0.333333"


def test_the_page_of_artificial_data_says_so(tmp_path):
    prepare("cubic", tmp_path, tmp_path / "c", settings={"queries": {"train": 2, "test": 2}})
    write_pages([tmp_path / "c"], tmp_path / "pages")
    assert "Artificial data" in (tmp_path / "pages/cubic.md").read_text()
    picture = (tmp_path / "pages/cubic.svg").read_text()
    assert "<!-- Artificial data, generated -->" in picture
    assert "<!-- Every training query" in picture  # all lists are of one length
    assert "the best single feature" in picture
