"""Archives of every kind that are small and made here."""

from __future__ import annotations

import io
import struct
import tarfile
import zipfile
import zlib
from pathlib import Path

FILES = {"top/Fold1/train.txt": b"1 qid:1 1:1\n" * 5000, "top/empty.txt": b"", "top/x": b"\xff\0"}


def make_zip(path: Path, files: dict[str, bytes] = FILES) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def make_tar(path: Path, mode: str, files: dict[str, bytes] = FILES) -> Path:
    with tarfile.open(path, mode) as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return path


def make_rar(path: Path, files: dict[str, bytes] = FILES) -> Path:
    """A rar archive of version 3 whose members are stored, for want of a program that packs."""
    out = [b"Rar!\x1a\x07\x00"]

    def block(kind: int, flags: int, rest: bytes, data: bytes = b"") -> None:
        body = struct.pack("<BHH", kind, flags, 7 + len(rest)) + rest
        out.append(struct.pack("<H", zlib.crc32(body) & 0xFFFF) + body + data)

    block(0x73, 0, bytes(6))
    for name, content in files.items():
        encoded = name.replace("/", "\\").encode()
        rest = struct.pack(
            "<IIBIIBBHI",
            len(content),
            len(content),
            3,
            zlib.crc32(content),
            0x5A21_0000,
            20,
            0x30,
            len(encoded),
            0o100644,
        )
        block(0x74, 0x8000, rest + encoded, content)
    block(0x7B, 0x4000, b"")
    path.write_bytes(b"".join(out))
    return path
