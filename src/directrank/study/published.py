"""Published values per query: a file for each collection, from which differences can be tested.

The file is Parquet, with a row per method, fold, trial and query of the test set. What the values
are of stands in the file's own metadata.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from directrank.system.errors import DataError
from directrank.system.io import atomic_path

#: Ending of such a file.
SUFFIX = ".parquet"

#: What every row is of, before its metrics.
KEYS = ("method", "scorer", "fold", "trial", "query_id")

#: Where the file's metadata say what the values are of.
_ABOUT = b"directrank"

#: Columns that need few bytes, and how they are stored.
_TYPES = {"method": "category", "scorer": "category", "fold": "int8", "trial": "int8"}


def write_results(path: str | Path, values: pd.DataFrame, about: Mapping[str, Any]) -> None:
    """Write values per query.

    Args:
        path: the file.
        values: a row per method, fold, trial and query: the columns :data:`KEYS`, ``group`` where
            queries form groups, and one per metric, missing where a query has no relevant document.
        about: what they are of, for JSON.
    """
    import pyarrow
    from pyarrow import parquet

    metrics = [name for name in values if name not in (*KEYS, "group")]
    values = values.astype(_TYPES | dict.fromkeys(metrics, "float32"))
    # Methods rank a query much alike: side by side their values take the least space.
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
        ``scorer``, ``fold`` (0 where there are none), ``trial``, ``query_id``, ``group`` (where
        queries form groups, which alone are independent) and one per metric; a query without a
        relevant document has none. ``attrs`` says what they are of.

    Raises:
        DataError: no such file, or one that holds something else.

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
            "there is no such file",
            "name a file per_query_<collection>.parquet of an edition's tables",
            file=path,
        )
    try:
        table = parquet.read_table(path)
    except pyarrow.ArrowInvalid as error:
        raise DataError(f"is no Parquet file: {error}", "get it again", file=path) from error
    about = (table.schema.metadata or {}).get(_ABOUT)
    if about is None or not set(KEYS) <= set(table.column_names):
        raise DataError(
            "holds no values per query of directrank",
            "name a file per_query_<collection>.parquet of an edition's tables",
            file=path,
        )
    values = table.to_pandas()
    metrics = [name for name in values if name not in (*KEYS, "group")]
    values = values.astype(dict.fromkeys(metrics, "float64"))
    values.attrs = json.loads(about)
    return values
