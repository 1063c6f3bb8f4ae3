"""Make a folder in which methods are compared on your own data, with its catalogue and edition.

The workflow runs there with the repository's rules and experiments; nothing of the repository is
changed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import yaml
from pyarrow import csv

from directrank.data import catalog
from directrank.data.catalog import ALL
from directrank.data.grading import HIGHEST_GRADE, graded
from directrank.data.prepared import SPLITS
from directrank.data.row_order import neutral_order, suspicious
from directrank.data.tables import BY_SPLIT, KNOWN, Columns, Table, name_and_ending, read, some
from directrank.edition.configuration import repository
from directrank.edition.experiments import label, paper_experiments
from directrank.edition.usable import QuerySummary, refuse_unusable
from directrank.papers.one_protocol import LEAST_RANKED
from directrank.system.errors import ConfigError, DataError
from directrank.system.io import atomic_folder, digest_of, sha256_of, write_text
from directrank.system.schema import suggest

#: The names that a split's file may have.
SPLIT_NAMES = {
    "train": ("train", "training"),
    "vali": ("vali", "valid", "validation", "dev"),
    "test": ("test",),
}

#: The paper whose experiments compare methods under one protocol.
PAPER = "one_protocol"

#: The experiments of one protocol, by what ranks.
SCORERS = ("linear", "tower", "context", "trees")

#: The objectives of trees that take as long as all other methods together.
SLOW = ("YetiRankPairwise", "CatBoost StochasticRank")

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
        "without": SLOW,
    },
    "standard": {
        "folds": 5,
        "scorers": SCORERS,
        "set": {"train_queries": 2000, "vali_queries": 1000, "training.patience": 5},
        "without": SLOW,
    },
    "full": {"folds": 5, "scorers": SCORERS, "set": {}},
}


@dataclass(frozen=True)
class ComparisonRequest:
    """What to compare.

    Attributes:
        data: a file, or a folder with a file for each split.
        name: of the data set and the edition; letters, digits and underscores.
        columns: of tables.
        grades: into how many grades to cut labels that are not grades, or the labels at which
            grades 1, 2, … begin; None leaves it to :func:`directrank.data.grading.graded`.
        budget: a key of :data:`BUDGETS`.
        folds: into how many folds to divide queries that come without splits; None uses the
            budget's number.
        scorers, losses, ensembles: which to compare; if empty, the budget's scorers, all losses,
            and if trees are among the scorers, the ensembles that the budget does not leave out.
        without: losses and ensembles to leave out.
    """

    data: Path
    name: str
    columns: Columns = field(default_factory=Columns)
    grades: int | tuple[float, ...] | None = None
    budget: str = "standard"
    folds: int | None = None
    scorers: Sequence[str] = ()
    losses: Sequence[str] = ()
    ensembles: Sequence[str] = ()
    without: Sequence[str] = ()


def name_of(data: Path) -> str:
    """A name for the data in a file or folder.

    It is none that the study itself knows, so that no setting for a collection applies.

    >>> name_of(Path("logs/Shop Search-2026.csv")), name_of(Path("web30k.csv"))
    ('shop_search_2026', 'own_web30k')
    """
    name = re.sub(r"[^a-z0-9]+", "_", name_and_ending(data)[0].lower()).strip("_")
    if not re.match(r"[a-z]", name):
        return f"data_{name}".rstrip("_")
    known = {*catalog.load(catalog.PACKAGED), "collections"}  # the latter names tables of several
    return f"own_{name}" if name in known or name.endswith(catalog.STANDIN) else name


def make(
    request: ComparisonRequest, folder: Path, claim: Callable[[], object] = lambda: None
) -> list[str]:
    """Write the workspace into ``folder``, which is created if need be.

    Args:
        request: what to compare.
        folder: the workspace.
        claim: called before anything is written.

    Returns:
        Sentences that say what was found in the data and what was done with them.

    Raises:
        ConfigError: there are fewer than three folds, or too few or many grades, a method is
            unknown, or the edition was edited for other options.
        DataError: the data cannot be read (see :func:`directrank.data.tables.read`), or methods
            cannot be compared on them (see :mod:`directrank.edition.usable`).
    """
    _check_grades(request.grades)
    if request.folds is not None and request.folds < 3:
        raise ConfigError(
            f"{request.folds} folds are too few",
            "choose 3 or more: in each fold, one part validates and one tests",
        )
    planned, chosen = edition(request)
    source = folder / "data/source.txt"
    _require_same_source(request.data, source)
    written = _edition_file(folder / "edition.yaml", _yaml(planned))
    tables = _tables(request)
    if request.folds is not None and ALL not in tables:
        raise ConfigError(
            f"--folds divides the queries of a single file, but {request.data} has a file for each "
            "split",
            "leave --folds out, or name one file",
        )
    claim()
    with atomic_folder(folder / "data/raw" / request.name) as temporary:
        entry, said = _write_data(request, tables, temporary)
    write_text(folder / "data/datasets.yaml", _yaml({"datasets": {request.name: entry}}))
    write_text(source, f"{request.data.resolve()}\n")
    if written is None:
        chosen = [
            "edition.yaml was changed by hand and is used as it is; delete it to have it rewritten"
        ]
    else:
        write_text(folder / "edition.yaml", written)
    return said + chosen


def _require_same_source(data: Path, source: Path) -> None:
    """Raise ConfigError if the workspace is of the data of another path."""
    before = source.read_text(encoding="utf-8").strip() if source.is_file() else ""
    if before and before != str(data.resolve()):
        raise ConfigError(
            f"{source.parents[1]} has the comparison of {before}",
            f"give these data another --name or --out; or, if they are the same, remove {source}",
        )


def edition(request: ComparisonRequest) -> tuple[dict[str, Any], list[str]]:
    """The edition that compares the data, and sentences about the methods.

    Raises:
        ConfigError: a loss or an ensemble is unknown, cannot be trained by the scorers, or none is
            left.
    """
    budget = BUDGETS[request.budget]
    losses, ensembles = _methods("linear"), _methods("trees")
    for option, names, known in (
        ("--losses", request.losses, losses),
        ("--ensembles", request.ensembles, ensembles),
        ("--without", request.without, [*losses, *ensembles]),
    ):
        for name in names:
            if name not in known:
                raise ConfigError(f"{option} names '{name}'", suggest(name, known))
    scorers = list(dict.fromkeys(request.scorers or budget["scorers"]))
    if request.ensembles and "trees" not in scorers:
        scorers.append("trees")
    neural = [name for name in scorers if name != "trees"]
    if request.losses and not neural:
        raise ConfigError(
            "--losses names losses, but the only scorer is trees, whose objectives are their own",
            "name a scorer that takes a loss, such as linear, or choose with --ensembles",
        )
    slow = [] if request.ensembles or "trees" not in scorers else budget.get("without", [])
    without = list(dict.fromkeys([*slow, *request.without]))
    losses = [name for name in request.losses or losses if name not in without]
    ensembles = [name for name in request.ensembles or ensembles if name not in without]
    scorers = [name for name in scorers if (ensembles if name == "trees" else losses)]
    if not scorers:
        raise ConfigError("--without leaves out every method", "leave out fewer")
    variants = {name: list(request.losses) for name in neural if request.losses}
    if request.ensembles:
        variants["trees"] = list(request.ensembles)
    made: dict[str, Any] = {"collections": [request.name], "experiments": scorers}
    if variants:
        made["variants"] = {name: variants[name] for name in scorers if name in variants}
    if without:
        made["without"] = without
    overrides = [{"set": budget["set"]}] if budget["set"] else []
    methods = sum(len(ensembles if name == "trees" else losses) for name in scorers)
    said = []
    if slow:
        said.append(
            f"the budget {request.budget} leaves out {' and '.join(slow)}, which take as long as "
            "all other methods together; --ensembles can name them"
        )
    if methods < LEAST_RANKED:
        said.append(
            f"{methods} {'method is' if methods == 1 else 'methods are'} too few to compare, so "
            "figures of differences are left out"
        )
    return {
        "edition": request.name,
        "raw_dir": "data/raw",  # that of the workspace, even if DIRECTRANK_RAW is set
        "record_failures": True,
        "datasets": {},
        "papers": {PAPER: made},
        "overrides": overrides,
    }, said


def _methods(scorer: str) -> list[str]:
    """The methods of a scorer under one protocol."""
    template = paper_experiments(PAPER, repository())["for_each_collection"][scorer]
    variants = template.get("variants") or template["sizes"]["small"]["variants"]
    return [str(label(variant)) for variant in variants]


def _edition_file(path: Path, content: str) -> str | None:
    """The text of the edition's file, which begins with a digest of its own content; None if the
    file was changed by hand and the options are the same.

    Raises:
        ConfigError: it was changed by hand, and the options have changed as well.
    """

    def marked(text: str) -> str:
        return f"# Written by directrank compare ({digest_of(text)[:16]}).\n{text}"

    if path.is_file():
        first, _, old = path.read_text(encoding="utf-8").partition("\n")
        if f"{first}\n{old}" not in (marked(old), marked(content)):
            if marked(content).startswith(first):
                return None
            raise ConfigError(
                f"{path} was changed by hand, and the options differ from those it was written for",
                "delete it, give the same options as before, or name another folder with --out",
            )
    return marked(content)


def _check_grades(asked: int | tuple[float, ...] | None) -> None:
    if isinstance(asked, tuple):
        if not np.isfinite(asked).all() or (np.diff(asked) <= 0).any():
            raise ConfigError(
                f"the cut points {', '.join(f'{cut:g}' for cut in asked)} do not rise",
                "give the labels at which grades 1, 2, … begin, such as --grades 0.1,0.3,0.8",
            )
        asked = len(asked) + 1
    if asked is not None and not 2 <= asked <= HIGHEST_GRADE + 1:
        raise ConfigError(
            f"{asked} grades are too {'few' if asked < 2 else 'many'}",
            f"choose from 2 to {HIGHEST_GRADE + 1}",
        )


def _tables(request: ComparisonRequest) -> dict[str, Table]:
    """The data by split, or under :data:`ALL` if they come without splits."""
    files = _split_files(request.data) if request.data.is_dir() else {ALL: request.data}
    tables = {split: read(file, request.columns) for split, file in files.items()}
    left_out = {name for table in tables.values() for name in table.left_out}
    unknown = [name for name in request.columns.leave_out if name not in left_out]
    if unknown:
        names = next(iter(tables.values())).names
        raise DataError(
            f"has no column '{unknown[0]}' to leave out; the features are {some(names)}",
            "correct --leave-out",
            file=request.data,
        )
    return _with_same_features(tables, files)


def _split_files(folder: Path) -> dict[str, Path]:
    files: dict[str, Path] = {}
    for path in sorted(folder.iterdir()):
        stem, ending = name_and_ending(path)
        word = ending[1:] if ending in BY_SPLIT else stem.lower()
        for split, names in SPLIT_NAMES.items():
            if ending in KNOWN and word in names:
                if split in files:
                    raise DataError(
                        f"both {files[split].name} and {path.name} could be the {split} split",
                        "keep one of them in the folder",
                        file=folder,
                    )
                files[split] = path
    if not {"train", "test"} <= files.keys():
        raise DataError(
            "has no file of training queries and one of test queries",
            f"name them train and test (and vali), with one of the suffixes {', '.join(KNOWN)}",
            file=folder,
        )
    return {split: files[split] for split in SPLITS if split in files}


def _with_same_features(tables: Mapping[str, Table], files: Mapping[str, Path]) -> dict[str, Table]:
    """Tables with the same features in the same order.

    Raises:
        DataError: a split lacks a feature, has another one, or has words in its column.
    """
    first, *others = tables
    names = tables[first].names
    if all(table.sparse for table in tables.values()):
        names = tuple(sorted({name for t in tables.values() for name in t.names}, key=int))
        others = []
    for split in others:
        wrong = []
        for one, other in ((split, first), (first, split)):
            differ = [name for name in tables[other].names if name not in tables[one].names]
            words = [tables[one].words[name] for name in differ if name in tables[one].words]
            lacking = [name for name in differ if name not in tables[one].words]
            if lacking:
                wrong.append(f"{files[one].name} has no column {some(lacking)}")
            if words:
                wrong.append(f"{files[one].name} has words in the column {some(words)}")
        if wrong:
            raise DataError(
                f"has other features than {files[first].name}: {'; '.join(wrong)}",
                "give all splits the same columns, or leave these out: --leave-out NAME …",
                file=files[split],
            )
    return {split: table.with_features(names) for split, table in tables.items()}


def _write_data(
    request: ComparisonRequest, tables: Mapping[str, Table], folder: Path
) -> tuple[dict[str, Any], list[str]]:
    """Write the files of a data set; return its catalogue entry and remarks for the user."""
    first = next(iter(tables.values()))
    remarks = _remarks(tables)
    tables = {
        split: table.with_rows(
            neutral_order(table.features, table.labels, table.queries, sort=split == ALL)
        )
        for split, table in tables.items()
    }
    documents = np.cumsum([0, *(len(table.labels) for table in tables.values())])
    labels = np.concatenate([table.labels for table in tables.values()])
    grades, cut = graded(labels, next(iter(tables.values())).labels, request.grades)
    if isinstance(request.grades, tuple) and not grades.any():
        raise ConfigError(
            f"no label reaches the first cut point, {request.grades[0]:g}: the largest is "
            f"{labels.max():g}",
            "give --grades labels at which grades begin",
        )
    numbers, queries = _numbered_queries(tables)
    for (split, table), begin, end in zip(
        tables.items(), documents[:-1], documents[1:], strict=True
    ):
        _write_lists(folder / f"{split}.txt", grades[begin:end], numbers[begin:end], table.features)
    folds = (request.folds or BUDGETS[request.budget]["folds"]) if ALL in tables else None
    _refuse_unusable(request, tables, grades, numbers, folds)
    entry: dict[str, Any] = {
        "features": len(first.names),
        "label_levels": max(2, int(grades.max()) + 1),
        "text": {"lines": "table"},
        "sha256": {split: sha256_of(folder / f"{split}.txt") for split in tables},
        "expect": {"total": {"queries": len(queries), "documents": len(labels)}},
    }
    said = [
        f"{len(queries)} queries, {len(labels)} documents, {len(first.names)} features, labels "
        f"{labels.min():g} to {labels.max():g}",
        f"the features are {some(first.names)}",
    ]
    if folds is not None:
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
    said += [*cut, *remarks]
    names = pd.DataFrame({"feature": np.arange(1, len(first.names) + 1), "name": first.names})
    write_text(folder / "features.csv", names.to_csv(index=False))
    write_text(folder / "queries.csv", queries.to_csv(index=False))
    return entry, said


def _refuse_unusable(
    request: ComparisonRequest,
    tables: Mapping[str, Table],
    grades: np.ndarray,
    numbers: np.ndarray,
    folds: int | None,
) -> None:
    files, begin = {}, 0
    for split, table in tables.items():
        rows = slice(begin, begin := begin + len(table.labels))
        groups = None if table.groups is None else _numbered(np.asarray(table.groups))[0]
        files[split] = QuerySummary.of(grades[rows], numbers[rows], groups)
    changes = BUDGETS[request.budget]["set"]
    refuse_unusable(request.data, request.name, files, folds, VALI_FROM_TRAIN, changes)


def _remarks(tables: Mapping[str, Table]) -> list[str]:
    """Sentences that say what was changed in the data or left out, and what looks strange."""
    said = list(dict.fromkeys(remark for table in tables.values() for remark in table.remarks))
    words = {name: word for table in tables.values() for name, word in table.words.items()}
    if words:
        said.append(
            "these columns are left out because they are not numeric; the first row and value that "
            f"is not a number: {', '.join(words.values())}"
        )
    missing = sum(table.missing for table in tables.values())
    if missing:
        values = "value is" if missing == 1 else "values are"
        said.append(f"{missing} missing feature {values} replaced by 0")
    said.append(
        "the documents of a query are put in an order drawn from a hash of their features, because "
        "their order breaks ties between scores and must tell nothing about labels"
    )
    first = next(iter(tables.values()))
    return said + list(suspicious(first.features, first.labels, first.queries, first.names))


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
