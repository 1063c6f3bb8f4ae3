"""Fetching archives from a real HTTP server that misbehaves in every way."""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections.abc import Iterator

import pytest
import yaml

from archive_server import Server, serving
from directrank.data import catalog
from directrank.data.catalog import ArchiveFile, Entry
from directrank.data.fetch import _refuse_plain_http, _Wanted, _WrongFileError, fetch
from directrank.system import progress as progress_module
from directrank.system.errors import ConfigError, DataError
from directrank.system.progress import Progress

CONTENT = bytes(i * 7 % 251 for i in range(3_000_000))


@pytest.fixture
def server() -> Iterator[Server]:
    with serving(CONTENT) as server:
        yield server


def entry(*urls: str, known_size: bool = True) -> Entry:
    archive = ArchiveFile(
        "a.zip",
        bytes=len(CONTENT) if known_size else None,
        sha256=hashlib.sha256(CONTENT).hexdigest(),
        urls=urls,
    )
    return Entry("mine", 3, "mine", page="http://page", licence="be kind", archives=(archive,))


def get(what: Entry, raw, **options):
    options = {"accept_licence": True, "timeout": 0.5, "pause": 0.0, **options}
    return fetch(what, raw, **options)


@pytest.mark.parametrize("known_size", [True, False])
@pytest.mark.parametrize(
    "behave",
    [
        ["well"],
        ["no length"],
        ["truncated", "well"],
        ["truncated", "truncated", "truncated", "well"],
        ["truncated", "ignores ranges"],
        ["truncated", "no range beyond", "well"],
        ["truncated", "another range", "well"],
        ["stalls", "well"],
        ["503", "429", "well"],
        ["redirect", "well"],
        ["truncated", "redirect", "well"],
    ],
    ids=" then ".join,
)
def test_what_passes_is_overcome(tmp_path, server, behave, known_size):
    server.behave = behave
    path = get(entry(server.url, known_size=known_size), tmp_path)
    assert path.read_bytes() == CONTENT
    assert [p.name for p in tmp_path.iterdir()] == ["a.zip"]


@pytest.mark.parametrize("known_size", [True, False])
@pytest.mark.parametrize(
    ("behave", "reason"),
    [
        ("404", "HTTP 404"),
        ("500", "HTTP 500"),
        ("wrong file", r"26 bytes|sha256 is"),
        ("wrong file of the right size", "sha256 is"),
        ("says too little", r"bytes, expected|sha256 is"),
        ("too long", r"more than|sha256 is"),
        ("redirect without end", "too many redirects"),
    ],
)
def test_what_does_not_pass_is_named_and_leaves_no_file(
    tmp_path, server, behave, reason, known_size
):
    server.behave = [behave]
    with pytest.raises(DataError, match="no mirror provided") as caught:
        get(entry(server.url, known_size=known_size), tmp_path, attempts=3)
    assert re.search(reason, caught.value.what)
    assert server.url in caught.value.what
    assert "http://page" in caught.value.remedy
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_says_too_much_is_left_or_asked_again(tmp_path, server):
    server.behave = ["says too much", "well"]
    get(entry(server.url, known_size=False), tmp_path).unlink()
    assert len(server.requests) == 2
    server.requests.clear()
    get(entry(server.url, server.url.replace("a.zip", "mirror")), tmp_path)
    assert [path for path, _ in server.requests] == ["/a.zip", "/mirror"]


def test_an_interrupted_download_goes_on_where_it_stopped(tmp_path, server):
    server.behave = ["truncated"]
    with pytest.raises(DataError, match="no mirror"):
        get(entry(server.url), tmp_path, attempts=2)
    part = tmp_path / ".a.zip.part"
    have = part.stat().st_size
    assert 0 < have < len(CONTENT)
    assert CONTENT.startswith(part.read_bytes())
    server.behave = ["well"]
    get(entry(server.url), tmp_path)
    assert server.requests[-1] == ("/a.zip", f"bytes={have}-")
    assert (tmp_path / "a.zip").read_bytes() == CONTENT


def test_a_part_of_another_file_is_thrown_away(tmp_path, server):
    (tmp_path / ".a.zip.part").write_bytes(b"something else")
    assert get(entry(server.url), tmp_path).read_bytes() == CONTENT
    assert [asked for _, asked in server.requests] == ["bytes=14-", None]


def test_the_next_mirror_is_asked(tmp_path, server):
    server.behave = ["404", "wrong file", "well"]
    urls = [server.url.replace("a.zip", name) for name in ("first", "second", "third")]
    get(entry(*urls), tmp_path)
    assert [path for path, _ in server.requests] == ["/first", "/second", "/third"]


def test_a_dead_server_is_named(tmp_path, server):
    dead = server.url.replace(str(server.server_port), "1")
    with pytest.raises(DataError, match="ConnectionError"):
        get(entry(dead), tmp_path, attempts=2)


def test_nothing_is_asked_without_the_licence_or_an_address(tmp_path, server):
    with pytest.raises(DataError, match="licence of 'mine' is not accepted: be kind") as caught:
        get(entry(server.url), tmp_path, accept_licence=False)
    assert "http://page" in caught.value.remedy
    with pytest.raises(DataError, match="cannot be fetched unattended") as caught:
        get(entry(), tmp_path)
    assert "a.zip" in caught.value.remedy
    assert server.requests == []


@pytest.fixture
def _as_if_by_https(monkeypatch):
    monkeypatch.setattr(catalog, "is_plain_http", lambda url: False)


@pytest.mark.usefixtures("_as_if_by_https")
def test_a_file_without_a_known_digest_is_not_believed(tmp_path, server):
    what = entry(server.url)
    blank = dataclasses.replace(what.archives[0], sha256=None)
    with pytest.raises(DataError, match="no digest"):
        get(dataclasses.replace(what, archives=(blank,)), tmp_path)


@pytest.mark.usefixtures("_as_if_by_https")
def test_md5_is_compared_where_nothing_better_is_known(tmp_path, server):
    what = entry(server.url, known_size=False)
    archive = what.archives[0]
    for digest, right in ((hashlib.md5(CONTENT).hexdigest(), True), ("0" * 32, False)):
        changed = dataclasses.replace(archive, sha256=None, md5=digest)
        if right:
            get(dataclasses.replace(what, archives=(changed,)), tmp_path).unlink()
        else:
            with pytest.raises(DataError, match="md5 is"):
                get(dataclasses.replace(what, archives=(changed,)), tmp_path)


def test_plain_http_is_taken_only_where_a_sha256_protects_the_file(tmp_path, server):
    what = entry(server.url)
    assert get(what, tmp_path).read_bytes() == CONTENT
    (tmp_path / "a.zip").unlink()
    archive = dataclasses.replace(
        what.archives[0], sha256=None, md5=hashlib.md5(CONTENT).hexdigest()
    )
    with pytest.raises(DataError, match="plain http, and no sha256 is known"):
        get(dataclasses.replace(what, archives=(archive,)), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_redirect_to_plain_http_is_refused_in_the_same_way():
    weak, strong = (
        _Wanted("a.zip", (), None, digits * "0", entry("https://a/b")) for digits in (32, 64)
    )
    _refuse_plain_http(weak, ["https://a/b", "https://c/d"])
    for hops in (["https://a/b", "http://c/d"], ["http://a/b", "https://c/d"], ["HTTP://a"]):
        with pytest.raises(_WrongFileError):
            _refuse_plain_http(weak, hops)
        _refuse_plain_http(strong, hops)


def test_a_catalogue_with_an_unprotected_address_is_refused(tmp_path):
    archive = {"name": "a.zip", "md5": "0" * 32, "urls": ["https://a/a.zip", "http://b/a.zip"]}
    content = {"features": 2, "label_levels": 2, "archives": [archive]}
    path = tmp_path / "datasets.yaml"
    path.write_text(yaml.safe_dump({"datasets": {"mine": content}}))
    with pytest.raises(ConfigError, match=r"'a\.zip' has a plain http address and no sha256"):
        catalog.load(path)


def test_what_is_there_is_not_fetched_and_refused_if_it_is_damaged(tmp_path, server):
    (tmp_path / "a.zip").write_bytes(b"mine")
    with pytest.raises(DataError, match=r"a\.zip: .*\n  remedy: ."):
        get(entry(server.url), tmp_path)
    assert server.requests == []


def test_progress_reaches_the_size(tmp_path, server):
    seen = []
    get(entry(server.url), tmp_path, progress=lambda done, total, text: seen.append((done, total)))
    assert seen[-1] == (len(CONTENT), len(CONTENT))
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


def test_the_log_of_a_download_has_few_lines_whether_or_not_its_length_is_known(
    tmp_path, server, capsys
):
    server.behave = ["no length"]
    for known, line in ((True, "3.00MB/3.00MB (100 %)"), (False, None)):
        with Progress("fetching", unit="B") as progress:
            get(entry(server.url, known_size=known), tmp_path, progress=progress).unlink()
        printed = capsys.readouterr().err.splitlines()
        assert [line in text for text in printed] == [True] if line else printed == []


def test_a_log_of_unknown_length_says_now_and_then_how_much_has_come(capsys, monkeypatch):
    clock = iter(range(0, 1000, 10))
    monkeypatch.setattr(progress_module.time, "monotonic", lambda: next(clock))
    with Progress("fetching", unit="B") as progress:
        for done in range(1, 7):
            progress(done * 2_500_000, None, "a.zip")
    assert capsys.readouterr().err.splitlines() == [
        "fetching: 5.00MB, 20 s, a.zip",
        "fetching: 10.0MB, 40 s, a.zip",
        "fetching: 15.0MB, 60 s, a.zip",
    ]


def test_everything_with_an_address_in_the_catalogue_can_be_verified():
    with_urls = [
        (item, archive)
        for item in catalog.load().values()
        for archive in item.archives
        if archive.urls
    ]
    assert len(with_urls) >= 7
    for item, archive in with_urls:
        assert archive.sha256 or archive.md5 or archive.files or item.has_all_digests
