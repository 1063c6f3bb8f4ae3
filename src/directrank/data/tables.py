"""Read a user's own data in common formats: a row per document.

CSV, TSV and Parquet have a column of queries and one of labels; other numeric columns are features.
LETOR's text format is read, too. Rows of a query need not be contiguous. Any file may be compressed
with gzip.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pandas as pd

from directrank.data.own_text import of_sizes, query_sizes, read_text
from directrank.data.svmlight import DAMAGED, damaged, open_text
from directrank.system.errors import DataError

#: The usual names of the columns.
QUERY = ("query", "query_id", "qid")
LABEL = ("label", "relevance", "rel", "grade")

#: The separator of columns, by the file's suffix, and others that a header may show.
SEPARATORS = {".csv": ",", ".tsv": "\t"}
_OTHERS = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "'|'", " ": "blanks"}
PARQUET = (".parquet", ".pq")
#: Text that LightGBM's and XGBoost's users name by its split, such as rank.train.
BY_SPLIT = (".train", ".vali", ".valid", ".validation", ".dev", ".test")
LETOR = (".txt", ".letor", ".svmlight", ".libsvm", ".svm", ".dat", *BY_SPLIT)
KNOWN = (*LETOR, *SEPARATORS, *PARQUET)

#: What stands for a missing value of a feature or label; pandas' own list.
_MISSING = (
    *("", " ", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND"),
    *("1.#QNAN", "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"),
)


@dataclass(frozen=True)
class Columns:
    """Names of the columns that are not features; None means the usual names (no groups)."""

    query: str | None = None
    label: str | None = None
    group: str | None = None
    leave_out: tuple[str, ...] = ()


@dataclass(frozen=True)
class Table:
    """Documents in the order of a file.

    Attributes:
        features: float32 ``[N, F]``.
        labels: float64 ``[N]``.
        queries: ``[N]``, the query of each row, as text.
        groups: ``[N]``, the group of each row's query, as text; None if there are no groups.
        names: the names of the features.
        words: the columns that are not numeric, each with its first row and value that is not.
        left_out: the columns that were left out because the user said so.
        missing: the number of missing values, which are 0 in ``features``.
        remarks: sentences on what was ignored.
        sparse: features that do not occur are 0, so that other files may have more.
    """

    features: np.ndarray
    labels: np.ndarray
    queries: np.ndarray
    groups: np.ndarray | None
    names: tuple[str, ...]
    words: Mapping[str, str] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()
    missing: int = 0
    remarks: tuple[str, ...] = ()
    sparse: bool = False

    def with_rows(self, rows: np.ndarray) -> Table:
        """The table with these rows, int64 ``[N]``, in their order."""
        return replace(
            self,
            features=self.features[rows],
            labels=self.labels[rows],
            queries=self.queries[rows],
            groups=None if self.groups is None else self.groups[rows],
        )

    def with_features(self, names: tuple[str, ...]) -> Table:
        """The table with these features; those that it does not have are 0."""
        if names == self.names:
            return self
        features = np.zeros((len(self.labels), len(names)), np.float32)
        place = {name: number for number, name in enumerate(names)}
        own = [number for number, name in enumerate(self.names) if name in place]
        features[:, [place[self.names[number]] for number in own]] = self.features[:, own]
        return replace(self, features=features, names=names)


def name_and_ending(path: Path) -> tuple[str, str]:
    """A file's name without its suffix, and the suffix in lower case, both without ``.gz``.

    >>> name_and_ending(Path("logs/Clicks.CSV.gz"))
    ('Clicks', '.csv')
    """
    bare = path.with_suffix("") if path.suffix.lower() == ".gz" else path
    return bare.stem, bare.suffix.lower()


def some(names: Sequence[str]) -> str:
    """The names, without those in the middle if there are many.

    >>> some(list("abcdefghijklm"))
    'a, b, c, d, e, f, g, h, …, m'
    """
    return ", ".join(names if len(names) <= 10 else (*names[:8], "…", names[-1]))


def read(path: str | Path, columns: Columns) -> Table:
    """Read a file whose suffix determines its format.

    Raises:
        DataError: the file is missing or damaged, its suffix is unknown, it lacks a column, or a
            label or value is not a finite number.
    """
    path = Path(path)
    if not path.is_file():
        raise DataError("the file does not exist", "check the path", file=path)
    ending = name_and_ending(path)[1]
    if ending in LETOR:
        return _letor(path, columns)
    if ending not in KNOWN:
        raise DataError(
            f"the suffix '{ending}' is unknown",
            f"choose one of {', '.join(KNOWN)}, each also with .gz",
            file=path,
        )
    try:
        if ending in PARQUET:
            return _from_frame(_read_parquet(path), columns, path)
        return _read_csv(path, SEPARATORS[ending], columns)
    except UnicodeDecodeError:
        raise _not_utf8(path) from None
    except DAMAGED as error:
        raise damaged(error, path) from None
    except PermissionError as error:
        raise DataError(f"cannot be read: {error.strerror}", "check the path", file=path) from None
    except (ValueError, OSError, csv.Error) as error:  # includes those of pandas and pyarrow
        raise DataError(
            f"cannot be read: {str(error).strip()}", "correct the file or write it again", file=path
        ) from None


def _letor(path: Path, columns: Columns) -> Table:
    if columns != Columns(leave_out=columns.leave_out):
        raise DataError(
            "LETOR's text format has no column names",
            "omit the options that name columns",
            file=path,
        )
    text = read_text(path)
    indices = np.arange(text.features.shape[1]) + text.first_index
    table = Table(
        features=text.features,
        labels=text.labels,
        queries=text.queries,
        groups=None,
        names=tuple(map(str, indices.tolist())),
        left_out=tuple(name for name in columns.leave_out if name in set(map(str, indices))),
        missing=text.missing,
        remarks=text.remarks,
        sparse=True,
    )
    kept = tuple(name for name in table.names if name not in columns.leave_out)
    if not kept:
        raise DataError("no feature is left", "leave fewer out", file=path)
    return table.with_features(kept)


def _read_parquet(path: Path) -> pd.DataFrame:
    with open(path, "rb") as file:
        packed = file.read(4) != b"PAR1"
    if not packed:
        return pd.read_parquet(path)
    with open_text(path) as stream:
        return pd.read_parquet(io.BytesIO(stream.read()))


def _read_csv(path: Path, usual: str, columns: Columns) -> Table:
    with open_text(path) as stream:
        header = next((line for line in stream if line.strip()), b"").decode("utf-8-sig")
    if not header:
        raise DataError("has no rows", "give at least a few queries", file=path)
    if "\0" in header:
        raise _not_utf8(path)
    separator = _separator(header, usual, {columns.query, columns.label, *QUERY, *LABEL})
    fields = _fields(header, separator)
    _check_header(fields, path)
    style = {"sep": r"\s+" if separator == " " else separator, "skipinitialspace": True}
    with open_text(path) as stream:
        names = [str(name) for name in pd.read_csv(stream, nrows=0, **style).columns]
    ids = {*((columns.query,) if columns.query else QUERY), columns.group} & set(names)
    with open_text(path) as stream:
        frame = pd.read_csv(
            stream,
            **style,
            low_memory=False,
            dtype=dict.fromkeys(ids, str),
            # No word stands for a missing query.
            keep_default_na=False,
            na_values={name: [""] if name in ids else list(_MISSING) for name in names},
        )
    if not isinstance(frame.index, pd.RangeIndex):
        raise DataError(
            f"lines have more values than the first line has names: {some(fields)}",
            "name every column in the first line",
            file=path,
        )
    table = _from_frame(frame, columns, path)
    if separator != usual:
        said = f"the columns of {path.name} are separated by {_OTHERS[separator]}"
        table = replace(table, remarks=(said, *table.remarks))
    return table


def _separator(header: str, usual: str, wanted: Collection[str | None]) -> str:
    """The separator under which a wanted column is found, or else that of the suffix, if present"""
    candidates = [
        separator for separator in dict.fromkeys((usual, *_OTHERS)) if separator in header.strip()
    ]
    for separator in candidates:
        if not set(wanted).isdisjoint(_fields(header, separator)):
            return separator
    return candidates[0] if candidates else usual


def _fields(header: str, separator: str) -> list[str]:
    line = header.strip("\r\n")
    if "\r" in line:
        raise ValueError("its lines end with CR alone; save it with LF or CRLF")
    return next(csv.reader([line], delimiter=separator, skipinitialspace=True), [])


def _check_header(fields: Sequence[str], path: Path) -> None:
    numbers = [name for name in fields if _is_number(name)]
    if numbers and (len(numbers) == len(fields) or not all(name.isdigit() for name in numbers)):
        raise DataError(
            f"the first line seems to hold values, not the names of columns: {some(fields)}",
            "write the names of the columns into the first line, such as query, label, price",
            file=path,
            line=1,
        )
    twice = [name for place, name in enumerate(fields) if name and name in fields[:place]]
    if twice:
        raise DataError(
            f"the column '{twice[0]}' occurs twice", "rename one of them", file=path, line=1
        )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return text.lower() not in ("nan", "inf", "infinity")


def _not_utf8(path: Path) -> DataError:
    """The error for text in another encoding, with the first line that shows it."""
    with open_text(path) as stream:
        number, line = next(
            (number, line)
            for number, line in enumerate(io.BufferedReader(stream), 1)
            if b"\0" in line or line.decode(errors="replace").encode() != line
        )
    shown = line.decode("latin-1").rstrip("\r\n")[:80]
    return DataError(f"is not UTF-8 text: {shown!r}", "save it as UTF-8", file=path, line=number)


def _from_frame(frame: pd.DataFrame, columns: Columns, path: Path) -> Table:
    frame, remarks = _without_index(frame, columns, path)
    left_out = tuple(name for name in columns.leave_out if name in frame.columns)
    frame = frame.drop(columns=list(left_out))
    if frame.empty:
        raise DataError("has no rows", "give at least a few queries", file=path)
    sizes = None if columns.query or set(QUERY) & set(frame.columns) else query_sizes(path)
    if sizes is not None:
        frame = frame.assign(query=of_sizes(sizes, len(frame), path))
    query = _column(frame, columns.query, QUERY, "query", path)
    label = _column(frame, columns.label, LABEL, "label", path)
    group = None if columns.group is None else _column(frame, columns.group, (), "group", path)
    ids = [name for name in (query, label, group) if name is not None]
    for name in ids:
        _refuse_missing(frame[name], name, path)
    others = frame.drop(columns=ids)
    unnamed = [name for name in others.columns if _is_unnamed(name)]
    if unnamed:
        remarks.append(f"a column without a name is left out: {', '.join(unnamed)}")
        others = others.drop(columns=unnamed)
    words = {
        name: found for name in others if (found := _first_word(others[name], name)) is not None
    }
    numbers = others.drop(columns=list(words))
    if numbers.shape[1] == 0:
        shown = "; " + ", ".join(list(words.values())[:3]) if words else ""
        raise DataError(
            f"has no other numeric column{shown}",
            "add features; numbers are written with a decimal point",
            file=path,
        )
    features = np.empty(numbers.shape, np.float32)
    missing = 0
    for place, name in enumerate(numbers):
        values = pd.to_numeric(numbers[name]).to_numpy(np.float64, na_value=np.nan)
        gone = np.isnan(values)
        missing += int(gone.sum())
        with np.errstate(over="ignore"):  # values that are too large are refused
            features[:, place] = np.where(gone, 0.0, values)
        _refuse_infinite(features[:, place], values, name, path)
    return Table(
        features=features,
        labels=_labels(frame[label], path),
        queries=frame[query].astype(str).to_numpy(object),
        groups=None if group is None else frame[group].astype(str).to_numpy(object),
        names=tuple(numbers.columns),
        words=words,
        left_out=left_out,
        missing=missing,
        remarks=tuple(remarks),
    )


def _without_index(
    frame: pd.DataFrame, columns: Columns, path: Path
) -> tuple[pd.DataFrame, list[str]]:
    """A frame whose index has only become columns where these are the query's, label's or group's.

    Names of columns are text.
    """
    frame = frame.set_axis([str(column) for column in frame.columns], axis=1)
    named = [str(name) for name in frame.index.names if name is not None]
    wanted = {columns.query, columns.label, columns.group, *QUERY, *LABEL}
    used = [name for name in named if name in wanted and name not in frame.columns]
    unused = [name for name in named if name not in used]
    remarks = [f"the index '{name}' of {path.name} is not a feature" for name in unused]
    for name in used:
        frame = frame.assign(**{name: frame.index.get_level_values(name)})
    return frame.reset_index(drop=True), remarks


def _is_unnamed(name: str) -> bool:
    """Whether a column has no name, as that of the row numbers that pandas writes."""
    return not name.strip() or name.startswith(("Unnamed: ", "__index_level_"))


def _first_word(values: pd.Series, name: str) -> str | None:
    """A column's name and its first row whose value is not a number; None if all are."""
    if values.dtype.kind in "iufb":
        return None
    strange = values.notna() & pd.to_numeric(values.astype(object), errors="coerce").isna()
    if values.dtype == object and not strange.any():  # truth values, some of which are missing
        return None
    if not strange.any():
        return f"{name} ({values.dtype})"
    row = int(strange.to_numpy().argmax())
    return f"{name} (row {row + 1}: {str(values.iloc[row])[:80]!r})"


def _column(
    frame: pd.DataFrame, name: str | None, usual: Sequence[str], what: str, path: Path
) -> str:
    """The column with the given name, or with a usual name."""
    known = list(frame.columns)
    found = [name] if name is not None else [column for column in known if column in usual]
    if len(found) > 1:
        raise DataError(
            f"more than one column could be that of the {what}: {', '.join(found)}",
            f"choose one and leave the other out: --{what}-column {found[0]} --leave-out "
            f"{' '.join(found[1:])}",
            file=path,
        )
    if not found or found[0] not in known:
        wanted = f"'{name}'" if name is not None else f"one of {', '.join(usual)}"
        raise DataError(
            f"the column of the {what} should be {wanted}, but the columns are {some(known)}",
            f"name it: --{what}-column NAME",
            file=path,
        )
    return found[0]


def _labels(values: pd.Series, path: Path) -> np.ndarray:
    numbers = pd.to_numeric(values, errors="coerce").to_numpy(np.float64, na_value=np.nan)
    strange = np.flatnonzero(~np.isfinite(numbers))
    if len(strange):
        raise DataError(
            f"the label '{values.iloc[strange[0]]}' of row {strange[0] + 1} is not a finite number",
            "use numbers as labels, and 0 for documents that are not relevant",
            file=path,
        )
    return numbers


def _refuse_missing(values: pd.Series, name: str, path: Path) -> None:
    empty = np.flatnonzero(values.isna())
    if len(empty):
        raise DataError(
            f"row {empty[0] + 1} has no value in the column '{name}' ({len(empty)} rows in all)",
            "fill it in, or remove the rows",
            file=path,
        )


def _refuse_infinite(features: np.ndarray, values: np.ndarray, name: str, path: Path) -> None:
    strange = np.flatnonzero(~np.isfinite(features))
    if len(strange):
        raise DataError(
            f"the value {values[strange[0]]} of column '{name}', row {strange[0] + 1}, is not "
            "finite, or too large for single precision",
            f"scale or clip the column, or leave it out: --leave-out '{name}'",
            file=path,
        )
