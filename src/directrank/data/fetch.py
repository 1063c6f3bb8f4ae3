"""Download archives unattended from mirrors: resumable, verified, and complete or absent.

A file is verified by its digest; an archive of which none is known, by those of all files in it.
Addresses use https. Some publishers offer only plain http, which is accepted, also as the target of
a redirect, only if the catalogue has the file's sha256, which protects the content.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests

from directrank.data import catalog
from directrank.data.archives import open_archive, require_program
from directrank.data.catalog import Entry
from directrank.data.digests import hash_like, is_sha256, kind_of
from directrank.system import locks
from directrank.system.errors import DataError
from directrank.system.progress import Progress

ProgressCall = Callable[[int, int | None, str], None]

#: A broken connection loses less than one block.
_BLOCK = 1 << 16
_LONGEST_PAUSE = 30.0


def fetch(
    entry: Entry,
    raw: str | Path,
    *,
    accept_licence: bool,
    attempts: int = 5,
    timeout: float = 30.0,
    pause: float = 2.0,
    progress: ProgressCall = lambda done, of, text: None,
) -> Path:
    """Fetch the archive of a data set, or the folder of its files, into the folder ``raw``.

    What is there already is verified as :func:`directrank.data.prepare.verify` does, and returned.
    Bytes are collected in ``.NAME.part``, from which a later call resumes. A file gets its name
    only once its size and digest match the catalogue, and a folder once it has all its files.

    Args:
        entry: the data set.
        raw: the folder of archives.
        accept_licence: whether the user has accepted the data set's licence.
        attempts: the number of requests to each mirror before the next one is tried.
        timeout: seconds without data after which a connection counts as dead.
        pause: seconds before a request is repeated, doubled each time.
        progress: called as ``progress(bytes, of, text)``; ``of`` is None if it is unknown.

    Raises:
        DataError: it cannot be fetched unattended or not be verified, the licence is not accepted,
            no mirror returned the right file, or another one is there; the message gives the reason
            for each.
    """
    present = None if entry.generator else catalog.find_archive(entry, raw)
    if present is not None:
        _verified(entry, present)
        return present
    archive = next((item for item in entry.archives if item.urls), None)
    if archive is None:
        raise DataError(
            f"data set '{entry.name}' cannot be fetched unattended", _by_hand(entry, raw)
        )
    if not accept_licence:
        raise DataError(
            f"the licence of '{entry.name}' is not accepted: {entry.licence}",
            f"read it at {entry.page}; if you accept it, add --accept-licence",
        )
    target = Path(raw) / archive.target
    digest = archive.sha256 or archive.md5
    if not archive.files:
        if digest is None:
            require_program(archive.name)
        wanted = _Wanted(archive.name, archive.urls, archive.bytes, digest, entry)
        return _obtain(wanted, target, raw, attempts, timeout, pause, progress)
    folder = _part(target)
    for path, digest in archive.files.items():
        urls = tuple(f"{url}/{path}" for url in archive.urls)
        wanted = _Wanted(path, urls, None, digest, entry)
        if not (folder / path).exists():
            _obtain(wanted, folder / path, raw, attempts, timeout, pause, progress)
    os.replace(folder, target)
    return target


def fetch_missing(
    entries: Iterable[Entry],
    raw: str | Path,
    accepted: Collection[str],
    **options: Any,
) -> dict[str, str]:
    """Fetch every archive that is missing, may be fetched unattended and has an accepted licence.

    Args:
        entries: data sets; those that are generated or whose archive is present are skipped.
        raw: the folder of archives.
        accepted: names of the data sets whose licence the user has accepted.
        options: ``attempts``, ``timeout`` and ``pause`` of :func:`fetch`.

    Returns:
        The reason for each data set whose archive could not be fetched.
    """
    failures = {}
    for entry in entries:
        if (
            entry.name not in accepted
            or not any(archive.urls for archive in entry.archives)
            or not catalog.is_missing(entry, raw)
        ):
            continue
        try:
            with Progress(f"fetching {entry.name}", unit="B") as progress:
                fetch(entry, raw, accept_licence=True, progress=progress, **options)
        except DataError as error:
            failures[entry.name] = error.what
    return failures


@dataclass(frozen=True)
class _Wanted:
    """A file to fetch: its addresses, and what is known of it."""

    name: str
    urls: tuple[str, ...]
    bytes: int | None
    digest: str | None
    entry: Entry


def _part(target: Path) -> Path:
    """What is incomplete until it becomes ``target``."""
    return target.with_name(f".{target.name}.part")


def _obtain(
    wanted: _Wanted,
    target: Path,
    raw: str | Path,
    attempts: int,
    timeout: float,
    pause: float,
    progress: ProgressCall,
) -> Path:
    """Fetch one file from the first mirror that has it."""
    target.parent.mkdir(parents=True, exist_ok=True)
    part = _part(target)
    failures = []
    with open(part, "ab") as lock:
        if not locks.lock(lock, wait=False):
            raise DataError(
                "is being fetched by another process", "wait until it has finished", file=target
            )
        for url in wanted.urls:
            reason = _from_mirror(url, wanted, part, attempts, timeout, pause, progress)
            if reason is None:
                os.replace(part, target)
                return target
            failures.append(f"  {url}: {reason}")
        if part.stat().st_size == 0:
            part.unlink()
    raise DataError(
        f"no mirror provided {wanted.name}:\n" + "\n".join(failures), _by_hand(wanted.entry, raw)
    )


def _by_hand(entry: Entry, raw: str | Path) -> str:
    names = [
        f"the files {', '.join(archive.files)} (into a folder {archive.target})"
        if archive.files
        else archive.name
        for archive in entry.archives
    ] or [f"{entry.name}.zip"]
    folder = Path(raw).resolve()
    return f"get {' or '.join(names)} from {entry.page} with a browser and put it into {folder}"


class _WrongFileError(Exception):
    """The mirror's file cannot be the right one, so another request would not help."""


class _TryAgainError(Exception):
    """A problem that may be temporary."""


def _from_mirror(
    url: str,
    wanted: _Wanted,
    part: Path,
    attempts: int,
    timeout: float,
    pause: float,
    progress: ProgressCall,
) -> str | None:
    """Get the file from one mirror; return None, or the reason why it failed."""
    reason = "no request was made"
    for attempt in range(attempts):
        if attempt:
            time.sleep(min(pause * 2 ** (attempt - 1), _LONGEST_PAUSE))
        resumed = part.stat().st_size > 0
        try:
            _transfer(url, wanted, part, timeout, progress)
            problem = _differs(wanted, part)
            if problem is None:
                return None
            # A part from an earlier call or another mirror may be at fault, so try again from the
            # start.
            _empty(part)
            if not resumed:
                return problem
            reason = problem
        except _WrongFileError as error:
            return str(error)
        except _TryAgainError as error:
            reason = str(error)
        except requests.TooManyRedirects:
            return "too many redirects"
        except requests.RequestException as error:
            reason = f"{type(error).__name__} after {part.stat().st_size} bytes"
    return f"{reason} ({attempts} requests)"


def _transfer(
    url: str, wanted: _Wanted, part: Path, timeout: float, progress: ProgressCall
) -> None:
    """Append missing bytes to ``part`` until the connection ends."""
    have = part.stat().st_size
    if wanted.bytes is not None and have == wanted.bytes:
        return
    # Ask for the identity encoding, because digests are of the file, and ranges count sent bytes.
    headers = {"Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
    with requests.Session() as session:
        session.max_redirects = 10
        with session.get(url, headers=headers, stream=True, timeout=timeout) as response:
            _refuse_plain_http(wanted, [hop.url for hop in (*response.history, response)])
            if response.status_code == 416:
                _empty(part)
                raise _TryAgainError("the server refused the range")
            if response.status_code >= 500 or response.status_code == 429:
                raise _TryAgainError(f"HTTP {response.status_code}")
            if response.status_code not in (200, 206):
                raise _WrongFileError(f"HTTP {response.status_code}")
            resumes = response.status_code == 206 and _range_start(response) == have
            if not resumes:
                if response.status_code == 206:
                    _empty(part)
                    raise _TryAgainError("the server sent another range than the one requested")
                _empty(part)
                have = 0
            total = _total(response, have)
            if wanted.bytes is not None and total is not None and total != wanted.bytes:
                raise _WrongFileError(f"the file has {total} bytes, expected {wanted.bytes}")
            most = wanted.bytes or total
            if most is not None and shutil.disk_usage(part.parent).free < most - have:
                raise DataError(
                    f"{most - have} more bytes do not fit on the disk", "free some space", file=part
                )
            with open(part, "ab") as file:
                for block in response.iter_content(_BLOCK):
                    file.write(block)
                    have += len(block)
                    if wanted.bytes is not None and have > wanted.bytes:
                        file.truncate(0)
                        raise _WrongFileError(f"sent more than the expected {wanted.bytes} bytes")
                    progress(have, most, wanted.name)
            if most is not None and have < most:
                raise _TryAgainError(f"the connection ended after {have} of {most} bytes")


def _refuse_plain_http(wanted: _Wanted, urls: Iterable[str]) -> None:
    if not is_sha256(wanted.digest) and any(catalog.is_plain_http(url) for url in urls):
        raise _WrongFileError(
            "the address is plain http, and no sha256 is known that would protect the file"
        )


def _range_start(response: requests.Response) -> int | None:
    unit, _, rest = response.headers.get("Content-Range", "").partition(" ")
    start = rest.partition("-")[0]
    return int(start) if unit == "bytes" and start.isdigit() else None


def _total(response: requests.Response, have: int) -> int | None:
    """The size of the whole file, if the server states it."""
    of = response.headers.get("Content-Range", "").rpartition("/")[2]
    if of.isdigit():
        return int(of)
    length = response.headers.get("Content-Length", "")
    return have + int(length) if length.isdigit() else None


def _differs(wanted: _Wanted, part: Path) -> str | None:
    """The reason why ``part`` is not the file, or None."""
    size = part.stat().st_size
    if wanted.bytes is not None and size != wanted.bytes:
        return f"the file has {size} bytes, expected {wanted.bytes}"
    if wanted.digest is None:
        return _content_differs(wanted, part)
    with open(part, "rb") as file:
        digest = hashlib.file_digest(file, hash_like(wanted.digest, size)).hexdigest()
    if digest == wanted.digest:
        return None
    return f"its {kind_of(wanted.digest)} is {digest}, expected {wanted.digest}"


def _content_differs(wanted: _Wanted, part: Path) -> str | None:
    """The reason why the files in the archive ``part`` are not the right ones, or None."""
    if not wanted.entry.has_all_digests:
        return "the catalogue has no digest of it, so it cannot be verified"
    try:
        files = _verified(wanted.entry, part, wanted.name)
        if wanted.entry.extractor is None and not files.keys() <= wanted.entry.digests.keys():
            return "it has files of which the catalogue has no digest, so it cannot be verified"
    except DataError as error:
        member = (error.file or "").rpartition(f"{part.name}/")[2] if error.file else ""
        return f"{member or wanted.name}: {error.what}"
    return None


def _verified(entry: Entry, path: Path, name: str | None = None) -> dict[str, dict[str, Any]]:
    """The files of an archive called ``name``; raises DataError if they are not the right ones."""
    # Here, because it compiles loops, which those that fetch nothing need not wait for.
    from directrank.data.prepare import verified_files

    return verified_files(entry, open_archive(path, name))


def _empty(part: Path) -> None:
    os.truncate(part, 0)
