"""Read LETOR/svmlight text into arrays: streaming, multi-threaded, exact and strict.

A line is ``label qid:Q i:v i:v ... # comment``. Accepted beyond that: CRLF, blank lines, lines that
are only a comment, any bytes in comments (latin-1 among them), features that are absent (0) or out
of order, labels written as floats, scientific notation, ``NULL`` for an absent value (0), a last
line without newline, a byte-order mark. A *table* line is ``label Q v v ...`` with every feature.

Numbers equal ``numpy.float32(float(text))`` to the last bit, as in scikit-learn's reader.
Everything else is an error with file, line number and the offending text, never a guess: a value
that is not a finite number or does not fit in float32 (unless ``clip`` is given), an index below
the first or above ``n_features``, an index that occurs twice, a missing query id, a query whose
lines are not contiguous.
"""

from __future__ import annotations

import gzip
import io
import zlib
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Literal, NamedTuple

import numpy as np

from directrank.lists.packed import RankedLists
from directrank.system.compiling import compiled
from directrank.system.errors import DataError

#: Bytes of text that one thread parses at a time.
PIECE = 2 << 20
#: No valid line of any ranking data set comes near this length.
LONGEST_LINE = 16 << 20
#: Limits of files whose number of features is not declared: zeros are stored, too.
HIGHEST_INDEX = 100_000
MOST_VALUES = 1 << 32

LineFormat = Literal["svmlight", "table"]
ErrorHandler = Callable[[int, bytes, str], None]
ByteStream = io.RawIOBase | io.BufferedIOBase


@dataclass(frozen=True)
class TextFormat:
    """How to read lines.

    Attributes:
        n_features: F, the number of columns of the result.
        lines: ``svmlight``, or ``table`` for lines ``label qid v1 ... vF``.
        first_index: the index of the first feature in the file, 0 or 1.
        clip: values are limited to ``[-clip, clip]`` as float64, before they become float32.
    """

    n_features: int
    lines: LineFormat = "svmlight"
    first_index: int = 1
    clip: float | None = None


class Block(NamedTuple):
    """Consecutive documents of a file, n of them."""

    features: np.ndarray
    """float32 ``[n, F]``"""
    labels: np.ndarray
    """float32 ``[n]``"""
    query_ids: np.ndarray
    """int64 ``[n]``"""
    lines: np.ndarray
    """int64 ``[n]``, the line of each document, counted from 1"""


def read_svmlight(
    source: str | Path,
    n_features: int | None = None,
    *,
    lines: LineFormat = "svmlight",
    first_index: int = 1,
    clip: float | None = None,
    split_queries: Literal["error", "merge"] = "error",
    quarantine: str | Path | None = None,
    threads: int = 2,
) -> RankedLists:
    r"""Read a whole file into memory.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "train.txt"
    ...     _ = path.write_text("2 qid:7 1:0.5 3:1\n0 qid:7 2:0.25 # a comment\n")
    ...     lists = read_svmlight(path)
    >>> lists.features
    array([[0.5 , 0.  , 1.  ],
           [0.  , 0.25, 0.  ]], dtype=float32)
    >>> lists.labels.tolist(), lists.query_ids.tolist(), lists.lengths.tolist()
    ([2.0, 0.0], [7], [2])

    Args:
        source: the text file, which may be compressed with gzip.
        n_features: columns of the result; if None, the file is read twice, the first time to find
            its largest feature index, which may be 100 000 at most.
        lines, first_index, clip: see :class:`TextFormat`.
        split_queries: what to do with a query whose lines are not contiguous: ``error``, or
            ``merge`` them at the place of its first line. Nothing is guessed, because two
            concatenated files that use the same number for different queries look the same.
        quarantine: malformed lines are written to this file, each below its reason, instead of
            raising.
        threads: how many threads parse.

    Raises:
        DataError: at the first malformed line, with its number and text.
    """
    source = Path(source)
    if n_features is None:
        with open_text(source) as stream:
            n_features = max(0, index_range(stream, str(source))[1] - first_index + 1)
    blocks, queries = [], QueryIndex(str(source), merge=split_queries == "merge")
    with open_text(source) as stream, Quarantine(quarantine) as bin_:
        text_format = TextFormat(n_features, lines, first_index, clip)
        handler = bin_.handler(str(source))
        for block in parse(stream, text_format, str(source), threads=threads, on_error=handler):
            queries.add(block)
            blocks.append(block)
    features = [block.features for block in blocks]
    labels = [block.labels for block in blocks]
    lists = RankedLists(
        np.concatenate(features) if features else np.empty((0, n_features), np.float32),
        np.concatenate(labels) if labels else np.empty(0, np.float32),
        queries.offsets(),
        queries.query_ids(),
    )
    rows = queries.merged_rows()
    if rows is None:
        return lists
    offsets, query_ids = queries.merged()
    return RankedLists(lists.features[rows], lists.labels[rows], offsets, query_ids)


def open_text(path: str | Path) -> ByteStream:
    """Open text as bytes: gzip is unpacked, and UTF-16 that says so becomes UTF-8.

    Raises:
        DataError: the file is missing, cannot be read or is damaged.
    """
    try:
        stream: ByteStream = open(path, "rb", buffering=0)  # noqa: SIM115
        if stream.read(2) == b"\x1f\x8b":
            stream.close()
            stream = gzip.open(path)  # noqa: SIM115
        stream.seek(0)
        mark = stream.read(2)
        stream.seek(0)
        if mark in (b"\xff\xfe", b"\xfe\xff"):
            with stream:
                return io.BytesIO(stream.read().decode("utf-16").encode())
        return stream
    except DAMAGED as error:
        raise damaged(error, path) from None
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", "check the path", file=path) from error


DAMAGED = (EOFError, gzip.BadGzipFile, zlib.error, UnicodeDecodeError)


def damaged(error: Exception, path: str | Path) -> DataError:
    """The error for compressed or encoded text that ends early or is not what it says."""
    return DataError(f"is damaged: {error}", "copy or write the file again", file=path)


def parse(
    stream: ByteStream,
    text_format: TextFormat,
    where: str,
    *,
    threads: int = 2,
    piece: int = PIECE,
    on_error: ErrorHandler | None = None,
    edit: Callable[[bytearray], bytearray] | None = None,
) -> Iterator[Block]:
    """Parse ``stream`` into blocks, in the order of the file.

    Memory is bounded by a small multiple of ``threads * piece``, whatever the length of the stream.

    Args:
        stream: bytes, read once from start to end by ``readinto``.
        text_format: how lines are to be read.
        where: the name for error messages.
        threads: the number of threads that parse; another one reads.
        piece: bytes per thread at a time.
        on_error: called with the line number, text and reason for a malformed line, which is then
            skipped; without it, such a line raises.
        edit: what to make of whole lines before they are parsed; it keeps their number.

    Raises:
        DataError: at the first malformed line.
    """
    line = 1
    with ThreadPoolExecutor(threads) as workers, ThreadPoolExecutor(1) as reader:
        chunks = _chunks(stream, piece, where)
        if edit is not None:
            chunks = map(edit, chunks)
        next_chunk: Future | None = reader.submit(next, chunks, None)
        pending: deque[Future[_Piece]] = deque()
        try:
            while pending or next_chunk is not None:
                # Two pieces per thread are in progress, so that no thread waits for the consumer.
                while next_chunk is not None and len(pending) < 2 * threads:
                    chunk = next_chunk.result()
                    if chunk is None:
                        next_chunk = None
                        break
                    next_chunk = reader.submit(next, chunks, None)
                    pending.append(workers.submit(_parse_piece, chunk, text_format))
                if not pending:
                    continue
                parsed = pending.popleft().result()
                for bad in parsed.bad:
                    text = bytes(parsed.text[bad.start : bad.stop]).rstrip(b"\r\n")
                    if on_error is None:
                        raise _line_error(bad.reason, text, where, line + bad.line, text_format)
                    on_error(line + bad.line, text, bad.reason)
                if len(parsed.labels):
                    lines = parsed.lines + line
                    yield Block(parsed.features, parsed.labels, parsed.query_ids, lines)
                line += parsed.n_lines
        finally:
            for future in pending:
                future.cancel()


def index_range(stream: ByteStream, where: str) -> tuple[int, int]:
    """The smallest and the largest index of a feature in ``stream``; (0, -1) if there is none.

    Raises:
        DataError: the largest index, or its product with the number of lines, exceeds the limits.
    """
    smallest, largest, lines, line = 1 << 40, -1, 0, 0
    for chunk in _chunks(stream, PIECE, where):
        buffer = np.frombuffer(chunk, np.uint8)
        low, high, place = _index_range(buffer)
        smallest = min(smallest, int(low))
        if high > largest:
            largest, line = int(high), lines + 1 + _count_newlines(buffer[:place])
        lines += _count_newlines(buffer)
    if largest > HIGHEST_INDEX or lines * largest > MOST_VALUES:
        raise DataError(
            f"the feature index {largest} is too large: zeros are stored, too, and {lines} lines "
            f"would hold {lines * largest:.2g} values",
            f"renumber the features from 1 without gaps, up to {HIGHEST_INDEX} at most",
            file=where,
            line=line,
        )
    return (smallest, largest) if largest >= 0 else (0, -1)


class QueryIndex:
    """Collects where queries begin from blocks, and detects queries that are in two places."""

    def __init__(self, where: str, merge: bool = False) -> None:
        self.where = where
        self.merge = merge
        self.n_documents = 0
        self._starts: list[int] = []
        self._ids: list[int] = []
        self._first: dict[int, int] = {}
        self.split: set[int] = set()

    def add(self, block: Block) -> None:
        """Record the queries of the next block.

        Raises:
            DataError: a query occurs again after another one, unless queries are merged.
        """
        ids = block.query_ids
        starts = np.concatenate([[0], np.flatnonzero(ids[1:] != ids[:-1]) + 1])
        if self._ids and ids[0] == self._ids[-1]:
            starts = starts[1:]
        for start in starts.tolist():
            query, line = int(ids[start]), int(block.lines[start])
            if query in self._first:
                if not self.merge:
                    raise DataError(
                        f"query {query} continues here, but began at line {self._first[query]} and "
                        "other queries are in between",
                        "put each query's lines together, or set 'split_queries: merge' if the two "
                        "places really are one query",
                        file=self.where,
                        line=line,
                    )
                self.split.add(query)
            else:
                self._first[query] = line
            self._starts.append(self.n_documents + start)
            self._ids.append(query)
        self.n_documents += len(ids)

    def offsets(self) -> np.ndarray:
        """int64 ``[R + 1]`` for the R runs of equal query ids; R = Q where no query is split."""
        return np.array([*self._starts, self.n_documents], dtype=np.int64)

    def query_ids(self) -> np.ndarray:
        """int64 ``[R]``, the query of each run."""
        return np.array(self._ids, dtype=np.int64)

    def merged_rows(self) -> np.ndarray | None:
        """The order of rows, int64 ``[N]``, that joins split queries; None if none is split."""
        if not self.split:
            return None
        place = {query: position for position, query in enumerate(self._first)}
        runs = np.array([place[query] for query in self._ids])
        return np.argsort(np.repeat(runs, np.diff(self.offsets())), kind="stable")

    def merged(self) -> tuple[np.ndarray, np.ndarray]:
        """Offsets and query ids of the rows in the order of :meth:`merged_rows`."""
        lengths = dict.fromkeys(self._first, 0)
        for query, length in zip(self._ids, np.diff(self.offsets()).tolist(), strict=True):
            lengths[query] += length
        offsets = np.concatenate([[0], np.cumsum(list(lengths.values()))]).astype(np.int64)
        return offsets, np.array(list(lengths), dtype=np.int64)


@dataclass
class Quarantine:
    """A file for malformed lines, created with the first one; there is none if ``path`` is None."""

    path: str | Path | None
    count: int = 0
    _file: IO[bytes] | None = field(default=None, repr=False)

    def __enter__(self) -> Quarantine:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def handler(self, where: str) -> ErrorHandler | None:
        """A handler for :func:`parse` of the file named ``where``; None without a path."""
        path = self.path
        if path is None:
            return None

        def put(line: int, text: bytes, reason: str) -> None:
            if self._file is None:
                self._file = open(path, "wb")  # noqa: SIM115 closed by __exit__
            self.count += 1
            self._file.write(f"# {where}:{line}: {reason}\n".encode() + text + b"\n")

        return put


# Codes of the kernels for malformed lines; 0 means a valid line.
_HARD_FULL = -1
_REASONS = {
    1: "the label is not a number",
    2: "there is no 'qid:' after the label",
    3: "the query id is not a whole number below 2^63",
    4: "a feature is not of the form index:value",
    5: "a feature's value is not a finite number",
    6: "a value does not fit in single precision",
    7: "a feature index is below the first",
    8: "a feature index is larger than the number of features",
    9: "a feature index occurs twice",
    10: "'qid:' occurs in the wrong place",
    11: "the number of values is not the number of features",
    12: "there is no query id after the label",
}


def _remedy(reason: str, text_format: TextFormat) -> str:
    if reason == _REASONS[6]:
        return "set 'clip', for instance to 1e6, if such values stand for missing ones"
    if reason == _REASONS[7] and text_format.first_index == 1:
        return "set 'first_index' to 0 if the file counts features from 0"
    if reason in (_REASONS[8], _REASONS[11]):
        return f"{text_format.n_features} features are declared: correct the file or 'features'"
    return "correct the line, or send such lines to a file: --quarantine FILE (quarantine=FILE)"


def _line_error(
    reason: str, text: bytes, where: str, line: int, text_format: TextFormat
) -> DataError:
    shown = text.decode("latin-1")
    shown = shown if len(shown) <= 160 else shown[:160] + " …"
    return DataError(f"{reason}: {shown!r}", _remedy(reason, text_format), file=where, line=line)


def _chunks(stream: ByteStream, piece: int, where: str) -> Iterator[bytearray]:
    """Pieces of ``stream`` of about ``piece`` bytes that end at the end of a line."""
    rest = b""
    first = True
    while True:
        # Text is read into the buffer in which it is parsed, since copying would add a tenth of the
        # work.
        chunk = bytearray(len(rest) + piece)
        chunk[: len(rest)] = rest
        with memoryview(chunk) as view:
            try:
                read = stream.readinto(view[len(rest) :])
            except DAMAGED as error:
                raise damaged(error, where) from None
        del chunk[len(rest) + read :]
        if not read:
            break
        if first and chunk.startswith(b"\xef\xbb\xbf"):
            del chunk[:3]
        first = False
        end = chunk.rfind(b"\n") + 1
        rest = bytes(chunk[end:])
        del chunk[end:]
        if chunk:
            yield chunk
        elif len(rest) > LONGEST_LINE:
            raise DataError(
                f"a line is longer than {LONGEST_LINE >> 20} MiB",
                "this is not LETOR text; check the content of the archive",
                file=where,
            )
    if rest:
        yield bytearray(rest + b"\n")


class _BadLine(NamedTuple):
    line: int
    start: int
    stop: int
    reason: str


class _Piece(NamedTuple):
    text: bytearray
    n_lines: int
    features: np.ndarray
    labels: np.ndarray
    query_ids: np.ndarray
    lines: np.ndarray
    bad: list[_BadLine]


def _parse_piece(text: bytearray, text_format: TextFormat) -> _Piece:
    """Parse whole lines. The kernel stops at a malformed line and is restarted after it."""
    buffer = np.frombuffer(text, np.uint8)
    n_lines = _count_newlines(buffer)
    features = np.empty((n_lines, text_format.n_features), np.float32)
    labels = np.empty(n_lines, np.float32)
    query_ids = np.empty(n_lines, np.int64)
    lines = np.empty(n_lines, np.int64)
    seen = np.full(text_format.n_features, -1, np.int64)
    # There is always room for every value of one line; otherwise no line is begun.
    hard = np.empty((1024 + text_format.n_features, 4), np.int64)
    state = np.zeros(4, np.int64)  # position, line, row, number of hard cases
    clip = np.inf if text_format.clip is None else text_format.clip
    bad: list[_BadLine] = []
    while state[0] < len(text):
        code = _parse_lines(
            buffer,
            text_format.lines == "table",
            text_format.first_index,
            clip,
            features,
            labels,
            query_ids,
            lines,
            seen,
            hard,
            state,
        )
        _settle_hard_cases(text, hard, state, clip, features, labels)
        if code > 0:
            start = int(state[0])
            stop = text.index(b"\n", start) + 1
            bad.append(_BadLine(int(state[1]), start, stop, _REASONS[code]))
            state[0], state[1] = stop, state[1] + 1
    rows = int(state[2])
    return _Piece(
        text, n_lines, features[:rows], labels[:rows], query_ids[:rows], lines[:rows], bad
    )


def _settle_hard_cases(
    text: bytearray,
    hard: np.ndarray,
    state: np.ndarray,
    clip: float,
    features: np.ndarray,
    labels: np.ndarray,
) -> None:
    """Let Python read the numbers that the kernel could not round with certainty."""
    for row, column, start, stop in hard[: int(state[3])].tolist():
        value = min(max(float(text[start:stop]), -clip), clip)
        if column < 0:
            labels[row] = value
        else:
            features[row, column] = value
    state[3] = 0


# Powers of ten, each correctly rounded; 10^-308 … 10^308.
_POWERS = np.array([float(f"1e{exponent}") for exponent in range(-308, 309)])
_MARGIN = 2.0**-50
_EXACT_MANTISSA = np.uint64(1 << 53)
_LAST_FULL_MANTISSA = np.uint64(10**18)
_TEN = np.uint64(10)


@compiled
def _count_newlines(buffer):
    count = 0
    for byte in buffer:
        count += byte == 10
    return count


@compiled
def _index_range(buffer):
    """The smallest and largest number before a colon outside comments, and where the latter is."""
    smallest = 1 << 40
    largest = -1
    place = 0
    number = -1
    comment = False
    for position in range(len(buffer)):
        byte = buffer[position]
        if byte == 10:
            comment = False
            number = -1
        elif comment:
            continue
        elif 48 <= byte <= 57:
            number = min(max(number, 0) * 10 + (byte - 48), 1 << 40)
        elif byte == 58:
            if number >= 0:
                smallest = min(smallest, number)
                if number > largest:
                    largest = number
                    place = position
            number = -1
        else:
            comment = byte == 35
            number = -1
    return smallest, largest, place


@compiled
def _is_blank(byte):
    return byte == 32 or byte == 9 or 11 <= byte <= 13


@compiled
def _ends_token(byte):
    return byte == 32 or 9 <= byte <= 13 or byte == 35


@compiled
def _number(buffer, p):
    """Read the number at ``p``: (status, value, position after it).

    Status 0: not a number; 1: the value is correctly rounded; 2: it is within 2^-51 of the number,
    relatively; 3: too near the limits of double precision to say.

    Up to 19 digits are collected in an integer. If it is below 2^53 and the power of ten at most
    22, both are exact doubles and one operation rounds correctly (Clinger 1990); otherwise three
    operations, each off by 2^-53 at most, and cut digits, off by 10^-18, give the bound.
    """
    negative = buffer[p] == 45
    if negative or buffer[p] == 43:
        p += 1
    mantissa = np.uint64(0)
    exponent = 0
    cut = False
    digits = 0
    while 48 <= buffer[p] <= 57:
        digit = np.uint64(buffer[p] - 48)
        if mantissa < _LAST_FULL_MANTISSA:
            mantissa = mantissa * _TEN + digit
        else:
            exponent += 1
            cut = cut or digit != 0
        digits += 1
        p += 1
    if buffer[p] == 46:
        p += 1
        while 48 <= buffer[p] <= 57:
            digit = np.uint64(buffer[p] - 48)
            if mantissa < _LAST_FULL_MANTISSA:
                mantissa = mantissa * _TEN + digit
                exponent -= 1
            else:
                cut = cut or digit != 0
            digits += 1
            p += 1
    if digits == 0:
        return 0, 0.0, p
    if buffer[p] == 101 or buffer[p] == 69:
        p += 1
        down = buffer[p] == 45
        if down or buffer[p] == 43:
            p += 1
        if not 48 <= buffer[p] <= 57:
            return 0, 0.0, p
        written = 0
        while 48 <= buffer[p] <= 57:
            written = min(written * 10 + (buffer[p] - 48), 1 << 40)
            p += 1
        exponent += -written if down else written
    if not _ends_token(buffer[p]):
        return 0, 0.0, p
    sign = -1.0 if negative else 1.0
    if mantissa == 0:
        return 1, sign * 0.0, p
    value = float(mantissa)
    if mantissa <= _EXACT_MANTISSA and not cut and -22 <= exponent <= 22:
        if exponent < 0:
            return 1, sign * (value / _POWERS[308 - exponent]), p
        return 1, sign * (value * _POWERS[308 + exponent]), p
    if -290 <= exponent <= 308:
        return 2, sign * (value * _POWERS[308 + exponent]), p
    if exponent > 308:
        return 1, sign * np.inf, p
    if exponent < -360:
        return 1, sign * 0.0, p
    return 3, 0.0, p


@compiled
def _single(status, value, clip):
    """(sure, float32 of the number): rounding is monotonic, so equal bounds determine the result.

    A number that may round to infinity counts as infinite.
    """
    if status == 1:
        return True, np.float32(min(max(value, -clip), clip))
    if status == 3:
        return False, np.float32(0.0)
    low = np.float32(min(max(value * (1.0 - _MARGIN), -clip), clip))
    high = np.float32(min(max(value * (1.0 + _MARGIN), -clip), clip))
    return low == high or np.isinf(low) or np.isinf(high), high if value > 0 else low


@compiled
def _is_null(buffer, p):
    return (
        buffer[p] == 78
        and buffer[p + 1] == 85
        and buffer[p + 2] == 76
        and buffer[p + 3] == 76
        and _ends_token(buffer[p + 4])
    )


@compiled
def _note(hard, position, row, column, begin, end):
    hard[position, 0] = row
    hard[position, 1] = column
    hard[position, 2] = begin
    hard[position, 3] = end


@compiled
def _parse_lines(
    buffer, table, first_index, clip, features, labels, query_ids, lines, seen, hard, state
):
    """Parse whole lines from ``state[0]`` on; ``buffer`` ends with a newline.

    A newline ends every token, so reading ahead stays within the buffer. Returns 0 at the end, and
    otherwise a code, with ``state`` at the start of the malformed line, whose row is reused.
    """
    n_features = features.shape[1]
    stop = len(buffer)
    p, line, row, n_hard = state[0], state[1], state[2], state[3]
    digits_fit = clip >= 9.0
    code = 0
    while p < stop:
        start = p
        hard_before = n_hard
        while _is_blank(buffer[p]):
            p += 1
        if buffer[p] == 10 or buffer[p] == 35:
            while buffer[p] != 10:
                p += 1
            p += 1
            line += 1
            continue
        if n_hard + n_features + 1 > len(hard):
            code = _HARD_FULL
            p = start
            break

        # The label.
        begin = p
        status, value, p = _number(buffer, p)
        if status == 0:
            code = 1
        else:
            sure, single = _single(status, value, clip)
            if not sure:
                _note(hard, n_hard, row, -1, begin, p)
                n_hard += 1
            elif np.isinf(single):
                code = 6
            labels[row] = single

        # The query id.
        if code == 0:
            while _is_blank(buffer[p]):
                p += 1
            if table:
                if buffer[p] == 10 or buffer[p] == 35:
                    code = 12
            elif (
                buffer[p] == 113
                and buffer[p + 1] == 105
                and buffer[p + 2] == 100
                and buffer[p + 3] == 58
            ):
                p += 4
            else:
                code = 2
        if code == 0:
            negative = buffer[p] == 45
            if negative:
                p += 1
            query = np.uint64(0)
            digits = 0
            while 48 <= buffer[p] <= 57:
                # Nineteen digits cannot overflow 64 bits; more are not valid.
                query = query * _TEN + np.uint64(buffer[p] - 48)
                digits += 1
                p += 1
                if digits > 19:
                    break
            if digits == 0 or digits > 19 or query >> np.uint64(63) or not _ends_token(buffer[p]):
                code = 3
            else:
                query_ids[row] = -np.int64(query) if negative else np.int64(query)

        # The features.
        if code == 0:
            for column in range(n_features):
                features[row, column] = 0.0
        column = -1
        while code == 0:
            while _is_blank(buffer[p]):
                p += 1
            if buffer[p] == 10 or buffer[p] == 35:
                break
            if table:
                column += 1
                if column >= n_features:
                    code = 11
                    break
            else:
                if not 48 <= buffer[p] <= 57:
                    code = 4
                    if buffer[p] == 45 and 48 <= buffer[p + 1] <= 57:
                        code = 7
                    elif buffer[p] == 113 and buffer[p + 1] == 105 and buffer[p + 2] == 100:
                        code = 10
                    break
                index = 0
                while 48 <= buffer[p] <= 57:
                    index = min(index * 10 + (buffer[p] - 48), 1 << 40)
                    p += 1
                if buffer[p] != 58:
                    code = 4
                    break
                p += 1
                column = index - first_index
                if column < 0:
                    code = 7
                    break
                if column >= n_features:
                    code = 8
                    break
                if seen[column] == start:
                    code = 9
                    break
                seen[column] = start
            # Half of MSLR's values are a single digit, which needs no collecting or rounding.
            if digits_fit and 48 <= buffer[p] <= 57 and buffer[p + 1] == 32:
                features[row, column] = np.float32(buffer[p] - 48)
                p += 2
                continue
            begin = p
            status, value, p = _number(buffer, p)
            if status == 0:
                if _is_null(buffer, begin):
                    p = begin + 4
                    continue
                code = 5
                break
            sure, single = _single(status, value, clip)
            if sure:
                if np.isinf(single):
                    code = 6
                    break
                features[row, column] = single
            else:
                _note(hard, n_hard, row, column, begin, p)
                n_hard += 1
        if code == 0 and table and column != n_features - 1:
            code = 11

        if code == 0:
            while buffer[p] != 10:
                p += 1
            p += 1
            lines[row] = line
            row += 1
            line += 1
        else:
            n_hard = hard_before
            p = start
            break
    state[0], state[1], state[2], state[3] = p, line, row, n_hard
    return code
