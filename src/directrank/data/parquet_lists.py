"""Lists from Parquet files, as copies of collections are published in them.

A row is a document, or a query with lists of its labels and of its documents' features. Features
are one column of lists, or the columns that are neither query nor label, in the order of the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from io import RawIOBase

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from directrank.data.svmlight import Block
from directrank.data.tables import LABEL, QUERY
from directrank.system.errors import DataError

#: The usual name of the column of lists of features.
FEATURES = "features"
#: Rows that are read together.
_ROWS = 500


def parse(
    stream: RawIOBase, n_features: int, where: str, clip: float | None = None
) -> Iterator[Block]:
    """The documents of a file, which is held in memory, as :func:`svmlight.parse` gives them.

    Args:
        stream: the file.
        n_features: the number of features.
        where: the file's name for errors.
        clip: the limit of values, applied in double precision.

    Raises:
        DataError: the file is damaged or lacks a column, a query's id is not a whole number, a
            value is missing or not finite, or there is another number of features.
    """
    try:
        file = parquet.ParquetFile(pa.BufferReader(stream.read()))
        query, label, features = _columns(file.schema_arrow.names, where)
        begin = 1
        for batch in file.iter_batches(_ROWS, columns=[query, label, *features]):
            block = _block(batch, query, label, features, n_features, clip, where, begin)
            begin += len(block.labels)
            yield block
    except pa.ArrowException as error:
        raise DataError(
            f"cannot be read as Parquet: {error}", "get the file again", file=where
        ) from None


def _columns(names: Sequence[str], where: str) -> tuple[str, str, list[str]]:
    """The names of the columns of the query, the label and the features."""
    query, label = (next((n for n in names if n in usual), "") for usual in (QUERY, LABEL))
    if not query or not label:
        raise DataError(
            f"has the columns {', '.join(names[:8])}, none of which is the query's or the label's",
            f"name the query's one of {', '.join(QUERY)}, the label's one of {', '.join(LABEL)}",
            file=where,
        )
    if FEATURES in names:
        return query, label, [FEATURES]
    return query, label, [name for name in names if name not in (query, label)]


def _block(
    batch: pa.RecordBatch,
    query: str,
    label: str,
    features: Sequence[str],
    n_features: int,
    clip: float | None,
    where: str,
    begin: int,
) -> Block:
    """The documents of some rows, of which the first is document ``begin`` of the file."""
    ids, labels = _ids(batch.column(query), where), batch.column(label)
    columns = [batch.column(name) for name in features]
    if _is_list(labels):
        lengths = labels.value_lengths().to_numpy(zero_copy_only=False).astype(np.int64)
        sizes = columns[0].value_lengths().to_numpy(zero_copy_only=False)
        if not _is_list(columns[0]) or (sizes != lengths).any():
            raise _refused("a query has another number of labels than of documents", where)
        ids, labels = np.repeat(ids, lengths), labels.flatten()
        columns = [columns[0].flatten()]
    if _is_list(columns[0]):
        sizes = columns[0].value_lengths().to_numpy(zero_copy_only=False)
        wrong = sizes[sizes != n_features]
        if len(wrong):
            raise _refused(f"a document has {wrong[0]:.0f} features, expected {n_features}", where)
        values = _numbers(columns[0].flatten(), where).reshape(-1, n_features)
    else:
        if len(columns) != n_features:
            raise _refused(f"has {len(columns)} columns of features, expected {n_features}", where)
        values = np.stack([_numbers(column, where) for column in columns], axis=1)
    limit = np.inf if clip is None else clip
    with np.errstate(over="ignore"):  # values that are too large are refused
        single = np.clip(values, -limit, limit).astype(np.float32)
    grades = _numbers(labels, where)
    if not np.isfinite(single).all() or not np.isfinite(grades).all():
        raise _refused("a value is not finite, or too large for single precision", where)
    return Block(single, grades.astype(np.float32), ids, begin + np.arange(len(ids)))


def _is_list(values: pa.Array) -> bool:
    kinds = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    return any(kind(values.type) for kind in kinds)


def _ids(values: pa.Array, where: str) -> np.ndarray:
    """Ids of queries, int64, which may be written as text."""
    try:
        if values.null_count:
            raise _refused("a query has no id", where)
        return values.cast(pa.int64()).to_numpy(zero_copy_only=False)
    except pa.ArrowInvalid as error:
        raise _refused(f"the id of a query is not a whole number: {error}", where) from None


def _numbers(values: pa.Array, where: str) -> np.ndarray:
    if values.null_count:
        raise _refused("a value is missing", where)
    return values.cast(pa.float64()).to_numpy(zero_copy_only=False)


def _refused(what: str, where: str) -> DataError:
    return DataError(what, "check the file, or get the original text", file=where)
