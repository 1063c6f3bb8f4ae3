"""Read a user's own LETOR or svmlight text, more leniently than the text of a known collection.

Query ids are any text. Lines without ``qid:`` belong to queries whose sizes are in a file beside
it, as LightGBM (``.query``) and XGBoost (``.group``) write them. Missing values, SVMrank's
``cost:`` and indices from 0 are accepted. What was ignored is said.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import numpy as np

from directrank.data.svmlight import TextFormat, index_range, open_text, parse
from directrank.system.errors import DataError

#: Endings of the file that holds a line per query: its number of documents.
COUNTS = (".query", ".group")
#: Other files that LightGBM and XGBoost read beside the data.
IGNORED = (".weight", ".init", ".position", ".base_margin")

_COMMENT = re.compile(rb"#[^\n]*")
_LABEL = re.compile(rb"(\s*\S+)(?:(\s+qid:)(\S+))?")
_COST = re.compile(rb"(?<=[ \t])(?:cost|sid):\S*")
_MISSING = re.compile(rb":(?:nan|na|n/a|null|none)(?=\s)", re.IGNORECASE)


@dataclass(frozen=True)
class Text:
    """The documents of a file, in its order.

    Attributes:
        features: float32 ``[N, F]``.
        labels: float64 ``[N]``.
        queries: ``[N]``, text.
        first_index: the number of the first feature, 0 or 1.
        missing: the number of missing values, which are 0 in ``features``.
        remarks: sentences on what was ignored.
    """

    features: np.ndarray
    labels: np.ndarray
    queries: np.ndarray
    first_index: int
    missing: int
    remarks: tuple[str, ...]


def read_text(path: Path) -> Text:
    """Read a file, which may be compressed with gzip.

    Raises:
        DataError: a line is malformed, there are no features, or the sizes of queries do not fit.
    """
    with open_text(path) as stream:
        first, last = index_range(stream, str(path))
    sizes = query_sizes(path)
    editor = _Editor(counted=sizes is not None)
    text_format = TextFormat(last - min(first, 1) + 1, first_index=min(first, 1))

    def refuse(line: int, _: bytes, reason: str) -> None:
        raise _line_error(path, line, reason, counted=sizes is not None)

    with open_text(path) as stream:
        blocks = list(parse(stream, text_format, str(path), on_error=refuse, edit=editor))
    if not blocks:
        raise DataError("has no rows", "give at least a few queries", file=path)
    if last < 0:
        raise DataError(
            "no line has a feature", "write features as index:value, such as 1:0.5", file=path
        )
    labels = np.concatenate([block.labels for block in blocks])
    if sizes is None:
        names = np.array([name.decode(errors="backslashreplace") for name in editor.queries])
        queries = names[np.concatenate([block.query_ids for block in blocks])]
    else:
        queries = of_sizes(sizes, len(labels), path)
    return Text(
        features=np.concatenate([block.features for block in blocks]),
        # Through its shortest decimal, 0.1 in single precision becomes 0.1 in double precision.
        labels=_unrounded(labels),
        queries=queries,
        first_index=text_format.first_index,
        missing=editor.missing,
        remarks=tuple(_remarks(path, first, editor.costs)),
    )


def query_sizes(path: Path) -> tuple[Path, np.ndarray] | None:
    """The file beside ``path`` that holds the sizes of its queries, and these, int64 ``[Q]``.

    Raises:
        DataError: there are two such files, or a line of it is not a whole number.
    """
    found = list(_beside(path, COUNTS))
    if not found:
        return None
    if len(found) > 1:
        raise DataError(
            f"both {found[0].name} and {found[1].name} hold numbers of documents per query",
            "keep one of them",
            file=path,
        )
    with open_text(found[0]) as stream:
        lines = stream.read().decode("utf-8-sig", "replace").split("\n")
    for number, line in enumerate(lines, 1):
        if line.strip() and not re.fullmatch(r"\s*[0-9]{1,15}\s*", line):
            raise DataError(
                f"'{line.strip()[:80]}' is not a number of documents",
                "give a line per query: how many consecutive lines of the data belong to it",
                file=found[0],
                line=number,
            )
    return found[0], np.array([int(line) for line in lines if line.strip()], np.int64)


def of_sizes(sizes: tuple[Path, np.ndarray], rows: int, path: Path) -> np.ndarray:
    """The query of each of ``rows`` rows, as the text of its number from 1, ``[N]``.

    Raises:
        DataError: the sizes do not add up to the number of rows.
    """
    file, numbers = sizes
    if numbers.sum() != rows:
        raise DataError(
            f"counts {numbers.sum()} documents, but {path.name} has {rows}",
            "give a line per query: how many consecutive lines of the data belong to it",
            file=file,
        )
    return np.repeat(np.arange(1, len(numbers) + 1).astype(str), numbers)


@dataclass
class _Editor:
    """Rewrites lines for the parser, which knows numbers of queries and ``NULL`` only."""

    counted: bool
    queries: dict[bytes, int] = field(default_factory=dict)
    missing: int = 0
    costs: bool = False

    def __call__(self, piece: bytearray) -> bytearray:
        lines = bytes(piece)
        if b"#" in lines:
            lines = _COMMENT.sub(b"", lines)
        if b"cost:" in lines or b"sid:" in lines:
            lines, found = _COST.subn(b"", lines)
            self.costs |= found > 0
        lines = b"\n".join(map(self._numbered, lines.split(b"\n")))
        if b":n" in lines.lower():
            lines, found = _MISSING.subn(b":NULL", lines)
            self.missing += found
        return bytearray(lines)

    def _numbered(self, line: bytes) -> bytes:
        match = _LABEL.match(line)
        if match is None:
            return line
        label, key, query = match.groups()
        if self.counted:
            # If the line has a 'qid:' as well, the parser refuses the second.
            return label + b" qid:0" + line[len(label) :]
        if query is None:
            return line
        number = self.queries.setdefault(query, len(self.queries))
        return label + key + b"%d" % number + line[match.end() :]


def _line_error(path: Path, line: int, reason: str, *, counted: bool) -> DataError:
    with open_text(path) as stream:
        found = next(islice(io.BufferedReader(stream), line - 1, None), b"")
    text = found.decode(errors="backslashreplace").rstrip("\r\n")
    remedy = "correct the line"
    if "no 'qid:'" in reason:
        remedy = (
            "write the query after the label, such as 'qid:7', or the numbers of documents per "
            f"query into {path.name}{COUNTS[0]}"
        )
    elif "label" in reason:
        remedy = "correct the line; if the file is a table, let its name end in .csv or .tsv"
    elif "wrong place" in reason and counted:
        reason = f"there is a 'qid:', although a file beside {path.name} counts the documents"
        remedy = "remove that file (.query or .group), or every 'qid:'"
    elif "query id" in reason:
        reason = "there is no query id after 'qid:'"
    elif "single precision" in reason:
        remedy = "scale or clip the values"
    return DataError(f"{reason}: {text[:160]!r}", remedy, file=path, line=line)


def _beside(path: Path, endings: tuple[str, ...]) -> Iterator[Path]:
    bare = path.with_suffix("") if path.suffix.lower() == ".gz" else path
    for ending in endings:
        for packed in ("", ".gz"):
            file = bare.with_name(bare.name + ending + packed)
            if file.is_file():
                yield file


def _remarks(path: Path, first: int, costs: bool) -> Iterator[str]:
    if first == 0:
        yield "features are counted from 0, because there is one with the index 0"
    if costs:
        yield "'cost:' and 'sid:' are ignored"
    for file in _beside(path, IGNORED):
        yield f"{file.name} is ignored, because all documents have the same weight here"


def _unrounded(labels: np.ndarray) -> np.ndarray:
    values, place = np.unique(labels, return_inverse=True)
    return np.array([float(str(value)) for value in values])[place]
