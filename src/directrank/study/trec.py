"""Runs and judgements in TREC's text formats, which other evaluation tools read and write.

A run has a line ``query Q0 document rank score tag`` per document, judgements (*qrels*) a line
``query 0 document label``. Documents of prepared data have no names, so their ids consist of the
query's and their position in its list, which is that of their line in the collection's file,
counted from 1.

The header of a run file records its provenance (ir_metadata, version 0.1): Breuer, Keller and
Schaer, "ir_metadata: An extensible metadata schema for IR experiments", SIGIR 2022
(https://www.ir-metadata.org): YAML in comments, in six parts, called PRIMAD for their initials
(platform, research goal, implementation, method, actor, data).
"""

from __future__ import annotations

import gzip
import math
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import yaml

from directrank.lists.packed import RankedLists
from directrank.system.errors import DataError
from directrank.system.io import atomic_path

Value = TypeVar("Value", int, float)

#: LETOR's prefix of a query's number, which is left out.
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
    """Read a run from text, which may be compressed with gzip.

    Ranks are by score, as in trec_eval: the column of ranks is ignored, and documents with the same
    score are ordered by their ids, the last in the alphabet first. Blank lines, and lines that
    begin with ``#``, are skipped. A query's lines need not be contiguous.

    Raises:
        DataError: the file does not exist, a line has another form, a score is not a finite number,
            or a query has a document twice; the message names file and line.
    """
    scores: dict[str, dict[str, float]] = {}
    for number, (query, _, document, _, score, _) in _rows(path, _RUN):
        try:
            value = float(score)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise DataError(
                f"the score '{score}' is not a finite number",
                "write the score as the fifth field of a line",
                file=path,
                line=number,
            )
        _add(scores, query, document, value, path, number)
    return Run(
        {query: _ranked(of_query) for query, of_query in scores.items()},
        {query for query, own in scores.items() if len(set(own.values())) < len(own)},
    )


def read_qrels(path: str | Path) -> dict[str, dict[str, int]]:
    """Read judgements from text, which may be compressed with gzip: query → document → label.

    Labels below 0, which some collections use for spam, are read as 0.

    Raises:
        DataError: the file does not exist, a line has another form, a label is not a whole number,
            or a document is judged twice; the message names file and line.
    """
    judged: dict[str, dict[str, int]] = {}
    for number, (query, _, document, label) in _rows(path, _QRELS):
        try:
            value = int(label)
        except ValueError:
            raise DataError(
                f"the label '{label}' is not a whole number",
                "write the label as the fourth field of a line",
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

    The order is that of the study: by score, with ties in the order of the lists. Evaluation tools
    read scores in single precision and break ties in their own ways, so the written scores are the
    single-precision numbers nearest to the model's that strictly decrease within each query.

    Args:
        path: the file.
        ranked: lists, each with the scores of its documents, ``[N]``, such as the test sets of all
            folds, which share no query.
        tag: the run's name in every line, without white space.
        header: text to write first; every line begins with ``#``.

    Raises:
        DataError: the number of scores is wrong, or a score is not finite in single precision.
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
    """Write the judgements of prepared lists; documents have the ids of :func:`write_run`."""
    with atomic_path(path) as temporary, open(temporary, "w", encoding="utf-8") as file:
        for lists in parts:
            for query, begin, end in _queries(lists):
                file.writelines(
                    f"{query} 0 {_document(query, place)} {label:.0f}\n"
                    for place, label in enumerate(lists.labels[begin:end].tolist())
                )


def lines_of(path: str | Path) -> Iterator[tuple[int, str]]:
    """The number, from 1, and text of every line of a file, which may be compressed with gzip.

    Raises:
        DataError: the file does not exist, is damaged or is not text.
    """
    path = Path(path)
    if not path.is_file():
        raise DataError("the file does not exist", "check the path", file=path)
    try:
        with open(path, "rb") as raw:
            packed = raw.read(len(_GZIP)) == _GZIP
        with (gzip.open if packed else open)(path, "rt", encoding="utf-8-sig") as file:
            yield from enumerate(file, 1)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"is damaged: {error}", "get it again", file=path) from None
    except UnicodeDecodeError as error:
        raise DataError(f"is not text: {error}", "name a text file in UTF-8", file=path) from None


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
                "separate fields by blanks or tabs, and use none within a field",
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
    """Record a line's value of a document; raise if there is one already."""
    of_query = queries.setdefault(query, {})
    if document in of_query:
        raise DataError(
            f"query {query} has document {document} twice",
            "keep only one of the lines",
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
    """The scores in single precision; raise unless there is a finite one for each document."""
    if np.shape(scores) != (lists.n_documents,):
        raise DataError(
            f"there are {np.size(scores)} scores for {lists.n_documents} documents",
            "give one score for each document, in the order of the lists",
        )
    with np.errstate(over="ignore"):
        narrow = np.asarray(scores).astype(np.float32)
    if not np.isfinite(narrow).all():
        raise DataError("a score is not finite in single precision", "scale the scores")
    return narrow


def _falling(scores: np.ndarray, narrow: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The order of a query's documents, and their scores in it, strictly decreasing."""
    order = np.argsort(-np.asarray(scores, np.float64), kind="stable")
    falling = narrow[order]
    for place in range(1, len(falling)):
        if falling[place] >= falling[place - 1]:
            falling[place] = np.nextafter(falling[place - 1], np.float32(-np.inf))
    return order, falling


#: Sections of a run's specification that describe its method.
_METHOD = ("model", "loss", "training", "normalisation", "selection")


def header(
    tag: str,
    fits: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]],
    trial: int,
    qrels: str,
    source: str,
    measures: Sequence[str],
) -> str:
    """The header of an exported run, a comment in every line.

    Args:
        tag: the run's name in its lines.
        fits: for each fold, the run's record (:attr:`directrank.study.results.RunResult.record`)
            and the specification of the chosen candidate.
        trial: number of the repetition.
        qrels: name of the file of judgements beside it.
        source: the origin of the collection; empty if it is unknown.
        measures: the metrics by which the run was evaluated.
    """
    record = fits[0][0]
    environment = record["environment"]
    collection = {"name": record["data"]["title"], **({"source": source} if source else {})}
    libraries = {"directrank": environment["directrank"], **environment["packages"]}
    cpu = {"model": environment["processor"], "number of cores": environment["cores"]}
    content = {
        "schema-version": 0.1,
        "run-version": 1.0,
        "tag": tag,
        "platform": {
            "hardware": {"cpu": cpu},
            "operating system": {"kernel": environment["platform"]},
            "software": {
                "libraries": {
                    "python": [f"{name}=={version}" for name, version in libraries.items()]
                }
            },
        },
        "research goal": {"evaluation": {"reported measures": list(measures)}},
        "implementation": {"source": {"lang": ["python"], "commit": environment["revision"]}},
        "method": {
            "automatic": True,
            "score ties": "by the order of the collection's lists; the scores below have none",
            "retrieval": [
                {
                    "name": one["name"],
                    "method": f"directrank.{candidate['learner']}",
                    "params": {
                        **{key: candidate[key] for key in _METHOD if key in candidate},
                        "fold": candidate["fold"],
                        "trial": trial,
                    },
                }
                for one, candidate in fits
            ],
        },
        "actor": {"role": "reproducer"},
        "data": {
            "test collection": {**collection, "qrels": qrels},
            "training data": [dict(collection)],
        },
    }
    text = yaml.safe_dump(content, sort_keys=False, width=4096)
    lines = ["ir_metadata.start", *text.splitlines(), "ir_metadata.end"]
    return "".join(f"# {line}\n" for line in lines)
