"""Make a folder in which methods are compared on your own data, with its catalogue and edition.

The workflow runs there with the repository's rules and experiments; nothing of the repository is
changed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import yaml
from pyarrow import csv

from directrank.data.catalog import ALL
from directrank.data.prepared import SPLITS
from directrank.data.tables import LETOR, PARQUET, SEPARATORS, Columns, Table, grades, read
from directrank.system.errors import ConfigError, DataError
from directrank.system.io import atomic_folder, sha256_of, write_text

#: The names that a split's file may have.
SPLIT_NAMES = {
    "train": ("train", "training"),
    "vali": ("vali", "valid", "validation", "dev"),
    "test": ("test",),
}

#: The experiments of one protocol, by what ranks.
SCORERS = ("linear", "tower", "context", "trees")

#: Ranks are compared only among at least this many methods.
LEAST_METHODS = 3

#: The share of training queries that validate if a folder has no validation set.
VALI_FROM_TRAIN = 0.2

#: What each budget sets: the number of folds, the scorers, and changes to every run.
BUDGETS: dict[str, dict[str, Any]] = {
    "quick": {
        "folds": 3,
        "scorers": ("linear", "tower"),
        "set": {
            "trials": 1,
            "train_queries": 300,
            "vali_queries": 300,
            "training.max_epochs": 10,
            "training.patience": 3,
        },
    },
    "standard": {
        "folds": 5,
        "scorers": SCORERS,
        "set": {"train_queries": 2000, "vali_queries": 1000, "training.patience": 5},
        # These take as long as all other methods together.
        "without": ["YetiRankPairwise", "CatBoost StochasticRank"],
    },
    "full": {"folds": 5, "scorers": SCORERS, "set": {}},
}


@dataclass(frozen=True)
class Request:
    """What to compare.

    Attributes:
        data: a file, or a folder with a file for each split.
        name: of the data set and the edition; letters, digits and underscores.
        columns: of tables.
        levels: into how many grades to cut labels that are not grades.
        budget: a key of :data:`BUDGETS`.
        folds: into how many folds to divide queries that come without splits; None uses the
            budget's number.
        scorers, losses: which to compare; if empty, the budget's scorers and all losses.
    """

    data: Path
    name: str
    columns: Columns = field(default_factory=Columns)
    levels: int = 5
    budget: str = "standard"
    folds: int | None = None
    scorers: Sequence[str] = ()
    losses: Sequence[str] = ()


def name_of(data: Path) -> str:
    """A name for the data in a file or folder.

    >>> name_of(Path("logs/Shop Search-2026.csv"))
    'shop_search_2026'
    """
    name = re.sub(r"[^a-z0-9]+", "_", data.stem.lower()).strip("_")
    return name if re.match(r"[a-z]", name) else f"data_{name}".rstrip("_")


def make(request: Request, folder: Path) -> list[str]:
    """Write the workspace into ``folder``, which is created if need be.

    Returns:
        Sentences that say what was found in the data and what was done with them.

    Raises:
        ConfigError: there are fewer than three folds or methods, or fewer than two grades.
        DataError: the data cannot be read; see :func:`directrank.data.tables.read`.
    """
    if request.levels < 2:
        raise ConfigError(f"{request.levels} grades are too few", "choose 2 or more")
    if request.folds is not None and request.folds < 3:
        raise ConfigError(
            f"{request.folds} folds are too few",
            "choose 3 or more: in each fold, one part validates and one tests",
        )
    planned = edition(request)
    tables = _tables(request)
    with atomic_folder(folder / "data/raw" / request.name) as temporary:
        entry, said = _write_data(request, tables, temporary)
    write_text(folder / "data/datasets.yaml", _yaml({"datasets": {request.name: entry}}))
    write_text(folder / "edition.yaml", _yaml(planned))
    return said


def edition(request: Request) -> dict[str, Any]:
    """The edition that compares the data."""
    budget = BUDGETS[request.budget]
    scorers = list(request.scorers or budget["scorers"])
    made: dict[str, Any] = {"collections": [request.name], "experiments": scorers}
    neural = [name for name in scorers if name != "trees"]
    if request.losses and neural:
        if len(request.losses) * len(neural) < LEAST_METHODS and "trees" not in scorers:
            raise ConfigError(
                f"{len(request.losses)} losses with {len(neural)} scorers are too few to compare",
                f"name more of either: at least {LEAST_METHODS} methods",
            )
        made["variants"] = {name: list(request.losses) for name in neural}
    if "trees" in scorers and "without" in budget:
        made["without"] = budget["without"]
    overrides = [{"set": budget["set"]}] if budget["set"] else []
    return {
        "edition": request.name,
        "raw_dir": "data/raw",  # that of the workspace, even if DIRECTRANK_RAW is set
        "datasets": {},
        "papers": {"one_protocol": made},
        "overrides": overrides,
    }


def _tables(request: Request) -> dict[str, Table]:
    """The data by split, or under :data:`ALL` if they come without splits."""
    if not request.data.is_dir():
        return {ALL: read(request.data, request.columns)}
    known = (*LETOR, *SEPARATORS, *PARQUET)
    files: dict[str, Path] = {}
    for path in sorted(request.data.iterdir()):
        for split, names in SPLIT_NAMES.items():
            if path.suffix.lower() in known and path.stem.lower() in names:
                if split in files:
                    raise DataError(
                        f"both {files[split].name} and {path.name} could be the {split} split",
                        "keep one of them in the folder",
                        file=request.data,
                    )
                files[split] = path
    if not {"train", "test"} <= files.keys():
        raise DataError(
            "has no file of training queries and one of test queries",
            f"name them train and test (and vali), with one of the suffixes {', '.join(known)}",
            file=request.data,
        )
    tables = {split: read(files[split], request.columns) for split in SPLITS if split in files}
    for split, table in tables.items():
        if table.names != tables["train"].names:
            raise DataError(
                "has different features from the training file",
                "give all splits the same columns",
                file=files[split],
            )
    return tables


def _write_data(
    request: Request, tables: Mapping[str, Table], folder: Path
) -> tuple[dict[str, Any], list[str]]:
    """Write the files of a data set; return its catalogue entry and remarks for the user."""
    first = next(iter(tables.values()))
    documents = np.cumsum([0, *(len(table.labels) for table in tables.values())])
    labels = np.concatenate([table.labels for table in tables.values()])
    graded = grades(labels, request.levels)
    numbers, queries = _numbered_queries(tables)
    for (split, table), begin, end in zip(
        tables.items(), documents[:-1], documents[1:], strict=True
    ):
        _write_lists(folder / f"{split}.txt", graded[begin:end], numbers[begin:end], table.features)
    entry: dict[str, Any] = {
        "features": len(first.names),
        "label_levels": max(2, int(graded.max()) + 1),
        "text": {"lines": "table"},
        "sha256": {split: sha256_of(folder / f"{split}.txt") for split in tables},
        "expect": {"total": {"queries": len(queries), "documents": len(labels)}},
    }
    said = [
        f"{len(queries)} queries, {len(labels)} documents, {len(first.names)} features, labels "
        f"{labels.min():g} to {labels.max():g}"
    ]
    if ALL in tables:
        folds = request.folds or BUDGETS[request.budget]["folds"]
        entry |= {"one_file": f"{ALL}.txt", "folds": folds}
        said.append(f"the queries are divided into {folds} parts, each of which is tested once")
    elif "vali" not in tables:
        entry["vali_from_train"] = VALI_FROM_TRAIN
        said.append(f"the last {VALI_FROM_TRAIN:.0%} of the training queries are for validation")
    if any(table.groups is not None for table in tables.values()):
        entry["groups"] = "groups.tsv"
        groups, names = _numbered(
            np.concatenate([np.asarray(table.groups) for table in tables.values()])
        )
        _write_groups(folder / entry["groups"], numbers, groups, request.data)
        said.append(
            f"{len(names)} groups of queries are kept together, in folds and in statistical tests"
        )
    said += _remarks(list(tables.values()), labels, graded)
    names = pd.DataFrame({"feature": np.arange(1, len(first.names) + 1), "name": first.names})
    write_text(folder / "features.csv", names.to_csv(index=False))
    write_text(folder / "queries.csv", queries.to_csv(index=False))
    return entry, said


def _remarks(tables: Sequence[Table], labels: np.ndarray, graded: np.ndarray) -> list[str]:
    """Sentences that say what was changed in the data or left out."""
    said = []
    if not np.array_equal(labels, graded):
        steps = [f"{labels[graded == grade].min():g}" for grade in np.unique(graded)]
        said.append(
            f"labels are not grades; they are cut into grades that begin at {', '.join(steps)}"
        )
    left_out = list(dict.fromkeys(name for table in tables for name in table.left_out))
    if left_out:
        said.append(
            f"these columns are left out because they are not numeric: {', '.join(left_out)}"
        )
    missing = sum(table.missing for table in tables)
    if missing:
        said.append(f"{missing} missing feature values are replaced by 0")
    return said


def _numbered_queries(tables: Mapping[str, Table]) -> tuple[np.ndarray, pd.DataFrame]:
    """The number of each document's query, int64 ``[N]``, and a table of what the numbers mean.

    Queries of different files are different queries, even if their names are the same.
    """
    files = [np.repeat(split, len(table.queries)) for split, table in tables.items()]
    rows = pd.DataFrame({"file": np.concatenate(files)})
    rows["name"] = np.concatenate([table.queries for table in tables.values()])
    numbers = rows.groupby(["file", "name"], sort=False).ngroup().to_numpy() + 1
    queries = rows.assign(query=numbers).drop_duplicates("query")
    return numbers, queries[["query", "file", "name"]]


def _numbered(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Number values from 1 in order of appearance; return the numbers and the distinct values."""
    codes, distinct = pd.factorize(values)
    return codes + 1, np.asarray(distinct)


def _write_lists(path: Path, labels: np.ndarray, queries: np.ndarray, features: np.ndarray) -> None:
    """Write a line per document: its label, its query, then every feature."""
    columns = [pa.array(labels), pa.array(queries), *(pa.array(column) for column in features.T)]
    table = pa.table(columns, names=[str(number) for number in range(len(columns))])
    options = csv.WriteOptions(include_header=False, delimiter="\t")
    csv.write_csv(table, path, options)


def _write_groups(path: Path, queries: np.ndarray, groups: np.ndarray, data: Path) -> None:
    """Write a line per query: its number and that of its group."""
    pairs = pd.DataFrame({"query": queries, "group": groups}).drop_duplicates()
    twice = pairs["query"].duplicated()
    if twice.any():
        raise DataError(
            f"{twice.sum()} queries have rows of more than one group",
            "give all rows of a query the same group",
            file=data,
        )
    write_text(path, pairs.to_csv(sep="\t", header=False, index=False))


def _yaml(content: Mapping[str, Any]) -> str:
    return yaml.safe_dump(dict(content), sort_keys=False, allow_unicode=True)
