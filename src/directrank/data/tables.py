"""Read a user's own data in common formats: a row per document, with labels as grades.

CSV, TSV and Parquet have a column of queries and one of labels; other numeric columns are features.
LETOR's text format is read, too. Rows of a query need not be contiguous.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from directrank.data.svmlight import read_svmlight
from directrank.system.errors import DataError

#: The usual names of the columns.
QUERY = ("query", "query_id", "qid")
LABEL = ("label", "relevance", "rel", "grade")

#: The separator of columns, by the file's suffix.
SEPARATORS = {".csv": ",", ".tsv": "\t"}
PARQUET = (".parquet", ".pq")
LETOR = (".txt", ".letor", ".svmlight", ".svm", ".dat")

#: Gains are 2 ** label - 1, so labels above this are not grades.
HIGHEST_GRADE = 15


@dataclass(frozen=True)
class Columns:
    """Names of the columns that are not features; None means the usual names (no groups)."""

    query: str | None = None
    label: str | None = None
    group: str | None = None


@dataclass(frozen=True)
class Table:
    """Documents, with the rows of each query together, and queries in the order of their first
    rows.

    Attributes:
        features: float32 ``[N, F]``.
        labels: float64 ``[N]``.
        queries: ``[N]``, the query of each row, as numbers or strings.
        groups: ``[N]``, the group of each row's query; None if there are no groups.
        names: the names of the features.
        left_out: columns that are not numeric.
        missing: the number of missing values, which are 0 in ``features``.
    """

    features: np.ndarray
    labels: np.ndarray
    queries: np.ndarray
    groups: np.ndarray | None
    names: tuple[str, ...]
    left_out: tuple[str, ...] = ()
    missing: int = 0


def read(path: str | Path, columns: Columns) -> Table:
    """Read a file whose suffix determines its format.

    Raises:
        DataError: the file is missing or damaged, its suffix is unknown, it lacks a column, or a
            label or value is not a finite number.
    """
    path = Path(path)
    if not path.is_file():
        raise DataError("the file does not exist", "check the path", file=path)
    ending = path.suffix.lower()
    if ending in LETOR:
        return _letor(path, columns)
    if ending not in (*SEPARATORS, *PARQUET):
        raise DataError(
            f"the suffix '{ending}' is unknown",
            f"choose one of: {', '.join((*LETOR, *SEPARATORS, *PARQUET))}",
            file=path,
        )
    try:
        if ending in PARQUET:
            frame = pd.read_parquet(path)
        else:
            frame = pd.read_csv(path, sep=SEPARATORS[ending], low_memory=False)
    except (ValueError, OSError) as error:  # includes the errors of pandas and pyarrow
        raise DataError(
            f"cannot be read: {str(error).strip()}", "correct the file or write it again", file=path
        ) from None
    return _from_frame(frame, columns, path)


def grades(labels: np.ndarray, levels: int) -> np.ndarray:
    """Keep integer labels from 0 to at most 15; cut others into ``levels`` grades.

    The lowest value is grade 0; higher values are cut at quantiles into the other grades, of about
    equal size. Equal values always have the same grade.

    Args:
        labels: ``[N]``.
        levels: the number of grades, 2 or more.

    Returns:
        int64 ``[N]``.

    >>> grades(np.array([0.0, 2.0, 1.0]), 5)
    array([0, 2, 1])
    >>> grades(np.array([0.0, 0.0, 0.1, 0.2, 0.3, 0.9]), 3)
    array([0, 0, 1, 1, 2, 2])
    """
    whole = labels.astype(np.int64)
    if np.array_equal(whole, labels) and labels.min() >= 0 and labels.max() <= HIGHEST_GRADE:
        return whole
    lowest = labels.min()
    above = labels[labels > lowest]
    inner = np.linspace(0, 1, levels)[1:-1]
    edges = np.unique(np.quantile(above, inner)) if len(above) else np.empty(0)
    return np.where(labels > lowest, 1 + np.searchsorted(edges, labels, side="left"), 0)


def _letor(path: Path, columns: Columns) -> Table:
    if columns != Columns():
        raise DataError(
            "LETOR's text format has no column names",
            "omit the options that name columns",
            file=path,
        )
    lists = read_svmlight(path, split_queries="merge")
    return Table(
        features=np.asarray(lists.features),
        labels=lists.labels.astype(np.float64),
        queries=np.repeat(lists.query_ids, lists.lengths),
        groups=None,
        names=tuple(str(number) for number in range(1, lists.n_features + 1)),
    )


def _from_frame(frame: pd.DataFrame, columns: Columns, path: Path) -> Table:
    query = _column(frame, columns.query, QUERY, "query", path)
    label = _column(frame, columns.label, LABEL, "label", path)
    group = None if columns.group is None else _column(frame, columns.group, (), "group", path)
    frame = frame.reset_index(drop=True)
    if frame.empty:
        raise DataError("has no rows", "give at least a few queries", file=path)
    for name in (query, label, *(() if group is None else (group,))):
        _refuse_missing(frame[name], name, path)
    # The sort is stable, because the order of a query's documents breaks ties.
    frame = frame.iloc[np.argsort(pd.factorize(frame[query])[0], kind="stable")]
    others = frame.drop(columns=[name for name in (query, label, group) if name is not None])
    numbers = others.select_dtypes(include=["number", "bool"])
    if numbers.shape[1] == 0:
        raise DataError("has no other numeric column", "add features", file=path)
    features = numbers.to_numpy(np.float64, na_value=np.nan)
    missing = np.isnan(features)
    with np.errstate(over="ignore"):  # values that are too large are refused below
        features = np.where(missing, 0.0, features).astype(np.float32)
    _refuse_infinite(features, numbers, path)
    return Table(
        features=features,
        labels=_labels(frame[label], path),
        queries=frame[query].to_numpy(),
        groups=None if group is None else frame[group].to_numpy(),
        names=tuple(map(str, numbers.columns)),
        left_out=tuple(str(name) for name in others.columns if name not in numbers.columns),
        missing=int(missing.sum()),
    )


def _column(
    frame: pd.DataFrame, name: str | None, usual: Sequence[str], what: str, path: Path
) -> str:
    """The column with the given name, or with a usual name."""
    known = [str(column) for column in frame.columns]
    found = [name] if name is not None else [column for column in known if column in usual]
    if len(found) != 1 or found[0] not in known:
        wanted = f"'{name}'" if name is not None else f"one of {', '.join(usual)}"
        raise DataError(
            f"the column of the {what} should be {wanted}, but the columns are {', '.join(known)}",
            f"name it: --{what}-column NAME",
            file=path,
        )
    return found[0]


def _labels(values: pd.Series, path: Path) -> np.ndarray:
    numbers = pd.to_numeric(values, errors="coerce").to_numpy(np.float64)
    strange = np.flatnonzero(~np.isfinite(numbers))
    if len(strange):
        raise DataError(
            f"the label '{values.iloc[strange[0]]}' of row {values.index[strange[0]] + 1} is not a "
            "finite number",
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


def _refuse_infinite(features: np.ndarray, numbers: pd.DataFrame, path: Path) -> None:
    row, column = np.nonzero(~np.isfinite(features))
    if len(row):
        name = numbers.columns[column[0]]
        raise DataError(
            f"the value {numbers.iloc[row[0], column[0]]} of column '{name}', row "
            f"{numbers.index[row[0]] + 1}, is not finite, or too large for single precision",
            "scale or clip the column, or leave it out",
            file=path,
        )
