"""Members of an archive as streams: zip, tar (gz, bz2, xz), rar, or a folder; nothing is unpacked.

Archives are not trusted. Before anything is read, the names of all members are checked, and the
archive is refused if one leads outside it, is a link or a device, or occurs twice. During reading,
more bytes than the archive can plausibly contain are refused.
"""

from __future__ import annotations

import abc
import bz2
import gzip
import io
import lzma
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, Any, cast

import rarfile

from directrank.system.errors import DataError

if TYPE_CHECKING:
    from _typeshed import SupportsRead, WriteableBuffer

#: Suffixes of the containers that :func:`open_archive` reads.
SUFFIXES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz", ".rar")
#: Text compresses to about a tenth; no genuine data set comes near this ratio.
LARGEST_RATIO = 250
_FREE_BYTES = 64 << 20
_MOST_MEMBERS = 100_000


class Archive(abc.ABC):
    """The regular files of a container.

    Attributes:
        path: the file or folder.
        members: size in bytes of each file, by its path with forward slashes.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.members: dict[str, int] = {}

    @abc.abstractmethod
    def open(self, member: str) -> AbstractContextManager[io.RawIOBase]:
        """A context with ``member`` as a stream of bytes, which can be read once from the start.

        Raises:
            DataError: the archive is damaged, or yields more bytes than it can plausibly contain.
        """

    def _admit(self, name: str, size: int) -> None:
        if name in self.members:
            raise self._refused(f"contains '{name}' twice")
        if len(self.members) >= _MOST_MEMBERS:
            raise self._refused(f"contains more than {_MOST_MEMBERS} files")
        self.members[name] = size

    def _safe_name(self, name: str) -> str:
        """The normal form of a member's name, if it does not lead outside the archive."""
        path = PurePosixPath(name.replace("\\", "/"))
        if (
            path.is_absolute()
            or ".." in path.parts
            or "\0" in name
            or not path.parts
            or (len(path.parts[0]) >= 2 and path.parts[0][1] == ":")
        ):
            raise self._refused(f"contains the name {name!r}, which leads outside it")
        return str(path)

    def _refused(self, what: str) -> DataError:
        return DataError(
            f"{what}: refused", "get the archive again from its official page", file=self.path
        )

    def _damaged(self, error: BaseException) -> DataError:
        return DataError(
            f"is damaged or is not of the kind that its name says: {error}",
            "get the archive again from its official page",
            file=self.path,
        )


def open_archive(path: str | Path, name: str | None = None) -> Archive:
    """Open a container of the kind that its name says; a folder counts as one.

    Args:
        path: the file or folder.
        name: the name that says of which kind the file is, if it is not its own.

    Raises:
        DataError: it is of an unknown kind, damaged, hostile, or a rar without a program to read
            it.
    """
    path = Path(path)
    if path.is_dir():
        return _Folder(path)
    if not path.is_file():
        raise DataError("the file does not exist", "check the raw folder", file=path)
    name = (name or path.name).lower()
    if name.endswith(".zip"):
        return _Zip(path)
    if name.endswith(".rar"):
        return _Rar(path)
    if _is_tar(name):
        return _Tar(path)
    raise DataError(
        "is not an archive of a known kind", f"choose one of: {', '.join(SUFFIXES)}", file=path
    )


def require_program(name: str) -> None:
    """Make sure that the members of an archive called ``name`` can be read on this machine.

    Raises:
        DataError: it is a rar, and no program for rar archives is installed.
    """
    if name.lower().endswith(".rar"):
        try:
            rarfile.tool_setup()
        except rarfile.RarCannotExec as error:
            raise _no_rar_program(Path(name)) from error


class _Folder(Archive):
    def __init__(self, path: Path) -> None:
        super().__init__(path)
        for file in sorted(path.rglob("*")):
            # Links in the user's own folder are accepted, unless they are broken.
            if file.is_file():
                self._admit(file.relative_to(path).as_posix(), file.stat().st_size)

    @contextmanager
    def open(self, member: str) -> Iterator[io.RawIOBase]:
        with open(self.path / member, "rb", buffering=0) as stream:
            yield stream


class _Packed(Archive):
    """An archive with a table of its members: zip or rar."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._names: dict[str, str] = {}
        with self._guarded(self._reader) as archive:
            for info in archive.infolist():
                name = self._safe_name(info.filename)
                if self._is_special(info):
                    raise self._refused(f"holds '{name}', which is a link or a device")
                if info.is_dir():
                    continue
                self._admit(name, info.file_size)
                self._names[name] = info.filename

    @contextmanager
    def open(self, member: str) -> Iterator[io.RawIOBase]:
        with (
            self._guarded(self._reader) as archive,
            self._guarded(lambda _: archive.open(self._names[member])) as stream,
        ):
            yield _Guarded(stream, self, self.members[member])

    @abc.abstractmethod
    def _reader(self, path: Path) -> Any:
        """The opened container."""

    @abc.abstractmethod
    def _is_special(self, info: Any) -> bool:
        """Whether a member is neither a file nor a folder."""

    def _guarded(self, opened: Callable[[Path], Any]) -> Any:
        try:
            return opened(self.path)
        except (rarfile.Error, *_DAMAGE) as error:
            raise self._damaged(error) from error


class _Zip(_Packed):
    def _reader(self, path: Path) -> zipfile.ZipFile:
        return zipfile.ZipFile(path)

    def _is_special(self, info: zipfile.ZipInfo) -> bool:
        if info.flag_bits & 1 and not info.is_dir():
            raise DataError("is encrypted", "unpack it into a folder beside it", file=self.path)
        mode = info.external_attr >> 16
        return bool(stat.S_IFMT(mode)) and not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))

    def _damaged(self, error: BaseException) -> DataError:
        if isinstance(error, NotImplementedError):
            return DataError(
                f"cannot be read here: {error}", "unpack it into a folder beside it", file=self.path
            )
        return super()._damaged(error)


class _Rar(_Packed):
    def _reader(self, path: Path) -> rarfile.RarFile:
        return rarfile.RarFile(path)

    def _is_special(self, info: rarfile.RarInfo) -> bool:
        return not (info.is_dir() or info.is_file())

    def _damaged(self, error: BaseException) -> DataError:
        if isinstance(error, rarfile.RarCannotExec):
            return _no_rar_program(self.path)
        # Free programs for rar archives cannot read all of them.
        return DataError(
            f"is damaged, or the installed program for rar archives cannot read it: {error}",
            f"install unrar, or unpack the archive {_elsewhere(self.path)}; if that fails too, get "
            "the archive again",
            file=self.path,
        )


def _no_rar_program(path: Path) -> DataError:
    return DataError(
        "needs a program that reads rar archives, but none is installed",
        "install unrar, unar, 7zip or bsdtar (libarchive-tools), or unpack the archive "
        f"{_elsewhere(path)}",
        file=path,
    )


def _elsewhere(path: Path) -> str:
    return f"on another machine and put the folder '{path.stem}' beside it"


class _Tar(Archive):
    """A tar, which is read from the start for every member; a tar inside it is read, too."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        for name, info, _ in self._files():
            self._admit(name, info.size)

    @contextmanager
    def open(self, member: str) -> Iterator[io.RawIOBase]:
        for name, info, archive in self._files():
            if name == member:
                yield self._extracted(archive, info)
                return
        raise DataError(f"no longer contains '{member}'", "run the command again", file=self.path)

    def _files(self) -> Iterator[tuple[str, tarfile.TarInfo, tarfile.TarFile]]:
        try:
            with open(self.path, "rb", buffering=0) as file, self._streamed(file) as archive:
                for name, info in self._regular(archive):
                    if not _is_tar(name.lower()):
                        yield name, info, archive
                        continue
                    with self._streamed(self._extracted(archive, info)) as inner:
                        parent = PurePosixPath(name).parent
                        for inner_name, inner_info in self._regular(inner):
                            if _is_tar(inner_name.lower()):
                                raise self._refused(f"'{name}' in it contains a third archive")
                            yield str(parent / inner_name), inner_info, inner
        except _DAMAGE as error:
            raise self._damaged(error) from error

    def _extracted(self, archive: tarfile.TarFile, info: tarfile.TarInfo) -> _Guarded:
        # A regular file has a stream; tarfile returns None for members that are neither file nor
        # link.
        return _Guarded(cast(IO[bytes], archive.extractfile(info)), self, info.size)

    @contextmanager
    def _streamed(self, packed: io.RawIOBase) -> Iterator[tarfile.TarFile]:
        # It is unpacked here, not by tarfile, so that every byte is counted before tarfile sees it.
        file = io.BufferedReader(packed, 1 << 20)
        magic = file.peek(6)
        for start, unpack in _PACKERS.items():
            if magic.startswith(start):
                file = io.BufferedReader(_Guarded(unpack(file), self, None), 1 << 20)
                break
        with tarfile.open(fileobj=file, mode="r|", bufsize=1 << 20, errorlevel=2) as archive:
            yield archive

    def _regular(self, archive: tarfile.TarFile) -> Iterator[tuple[str, tarfile.TarInfo]]:
        for info in archive:
            name = self._safe_name(info.name)
            if info.isdir():
                continue
            if not info.isreg() or info.issparse():
                raise self._refused(f"holds '{name}', which is a link or a device")
            yield name, info


class _Guarded(io.RawIOBase):
    """A stream of exactly ``size`` bytes, which refuses more than is plausible."""

    def __init__(self, stream: SupportsRead[bytes], archive: Archive, size: int | None) -> None:
        self._stream = stream
        self._archive = archive
        self._size = size
        self._read = 0
        self._most = LARGEST_RATIO * archive.path.stat().st_size + _FREE_BYTES

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer)
        block = self.read(len(view))
        view[: len(block)] = block
        return len(block)

    def read(self, size: int = -1) -> bytes:
        try:
            block = self._stream.read(size)
        except (rarfile.Error, *_DAMAGE) as error:
            raise self._archive._damaged(error) from error
        self._read += len(block)
        if self._read > self._most:
            raise self._archive._refused(
                f"unpacks to more than {LARGEST_RATIO} times its size (a bomb?)"
            )
        ended = not block and size != 0
        if self._size is not None and (
            self._read > self._size or (ended and self._read < self._size)
        ):
            raise self._archive._refused(
                f"contains a file of {self._read} bytes that is declared to have {self._size}"
            )
        return block


def _gunzip(file: IO[bytes]) -> gzip.GzipFile:
    return gzip.GzipFile(fileobj=file)


_PACKERS: dict[bytes, Callable[[IO[bytes]], SupportsRead[bytes]]] = {
    b"\x1f\x8b": _gunzip,
    b"BZh": bz2.BZ2File,
    b"\xfd7zXZ": lzma.LZMAFile,
}


_DAMAGE = (
    zipfile.BadZipFile,
    tarfile.TarError,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    # zipfile raises it for a compression or a version of the format that it does not know.
    NotImplementedError,
    OSError,
    UnicodeDecodeError,
)


def _is_tar(name: str) -> bool:
    return name.endswith(tuple(suffix for suffix in SUFFIXES if suffix not in (".zip", ".rar")))
