"""Archives: every honest container gives the same bytes, every hostile one is refused."""

from __future__ import annotations

import base64
import gzip
import os
import shutil
import stat
import struct
import tarfile
import zipfile
import zlib
from pathlib import Path

import pytest

from directrank.data import archives
from directrank.data.archives import open_archive
from directrank.system.errors import DataError
from packed_archives import FILES, make_rar, make_tar, make_zip


def read_all(path: Path) -> dict[str, bytes]:
    archive = open_archive(path)
    content = {}
    # Backwards, so that a tar has to be read again for every member.
    for name in sorted(archive.members, reverse=True):
        with archive.open(name) as stream:
            content[name] = b"".join(iter(lambda: stream.read(1000), b""))
        assert len(content[name]) == archive.members[name]
    return content


def make_folder(path: Path) -> Path:
    for name, content in FILES.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(content)
    return path


CONTAINERS = {
    "a.zip": make_zip,
    "a.tar": lambda path: make_tar(path, "w"),
    "a.tar.gz": lambda path: make_tar(path, "w:gz"),
    "a.tgz": lambda path: make_tar(path, "w:gz"),
    "a.tar.bz2": lambda path: make_tar(path, "w:bz2"),
    "a.tar.xz": lambda path: make_tar(path, "w:xz"),
    "a.rar": make_rar,
    "a": make_folder,
}


@pytest.mark.parametrize("name", CONTAINERS)
def test_every_container_gives_the_same_files(tmp_path, name):
    assert read_all(CONTAINERS[name](tmp_path / name)) == FILES


def test_a_tar_in_a_tar_is_entered(tmp_path):
    inner = make_tar(tmp_path / "inner.tar.bz2", "w:bz2").read_bytes()
    outer = make_tar(tmp_path / "outer.tgz", "w:gz", {"d/readme": b"x", "d/inner.tar.bz2": inner})
    expected = {f"d/{name}": content for name, content in FILES.items()}
    assert read_all(outer) == {**expected, "d/readme": b"x"}


def test_a_third_archive_is_not_entered(tmp_path):
    third = make_tar(tmp_path / "3.tar", "w").read_bytes()
    second = make_tar(tmp_path / "2.tar", "w", {"3.tar": third}).read_bytes()
    with pytest.raises(DataError, match="third archive"):
        open_archive(make_tar(tmp_path / "1.tar", "w", {"2.tar": second}))


BAD_NAMES = ["../x", "a/../../x", "/etc/x", "C:\\x", "..\\x", "a\\..\\..\\x", "C:/x"]


@pytest.mark.parametrize("name", BAD_NAMES)
@pytest.mark.parametrize("kind", ["zip", "tar", "rar"])
def test_names_that_lead_outside_are_refused(tmp_path, kind, name):
    make = {"zip": make_zip, "tar": lambda p, f: make_tar(p, "w", f), "rar": make_rar}[kind]
    path = make(tmp_path / f"a.{kind}", {"good": b"x", name: b"x"})
    with pytest.raises(DataError, match="leads outside"):
        open_archive(path)


def test_a_file_that_occurs_twice_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("a", b"1")
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("a", b"2")
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        for name in ("d/a", "d/./a"):
            archive.addfile(tarfile.TarInfo(name))
    for name in ("a.zip", "a.tar"):
        with pytest.raises(DataError, match="twice"):
            open_archive(tmp_path / name)


@pytest.mark.parametrize(
    "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE]
)
def test_links_and_devices_in_a_tar_are_refused(tmp_path, kind):
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        info = tarfile.TarInfo("train.txt")
        info.type = kind
        info.linkname = "/etc/passwd"
        archive.addfile(info)
    with pytest.raises(DataError, match="link or a device"):
        open_archive(tmp_path / "a.tar")


def test_links_in_a_zip_are_refused(tmp_path):
    info = zipfile.ZipInfo("train.txt")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr(info, "/etc/passwd")
    with pytest.raises(DataError, match="link or a device"):
        open_archive(tmp_path / "a.zip")


def test_bombs_are_refused_before_they_unfold(tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "_FREE_BYTES", 1 << 16)
    zeros = bytes(30 << 20)
    for name, make in (("a.zip", make_zip), ("a.tar.bz2", lambda p, f: make_tar(p, "w:bz2", f))):
        path = make(tmp_path / name, {"train.txt": zeros})
        assert path.stat().st_size * archives.LARGEST_RATIO < len(zeros)
        with pytest.raises(DataError, match="bomb"):
            read_all(path)


@pytest.mark.slow
def test_a_bomb_in_a_tars_header_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "_FREE_BYTES", 1 << 16)
    # A member that is not wanted is skipped over, and that counts as well.
    path = make_tar(tmp_path / "a.tar.gz", "w:gz", {"skip": bytes(300 << 20), "train.txt": b"x"})
    with pytest.raises(DataError, match="bomb"):
        open_archive(path)


@pytest.mark.parametrize("name", [name for name in CONTAINERS if name != "a"])
def test_a_truncated_or_foreign_file_is_named_as_damaged(tmp_path, name):
    path = CONTAINERS[name](tmp_path / name)
    whole = path.read_bytes()
    for content in (whole[: len(whole) // 2], b"<html>not found</html>" * 99, b""):
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"damaged|contains a file of") as caught:
            read_all(path)
        assert str(path) in str(caught.value)


def test_a_changed_byte_in_a_zip_is_noticed(tmp_path):
    content = {"train.txt": os.urandom(10_000)}
    path = make_zip(tmp_path / "a.zip", content)
    changed = bytearray(path.read_bytes())
    changed[5000] ^= 1
    path.write_bytes(changed)
    with pytest.raises(DataError, match="damaged"):
        read_all(path)


def test_a_zip_that_lies_about_a_size_is_refused(tmp_path):
    path = make_zip(tmp_path / "a.zip", {"t": b"x" * 1000})
    content = path.read_bytes()
    for lie in (10, 100_000):
        path.write_bytes(content.replace(struct.pack("<I", 1000), struct.pack("<I", lie)))
        with pytest.raises(DataError, match=r"damaged|contains a file of"):
            read_all(path)


def test_an_encrypted_zip_says_so(tmp_path):
    path = make_zip(tmp_path / "a.zip", {"t": b"x"})
    content = bytearray(path.read_bytes())
    content[content.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(content)
    with pytest.raises(DataError, match="encrypted"):
        open_archive(path)


def test_a_zip_with_another_compression_says_how_to_get_at_its_files(tmp_path):
    path = make_zip(tmp_path / "a.zip", {"t": b"x"})
    content = bytearray(path.read_bytes())
    for record, place in ((b"PK\x01\x02", 10), (b"PK\x03\x04", 8)):
        content[content.index(record) + place] = 9  # deflate64
    path.write_bytes(content)
    with pytest.raises(DataError, match="That compression method is not supported") as caught:
        read_all(path)
    assert "unpack it into a folder" in caught.value.remedy


# Archives that a real packer made, of two compressed files each: of version 3 and solid, as LETOR's
# are of that time, and of version 5. From the tests of the library rarfile (ISC licence).
PACKED_RARS = {
    "rar3 solid": (
        "Qeko-8V3M7&~pd?4FCWD00000D>QU~kSqXP000002mk;BqUN{7ux89Y9Wx35q=5hcb97~MbTKY;cys{35e&@!jGn"
        "OmF@dYBvAaNbs0w7(OE-hT2fP8`g_7?3wjBTnAOHx6>39s%3<qI4L3m5EZl6*L+R7(Dy5|dIiehp5xB!u!P%qe3|"
        "N6#Q>+8hVh<;R-haXMs*%ow=kSqWW000002mk;BqUN{7ux89Y9Wx35q=5hcb97~MbTTe<cys{3u^<452kY_*Y5M$"
        ">-q6H7djLQO00"
    ),
    "rar5": (
        "Qeko-8V3OY7W?3|3jqZO00sd8$bo<W4?E)SAOZrn00w{%q=N#TjPy;S=C{Rw0|5$ibY*jNF)nm?bi}GOL^LG&GV4"
        "eB#7%v@<^_O)3XH)6DwWD2n@}2)-9Y>RKmq{NU<5Yp75TSRgDPZB&3qr=-$6pDAOZrn00w{%q=N#TjPy;S=C{Rw0"
        "|5$ibY*jNGA?v@bi}GOL^LG&GV4eB#7%v@<^_O)3XH)6DwWD2n@}2)-9Y>RKmq{NU<5Yp75TSRgDPZB&3qr=RX7v"
        "94g&_;007$n0Du4i0#Q$#;!uVu0Js4q4?E)SAOZrn00w{%q=N#TjPy;S=C{Rw0|5$ibY*jNF)nm?bQagaSSSEoCE"
        "r0psUQLZw*Ur!5Tt_wos9HNqUN{7fCB*vb97~MbTTe<cyt|iR#5{51ON"
    ),
}
RAR_PROGRAMS = ("unrar", "unar", "7z", "7zz", "bsdtar")


@pytest.mark.skipif(
    not any(map(shutil.which, RAR_PROGRAMS)), reason="no program for rar archives is installed"
)
@pytest.mark.parametrize("kind", PACKED_RARS)
def test_compressed_members_of_a_rar_are_read(tmp_path, kind):
    path = tmp_path / "a.rar"
    path.write_bytes(base64.b85decode(PACKED_RARS[kind]))
    content = "".join(f"{number:03}\n" for number in range(512)).encode()
    assert read_all(path) == {"stest1.txt": content, "stest2.txt": content}


def test_a_rar_without_a_program_for_it_says_what_to_install(tmp_path, monkeypatch):
    path = make_rar(tmp_path / "a.rar")
    content = path.read_bytes()
    # 0x33 is a packed member, for which rarfile needs a program.
    path.write_bytes(_repacked(content))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(DataError, match="unrar, unar, 7zip or bsdtar"):
        read_all(path)


def _repacked(content: bytes) -> bytes:
    """The rar with its first member marked as packed, and that header's checksum mended."""
    at = 7 + 13
    size = struct.unpack_from("<H", content, at + 5)[0]
    header = bytearray(content[at : at + size])
    header[25] = 0x33
    header[:2] = struct.pack("<H", zlib.crc32(bytes(header[2:])) & 0xFFFF)
    return content[:at] + bytes(header) + content[at + size :]


def test_unknown_kinds_and_missing_files_are_errors(tmp_path):
    (tmp_path / "a.doc").write_bytes(b"x")
    with pytest.raises(DataError, match="not an archive of a known kind"):
        open_archive(tmp_path / "a.doc")
    with pytest.raises(DataError, match="does not exist"):
        open_archive(tmp_path / "b.zip")


def test_an_error_of_the_reader_of_a_member_is_not_taken_for_damage(tmp_path):
    for name in CONTAINERS:
        archive = open_archive(CONTAINERS[name](tmp_path / name))
        with pytest.raises(OSError, match="disk full"), archive.open("top/x"):
            raise OSError("disk full")


def test_a_gzip_file_that_is_no_tar_is_damaged(tmp_path):
    (tmp_path / "a.tar.gz").write_bytes(gzip.compress(b"1 qid:1 1:1\n" * 100))
    with pytest.raises(DataError, match="damaged"):
        open_archive(tmp_path / "a.tar.gz")
