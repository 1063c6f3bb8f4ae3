"""Pages in which a program writes the part between two marks."""

from __future__ import annotations

from pathlib import Path

from directrank.system.errors import DataError
from directrank.system.io import write_text


def with_part(text: str, begin: str, end: str, part: str) -> str:
    """The ``text`` with ``part`` between the first ``begin`` and the ``end`` that follows it.

    Raises:
        ValueError: one of the marks is missing.

    >>> with_part("a <!-- b --> old <!-- e --> c", "<!-- b -->", "<!-- e -->", " new ")
    'a <!-- b --> new <!-- e --> c'
    """
    head, has_begin, rest = text.partition(begin)
    _, has_end, tail = rest.partition(end)
    if not (has_begin and has_end):
        raise ValueError(f"no {begin!r} followed by {end!r}")
    return f"{head}{begin}{part}{end}{tail}"


def write_part(page: str | Path, begin: str, end: str, part: str) -> None:
    """Write ``part`` between the marks of a page.

    Raises:
        DataError: the page has no such marks.
    """
    path = Path(page)
    try:
        text = with_part(path.read_text(encoding="utf-8"), begin, end, part)
    except ValueError:
        raise DataError(
            "the page lacks the marks between which to write",
            f"add the lines {begin.strip()} and {end.strip()} where the text belongs",
            file=path,
        ) from None
    write_text(path, text)
