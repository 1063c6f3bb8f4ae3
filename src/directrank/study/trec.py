"""Runs and judgements in TREC's text formats, as other evaluation tools read and write them.

A run has a line ``query Q0 document rank score tag`` per document, judgements (*qrels*) a line
``query 0 document label``. Documents of prepared data have no names: here their id is the query's
and their place in its list, which is the place of their line in the collection's file, from 1 on.
"""

from __future__ import annotations

import gzip
import math
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np

from directrank.lists.packed import RankedLists
from directrank.system.errors import DataError
from directrank.system.io import atomic_path

Value = TypeVar("Value", int, float)

#: What LETOR writes before the number of a query, which is left out.
PREFIX = "qid:"

_GZIP = b"\x1f\x8b"
_RUN = "query Q0 document rank score tag"
_QRELS = "query 0 document label"


@dataclass(frozen=True)
class Run:
    """The rankings of a run.

    Attributes:
        rankings: query → its documents, the best first.
        tied: the queries that have documents with the same score.
    """

    rankings: dict[str, list[str]]
    tied: set[str]


def read_run(path: str | Path) -> Run:
    """Read a run: text, or text packed by gzip.

    Ranks are by score, as in trec_eval: the column of ranks is not looked at, and documents with
    the same score are ordered by their ids, the last in the alphabet first. Blank lines, and lines
    that begin with ``#``, are passed over. A query's lines need not lie together.

    Raises:
        DataError: no such file, a line of another form, a score that is no finite number, or a
            document that a query has twice; with file and line.
    """
    scores: dict[str, dict[str, float]] = {}
    for number, (query, _, document, _, score, _) in _rows(path, _RUN):
        try:
            value = float(score)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise DataError(
                f"the score '{score}' is no finite number",
                "the fifth field of a line is the score",
                file=path,
                line=number,
            )
        _add(scores, query, document, value, path, number)
    return Run(
        {query: _ranked(of_query) for query, of_query in scores.items()},
        {query for query, own in scores.items() if len(set(own.values())) < len(own)},
    )


def read_qrels(path: str | Path) -> dict[str, dict[str, int]]:
    """Read judgements: query → document → label; text, or text packed by gzip.

    A label below 0, which some collections give to spam, is read as 0.

    Raises:
        DataError: no such file, a line of another form, a label that is no whole number, or a
            document that is judged twice; with file and line.
    """
    judged: dict[str, dict[str, int]] = {}
    for number, (query, _, document, label) in _rows(path, _QRELS):
        try:
            value = int(label)
        except ValueError:
            raise DataError(
                f"the label '{label}' is no whole number",
                "the fourth field of a line is the label",
                file=path,
                line=number,
            ) from None
        _add(judged, query, document, max(value, 0), path, number)
    return judged


def write_run(
    path: str | Path,
    ranked: Sequence[tuple[RankedLists, np.ndarray]],
    tag: str,
    header: str = "",
) -> None:
    """Write a run of prepared lists.

    The order is that of the study: by score, ties in the order of the lists. Evaluation tools read
    scores in single precision and break ties in their own ways, so the scores that are written are
    the single precision numbers next to the model's that fall strictly within each query.

    Args:
        path: the file.
        ranked: lists, each with the scores of its documents, ``[N]``; such as the test sets of all
            folds, which have no query in common.
        tag: the run's name in every line, without white space.
        header: text to begin with, whose every line begins with ``#``.

    Raises:
        DataError: scores of another number, or one that is not finite in single precision.
    """
    with atomic_path(path) as temporary, open(temporary, "w", encoding="utf-8") as file:
        file.write(header)
        for lists, scores in ranked:
            narrow = _narrow(lists, scores)
            for query, begin, end in _queries(lists):
                order, falling = _falling(scores[begin:end], narrow[begin:end])
                file.writelines(
                    f"{query} Q0 {_document(query, place)} {rank} {score:.9g} {tag}\n"
                    for rank, (place, score) in enumerate(
                        zip(order.tolist(), falling.tolist(), strict=True), 1
                    )
                )


def write_qrels(path: str | Path, parts: Sequence[RankedLists]) -> None:
    """Write the judgements of prepared lists; documents are called as in :func:`write_run`."""
    with atomic_path(path) as temporary, open(temporary, "w", encoding="utf-8") as file:
        for lists in parts:
            for query, begin, end in _queries(lists):
                file.writelines(
                    f"{query} 0 {_document(query, place)} {label:.0f}\n"
                    for place, label in enumerate(lists.labels[begin:end].tolist())
                )


def lines_of(path: str | Path) -> Iterator[tuple[int, str]]:
    """Number, from 1, and text of every line of a file, unpacked where gzip has packed it.

    Raises:
        DataError: no such file, or one that is damaged or no text.
    """
    path = Path(path)
    if not path.is_file():
        raise DataError("there is no such file", "check the path", file=path)
    try:
        with open(path, "rb") as raw:
            packed = raw.read(len(_GZIP)) == _GZIP
        with (gzip.open if packed else open)(path, "rt", encoding="utf-8-sig") as file:
            yield from enumerate(file, 1)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"is damaged: {error}", "get it again", file=path) from None
    except UnicodeDecodeError as error:
        raise DataError(f"is no text: {error}", "name a text file in UTF-8", file=path) from None


def _rows(path: str | Path, form: str) -> Iterator[tuple[int, list[str]]]:
    """Number and fields of every line, the query's without its prefix."""
    fields = len(form.split())
    for number, line in lines_of(path):
        row = line.split()
        if not row or row[0].startswith("#"):
            continue
        if len(row) != fields:
            raise DataError(
                f"has {len(row)} fields, expected {fields}: {form}",
                "separate fields by blanks or tabs, and have none within a field",
                file=path,
                line=number,
            )
        row[0] = row[0].removeprefix(PREFIX)
        yield number, row


def _add(
    queries: dict[str, dict[str, Value]],
    query: str,
    document: str,
    value: Value,
    path: str | Path,
    line: int,
) -> None:
    """Note what a line says of a document, of which no line has said anything before."""
    of_query = queries.setdefault(query, {})
    if document in of_query:
        raise DataError(
            f"query {query} has document {document} a second time",
            "keep one of the lines",
            file=path,
            line=line,
        )
    of_query[document] = value


def _ranked(scores: dict[str, float]) -> list[str]:
    by_id = sorted(scores, reverse=True)
    return sorted(by_id, key=lambda document: -scores[document])


def _queries(lists: RankedLists) -> Iterator[tuple[int, int, int]]:
    """Id, first row and end of each query."""
    offsets = lists.offsets.tolist()
    return zip(np.asarray(lists.query_ids).tolist(), offsets, offsets[1:], strict=False)


def _document(query: int, place: int) -> str:
    return f"{query}-{place + 1}"


def _narrow(lists: RankedLists, scores: np.ndarray) -> np.ndarray:
    """The scores in single precision, where they are as many as there are documents, and finite."""
    if np.shape(scores) != (lists.n_documents,):
        raise DataError(
            f"{np.size(scores)} scores of {lists.n_documents} documents",
            "give one score for each document, in the order of the lists",
        )
    with np.errstate(over="ignore"):
        narrow = np.asarray(scores).astype(np.float32)
    if not np.isfinite(narrow).all():
        raise DataError("a score is no finite number in single precision", "scale the scores")
    return narrow


def _falling(scores: np.ndarray, narrow: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The order of a query's documents, and the scores in it, each below the one before."""
    order = np.argsort(-np.asarray(scores, np.float64), kind="stable")
    falling = narrow[order]
    for place in range(1, len(falling)):
        if falling[place] >= falling[place - 1]:
            falling[place] = np.nextafter(falling[place - 1], np.float32(-np.inf))
    return order, falling
