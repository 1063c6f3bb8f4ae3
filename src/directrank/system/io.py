"""Atomic writes, so that a file is complete or absent; digests; and the formats of the study."""

from __future__ import annotations

import contextlib
import glob
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from directrank.system.locks import lock

if TYPE_CHECKING:
    import pandas as pd


@contextlib.contextmanager
def atomic_path(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path beside ``path``; renamed into place on success, removed on failure.

    The bytes are on disk before the rename, so a crash leaves either the old file or the new one.
    Temporary files that killed processes left beside ``path`` are removed.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    _remove_abandoned(path)
    handle, temporary = _locked_temporary(path)
    try:
        yield temporary
        with open(temporary, "rb+") as file:
            os.fsync(file.fileno())
        temporary.chmod(0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    finally:
        os.close(handle)


@contextlib.contextmanager
def atomic_folder(path: str | Path) -> Iterator[Path]:
    """Yield a temporary folder beside ``path``; on success it replaces ``path``."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part"))
    try:
        yield temporary
        temporary.chmod(0o777 & ~_umask())
        # The old folder is moved aside as a whole, so that a crash leaves no part of it in place.
        aside = None
        if path.exists():
            aside = temporary.with_suffix(".old")
            os.replace(path, aside)
        os.replace(temporary, path)
        if aside is not None:
            shutil.rmtree(aside)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def write_bytes(path: str | Path, content: bytes) -> None:
    """Write ``content``, atomically."""
    with atomic_path(path) as temporary:
        temporary.write_bytes(content)


def write_text(path: str | Path, text: str) -> None:
    """Write ``text`` as UTF-8, atomically."""
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def write_json(path: str | Path, content: Any) -> None:
    """Write :func:`json_text` of ``content``, atomically."""
    write_text(path, json_text(content))


def json_text(content: Any) -> str:
    """``content`` as indented JSON with sorted keys, so that equal content gives equal text."""
    return json.dumps(content, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def read_json(path: str | Path) -> Any:
    """Read a JSON file."""
    return json.loads(Path(path).read_text(encoding="utf-8"))


def write_csv(path: str | Path, frame: pd.DataFrame, digits: int = 6) -> None:
    """Write ``frame`` as CSV with floats to ``digits`` significant digits, atomically."""
    write_text(path, frame.to_csv(index=False, float_format=f"%.{digits}g", lineterminator="\n"))


def sha256_of(path: str | Path, chunk: int = 1 << 20) -> str:
    """Hex SHA-256 digest of a file, read in chunks."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(chunk):
            digest.update(block)
    return digest.hexdigest()


def digest_of(content: Any) -> str:
    """Hex SHA-256 digest of anything that JSON can represent, whatever the order of its keys."""
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode("utf-8")).hexdigest()


def _locked_temporary(path: Path) -> tuple[int, Path]:
    """A new file beside ``path``, and the lock on it that shows that its writer is alive."""
    while True:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
        with contextlib.suppress(OSError):  # a file system without locks
            lock(handle)
        if os.fstat(handle).st_nlink:
            return handle, Path(name)
        os.close(handle)  # another writer removed it as abandoned before it was locked


def _remove_abandoned(path: Path) -> None:
    """Remove temporary files of ``path`` whose writers were killed, which leaves locks free."""
    for name in path.parent.glob(f".{glob.escape(path.name)}.*.part"):
        with contextlib.suppress(OSError), open(name, "rb+") as file:
            if lock(file, wait=False):
                name.unlink()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
