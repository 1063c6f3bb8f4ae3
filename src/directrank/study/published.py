"""Published values per query, in one file per collection, with which differences can be tested.

The file is Parquet, with a row per method, fold, trial and query of the test set. The file's
metadata describe the values.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from directrank.system.errors import DataError
from directrank.system.io import atomic_path

#: The suffix of such a file.
SUFFIX = ".parquet"

#: The columns that identify a row, before its metrics.
KEYS = ("method", "scorer", "fold", "trial", "query_id")

#: The key of the description in the file's metadata.
_ABOUT = b"directrank"

#: The types of columns that need few bytes.
_TYPES = {"method": "category", "scorer": "category", "fold": "int8", "trial": "int8"}


def write_results(path: str | Path, values: pd.DataFrame, about: Mapping[str, Any]) -> None:
    """Write values per query.

    Args:
        path: the file.
        values: a row per method, fold, trial and query: the columns :data:`KEYS`, ``group`` if
            queries form groups, and one per metric, missing if a query has no relevant document.
        about: a description of the values, for JSON.
    """
    import pyarrow
    from pyarrow import parquet

    metrics = [name for name in values if name not in (*KEYS, "group")]
    values = values.astype(_TYPES | dict.fromkeys(metrics, "float32"))
    # Methods have similar values for a query, which compress best side by side.
    values = values.sort_values(["fold", "query_id", "scorer", "method", "trial"], kind="stable")
    table = pyarrow.Table.from_pandas(values, preserve_index=False)
    metadata = {**table.schema.metadata, _ABOUT: json.dumps(about, sort_keys=True).encode()}
    with atomic_path(path) as temporary:
        parquet.write_table(
            table.replace_schema_metadata(metadata),
            temporary,
            compression="zstd",
            compression_level=15,
        )


def open_results(path: str | Path) -> pd.DataFrame:
    """Read published values per query.

    Args:
        path: such as ``paper_tables/real/one_protocol/per_query_ohsumed.parquet``.

    Returns:
        A row per method, fold, trial and query of the test set, with the columns ``method``,
        ``scorer``, ``fold`` (0 if there are none), ``trial``, ``query_id``, ``group`` (if queries
        form groups, and only groups are independent) and one per metric, which is missing for a
        query without a relevant document. ``attrs`` describes the values.

    Raises:
        DataError: the file does not exist or contains something else.

    >>> from tempfile import TemporaryDirectory
    >>> row = {"method": "A", "scorer": "linear", "fold": 1, "trial": 0, "query_id": 7}
    >>> values = pd.DataFrame([row | {"ndcg@10": 1.0}])
    >>> with TemporaryDirectory() as folder:
    ...     write_results(f"{folder}/x.parquet", values, {"collection": "mine"})
    ...     values = open_results(f"{folder}/x.parquet")
    >>> values["ndcg@10"].tolist(), values.attrs["collection"]
    ([1.0], 'mine')
    """
    import pyarrow
    from pyarrow import parquet

    path = Path(path)
    if not path.is_file():
        raise DataError(
            "the file does not exist",
            "name a file per_query_<collection>.parquet of an edition's tables",
            file=path,
        )
    try:
        table = parquet.read_table(path)
    except pyarrow.ArrowInvalid as error:
        raise DataError(f"is not a Parquet file: {error}", "get it again", file=path) from error
    about = (table.schema.metadata or {}).get(_ABOUT)
    if about is None or not set(KEYS) <= set(table.column_names):
        raise DataError(
            "contains no values per query of directrank",
            "name a file per_query_<collection>.parquet of an edition's tables",
            file=path,
        )
    values = table.to_pandas()
    metrics = [name for name in values if name not in (*KEYS, "group")]
    values = values.astype(dict.fromkeys(metrics, "float64"))
    values.attrs = json.loads(about)
    return values
