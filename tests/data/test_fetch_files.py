"""Collections of several files, and archives whose content alone is known, from a real server."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

import msrd_archive
import wands_archive
from archive_server import Server, serving
from directrank.cli import main
from directrank.data import archives, catalog
from directrank.data.catalog import Entry
from directrank.data.fetch import fetch, fetch_missing
from directrank.data.prepare import prepare
from directrank.data.prepared import SPLITS, open_dataset, ring_split
from directrank.system.errors import ConfigError, DataError
from packed_archives import make_rar, make_tar

ROOT = Path(__file__).resolve().parents[2]


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def part(number: int, features: int) -> bytes:
    """A query of two documents in LETOR's format, too long to arrive in one block."""
    lines = [f"{label} qid:{number} 1:{number}.5 {features}:{label}" for label in (0, 1)]
    return f"{lines[0]} # {random.Random(number).randbytes(100_000).hex()}\n{lines[1]}\n".encode()


def five_folds(features: int) -> dict[str, bytes]:
    """The fifteen files of five cyclic folds, by path."""
    return {
        f"Fold{fold}/{split}.txt": b"".join(part(n, features) for n in ring_split(fold, split))
        for fold in range(1, 6)
        for split in SPLITS
    }


CLUEWEB = {path: text for path, text in five_folds(42).items() if path.endswith("test.txt")}
MQ2008 = five_folds(46)
WEB10K = {f"{split}.txt": part(number, 136) for number, split in enumerate(SPLITS, 1)}


def declared(
    folder: Path, name: str, server: Server, sha256s: dict[str, str], files: dict[str, str]
) -> Path:
    """The catalogue's entry, with the server's address and the digests of small files."""
    entry = yaml.safe_load((ROOT / "data/datasets.yaml").read_text())["datasets"][name]
    entry.pop("expect")
    entry["sha256"] = sha256s
    for archive in entry["archives"]:
        if "files" in archive:
            assert set(archive["files"]) == set(files)
            archive.update(urls=[server.folder], files=files)
        elif "urls" in archive:
            archive["urls"] = [server.url]
    path = folder / "datasets.yaml"
    path.write_text(yaml.safe_dump({"datasets": {name: entry}}))
    catalog._load.cache_clear()
    return path


def get(entry: Entry, raw: Path) -> Path:
    return fetch(entry, raw, accept_licence=True, attempts=2, timeout=0.5, pause=0.0)


@pytest.fixture
def clueweb(tmp_path):
    """A server of ClueWeb09's five files, and the data set's entry."""
    files = {path: sha256(text) for path, text in CLUEWEB.items()}
    splits = {path.removesuffix(".txt"): digest for path, digest in files.items()}
    with serving(dict(CLUEWEB)) as server:
        path = declared(tmp_path, "clueweb09", server, splits, files)
        yield server, catalog.get("clueweb09", path)


@pytest.mark.parametrize(
    ("name", "content", "folder"),
    [
        ("clueweb09", CLUEWEB, "ClueWeb09"),
        ("msrd", msrd_archive.contents(), "MSRD"),
        ("wands", wands_archive.contents(), "WANDS"),
    ],
)
def test_a_collection_of_several_files_is_fetched_once_and_verified(
    tmp_path, capsys, name, content, folder
):
    files = {path: sha256(text) for path, text in content.items()}
    known = {path.removesuffix(".txt"): digest for path, digest in files.items()}
    raw = ["--raw", str(tmp_path / "raw")]
    with serving(content) as server:
        catalogue = ["--catalogue", str(declared(tmp_path, name, server, known, files))]
        assert main(["data", "fetch", name, *raw, *catalogue]) == 2
        assert "licence" in capsys.readouterr().err
        assert server.requests == []
        assert main(["data", "fetch", name, "--accept-licence", *raw, *catalogue]) == 0
        assert len(server.requests) == len(files)
        assert main(["data", "fetch", name, *raw, *catalogue]) == 0
        assert len(server.requests) == len(files)
    assert [path.name for path in (tmp_path / "raw").iterdir()] == [folder]
    for path, text in content.items():
        assert (tmp_path / "raw" / folder / path).read_bytes() == text
    assert main(["data", "verify", name, *raw, *catalogue]) == 0
    assert f"{len(files)} of {len(files)} files were compared" in capsys.readouterr().out
    changed = tmp_path / "raw" / folder / next(iter(content))
    changed.write_bytes(b"9" + changed.read_bytes()[1:])
    errors = []
    for action in ("fetch", "verify"):
        assert main(["data", action, name, *raw, *catalogue]) == 2
        errors.append(capsys.readouterr().err.partition("error: ")[2])
    assert errors[0] == errors[1]
    assert f"{changed.name}: differs from the published file" in errors[0]


def test_a_collection_that_was_fetched_can_be_prepared(tmp_path, clueweb):
    _, entry = clueweb
    get(entry, tmp_path / "raw")
    prepare("clueweb09", tmp_path / "raw", tmp_path / "out", catalogue=tmp_path / "datasets.yaml")
    tested = [open_dataset(tmp_path / f"out/Fold{n}/test").query_ids.tolist() for n in range(1, 6)]
    assert tested == [list(ring_split(n, "test")) for n in range(1, 6)]


def test_an_interrupted_collection_resumes_within_the_file(tmp_path, clueweb):
    server, entry = clueweb
    server.behave = ["well", "truncated"]
    with pytest.raises(DataError, match=r"no mirror provided Fold2/test\.txt") as caught:
        get(entry, tmp_path / "raw")
    assert "Fold5/test.txt (into a folder ClueWeb09)" in caught.value.remedy
    assert catalog.find_archive(entry, tmp_path / "raw") is None
    have = (tmp_path / "raw/.ClueWeb09.part/Fold2/.test.txt.part").stat().st_size
    assert 0 < have < len(CLUEWEB["Fold2/test.txt"])
    server.behave = ["well"]
    server.requests.clear()
    folder = get(entry, tmp_path / "raw")
    assert server.requests[0] == ("/folder/Fold2/test.txt", f"bytes={have}-")
    assert [path for path, _ in server.requests] == [
        f"/folder/Fold{n}/test.txt" for n in (2, 3, 4, 5)
    ]
    content = {path: (folder / path).read_bytes() for path in CLUEWEB}
    assert content == CLUEWEB
    assert {path.name for path in folder.rglob("*") if path.is_file()} == {"test.txt"}


@pytest.mark.parametrize(
    ("wrong", "reason"), [(b"<html>please log in</html>", "its sha256 is"), (None, "HTTP 404")]
)
def test_a_wrong_or_missing_file_is_named_and_the_collection_is_absent(
    tmp_path, clueweb, wrong, reason
):
    server, entry = clueweb
    if wrong is None:
        del server.content["Fold3/test.txt"]
    else:
        server.content["Fold3/test.txt"] = wrong
    failures = fetch_missing([entry], tmp_path / "raw", ["clueweb09"], attempts=2, pause=0.0)
    assert "no mirror provided Fold3/test.txt" in failures["clueweb09"]
    assert f"{server.folder}/Fold3/test.txt: {reason}" in failures["clueweb09"]
    assert catalog.find_archive(entry, tmp_path / "raw") is None
    server.content.update(CLUEWEB)
    assert fetch_missing([entry], tmp_path / "raw", ["clueweb09"]) == {}
    assert catalog.find_archive(entry, tmp_path / "raw").name == "ClueWeb09"


def test_gits_name_of_a_file_verifies_it(tmp_path, monkeypatch):
    monkeypatch.setattr(catalog, "is_plain_http", lambda url: False)
    # What `git hash-object` prints for a file that holds hello and the end of the line.
    name = "ce013625030ba8dba906f756967f9e9ca394464a"
    with serving({"a.txt": b"hello\n"}) as server:
        archive = catalog.ArchiveFile("a.zip", urls=(server.folder,), files={"a.txt": name})
        entry = Entry("mine", 3, "mine", archives=(archive,))
        assert (get(entry, tmp_path / "right") / "a.txt").read_bytes() == b"hello\n"
        server.content["a.txt"] = b"hallo\n"
        with pytest.raises(DataError, match="its git name is"):
            get(entry, tmp_path / "wrong")


def test_plain_http_is_refused_for_files_of_which_only_gits_names_are_known(tmp_path):
    archive = {"name": "a.zip", "urls": ["http://a/b"], "files": {"a.txt": "0" * 40}}
    content = {"features": 2, "label_levels": 2, "archives": [archive]}
    path = tmp_path / "datasets.yaml"
    path.write_text(yaml.safe_dump({"datasets": {"mine": content}}))
    with pytest.raises(ConfigError, match="has a plain http address and no sha256"):
        catalog.load(path)


@pytest.mark.parametrize("path", ["../a.txt", "/a.txt", "a/../../b", ".a", "a//b"])
def test_a_path_that_leads_outside_the_folder_is_refused(tmp_path, path):
    archive = {"name": "a.zip", "urls": ["https://a/b"], "files": {path: "0" * 64}}
    content = {"features": 2, "label_levels": 2, "archives": [archive]}
    (tmp_path / "datasets.yaml").write_text(yaml.safe_dump({"datasets": {"mine": content}}))
    with pytest.raises(ConfigError, match="does not match"):
        catalog.load(tmp_path / "datasets.yaml")


def packed_web10k(folder: Path, files: dict[str, bytes]) -> bytes:
    members = {f"MSRank/{name}": text for name, text in files.items()}
    return make_tar(folder / "packed.tar.gz", "w:gz", members).read_bytes()


def packed_mq2008(folder: Path, files: dict[str, bytes]) -> bytes:
    members = {f"MQ2008/{name}": text for name, text in files.items()}
    return make_rar(folder / "packed.rar", members).read_bytes()


BY_CONTENT: dict[str, tuple[Callable, dict[str, bytes], str, str]] = {
    "web10k_fold1": (packed_web10k, WEB10K, "msrank.tar.gz", "vali.txt"),
    "mq2008": (packed_mq2008, MQ2008, "MQ2008.rar", "Fold1/vali.txt"),
}


@pytest.fixture(params=BY_CONTENT)
def by_content(request, tmp_path, monkeypatch):
    """An archive of which only the files in it are known: what packs it, its files, its name, one
    of its files, its server, and its entry."""
    # Members that are stored need no program for rar archives.
    monkeypatch.setattr(archives.rarfile, "tool_setup", lambda: None)
    monkeypatch.setattr(catalog, "is_plain_http", lambda url: False)
    pack, files, name, one = BY_CONTENT[request.param]
    known = {path.removesuffix(".txt"): sha256(text) for path, text in files.items()}
    with serving(pack(tmp_path, files)) as server:
        path = declared(tmp_path, request.param, server, known, {})
        yield pack, files, name, one, server, catalog.get(request.param, path)


def test_an_archive_is_verified_by_the_files_in_it(tmp_path, by_content):
    _, _, name, _, server, entry = by_content
    server.behave = ["truncated", "well"]
    assert get(entry, tmp_path / "raw").read_bytes() == server.content
    assert [path.name for path in (tmp_path / "raw").iterdir()] == [name]
    assert server.requests[1][1].startswith("bytes=")


def test_another_file_in_an_archive_is_named_and_the_archive_is_absent(tmp_path, by_content):
    pack, files, _, one, server, entry = by_content
    server.content = pack(tmp_path, {**files, one: files[one].replace(b"0", b"1")})
    with pytest.raises(DataError, match=f"{one}: differs from the published file"):
        get(entry, tmp_path / "raw")
    assert list((tmp_path / "raw").iterdir()) == []


def test_an_archive_without_a_file_is_refused(tmp_path, by_content):
    pack, files, _, one, server, entry = by_content
    server.content = pack(tmp_path, {path: text for path, text in files.items() if path != one})
    with pytest.raises(DataError, match=f"there is no {one}"):
        get(entry, tmp_path / "raw")
    assert list((tmp_path / "raw").iterdir()) == []


def test_an_archive_with_copies_that_have_no_digest_is_refused(tmp_path, by_content):
    pack, files, _, one, server, entry = by_content
    copies = {
        path.replace(".txt", ".parquet") if path == one else path: files[path] for path in files
    }
    server.content = pack(tmp_path, copies)
    with pytest.raises(DataError, match="of which the catalogue has no digest"):
        get(entry, tmp_path / "raw")
    assert list((tmp_path / "raw").iterdir()) == []


def test_what_is_no_archive_is_refused(tmp_path, by_content):
    *_, server, entry = by_content
    server.content = b"<html>please log in</html>"
    with pytest.raises(DataError, match="is damaged"):
        get(entry, tmp_path / "raw")
    assert list((tmp_path / "raw").iterdir()) == []


def test_a_rar_that_could_not_be_read_is_not_asked_for(tmp_path, monkeypatch):
    def missing():
        raise archives.rarfile.RarCannotExec("no program")

    monkeypatch.setattr(archives.rarfile, "tool_setup", missing)
    monkeypatch.setattr(catalog, "is_plain_http", lambda url: False)
    known = {path.removesuffix(".txt"): sha256(text) for path, text in MQ2008.items()}
    with serving(b"x") as server:
        entry = catalog.get("mq2008", declared(tmp_path, "mq2008", server, known, {}))
        with pytest.raises(DataError, match="needs a program that reads rar") as caught:
            get(entry, tmp_path / "raw")
        assert server.requests == []
    assert "unrar" in caught.value.remedy
