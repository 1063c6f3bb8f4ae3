"""WANDS, Wayfair's product search: from its files to features, and folds of related queries.

Source: Chen et al., "WANDS: Dataset for Product Search Relevance Assessment", ECIR 2022.
``docs/wands.md`` has the features.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from directrank.data.archives import Archive
from directrank.data.deal import deal
from directrank.data.text.features import (
    ALL,
    Named,
    Texts,
    characters,
    lengths,
    phrases,
    stacked,
    terms,
)
from directrank.data.text.judged import Judged, arranged, as_lists
from directrank.lists.packed import RankedLists
from directrank.system.errors import DataError

GRADES = {"Irrelevant": 0, "Partial": 1, "Exact": 2}

#: The fields of a product's text, and the columns from which each is made.
FIELDS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "name": lambda product: product["product_name"],
    "class": lambda product: product["product_class"],
    "category": lambda product: product["category hierarchy"],
    "description": lambda product: product["product_description"],
    "attributes": lambda product: _values(product["product_features"]),
}
#: Columns that hold numbers; an empty field counts as 0.
NUMBERS = ("rating_count", "average_rating", "review_count")
_TEXTS = (
    "product_name",
    "product_class",
    "category hierarchy",
    "product_description",
    "product_features",
)

_AGAIN = "get the file again from the page of the data set"


def _values(attributes: str) -> str:
    """The values of ``name:value|name:value``; the names are the same for most products."""
    return " ".join(pair.partition(":")[2] for pair in attributes.split("|"))


def read(archive: Archive) -> tuple[Judged, np.ndarray]:
    """Read the collection.

    A document is a product, with its columns; its label is 2 where it was judged to be exactly what
    the query asks for, 1 where partially. Of several judgements of a pair the highest grade counts.

    Returns:
        The collection, and the group of each query, int64 ``[Q]``: queries for the same class of
        products, whose judged products are largely the same. A query without a class is a group of
        its own.

    Raises:
        DataError: a file is missing, or a line is malformed; the message names file and line.
    """
    products = []
    known: set[str] = set()
    for where, line, row in _rows(archive, "product.csv", ("product_id", *_TEXTS, *NUMBERS)):
        if row["product_id"] in known:
            raise _wrong(f"gives product {row['product_id']} a second time", where, line)
        known.add(row["product_id"])
        numbers = {key: _number(row[key], where, line) for key in NUMBERS}
        products.append({"id": row["product_id"], **row, **numbers})
    texts: dict[int, str] = {}
    classes: dict[int, str] = {}
    for where, line, row in _rows(archive, "query.csv", ("query_id", "query", "query_class")):
        if not row["query_id"].isdecimal():
            raise _wrong(f"'{row['query_id']}' is not a query's id", where, line)
        number = int(row["query_id"])
        if number in texts:
            raise _wrong(f"gives query {number} a second time", where, line)
        if not row["query"].strip():
            raise _wrong(f"query {number} has no text", where, line)
        texts[number], classes[number] = row["query"], row["query_class"]
    grades: dict[int, dict[str, int]] = {number: {} for number in texts}
    unknown = repeated = 0
    for where, line, row in _rows(archive, "label.csv", ("query_id", "product_id", "label")):
        if row["label"] not in GRADES:
            raise _wrong(f"the label is '{row['label']}', not {', '.join(GRADES)}", where, line)
        query, product, grade = row["query_id"], row["product_id"], GRADES[row["label"]]
        of_query = grades.get(int(query)) if query.isdecimal() else None
        if of_query is None or product not in known:
            unknown += 1
            continue
        repeated += product in of_query
        of_query[product] = max(grade, of_query.get(product, 0))
    omitted = {
        "judgements of a query or product that is not there": unknown,
        "judgements of a pair that is judged several times": repeated,
    }
    collection = arranged(products, texts, grades, omitted)
    return collection, _groups([(n, classes[n]) for n in collection.query_ids.tolist()])


def _groups(queries: list[tuple[int, str]]) -> np.ndarray:
    """The smallest id of a query of the same class; its own for a query without a class."""
    first: dict[str, int] = {}
    return np.array(
        [first.setdefault(name, number) if name else number for number, name in queries], np.int64
    )


def _number(text: str, where: Path, line: int) -> float:
    try:
        value = float(text or 0)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise _wrong(f"'{text}' is not a number", where, line)
    return value


def _rows(
    archive: Archive, name: str, columns: tuple[str, ...]
) -> Iterator[tuple[Path, int, dict[str, str]]]:
    """File, line and fields of every row of a tab-separated file with the names of columns."""
    members = [member for member in archive.members if member.split("/")[-1] == name]
    if len(members) != 1:
        raise DataError(
            f"holds {len(members)} files {name}",
            "it must hold one of each file that the page of the data set names",
            file=archive.path,
        )
    where = archive.path / members[0]
    with archive.open(members[0]) as stream:
        rows = csv.reader(
            io.TextIOWrapper(io.BufferedReader(stream), encoding="utf-8-sig", newline=""),
            delimiter="\t",
        )
        try:
            head = next(rows, [])
            missing = [column for column in columns if column not in head]
            if missing:
                raise _wrong(f"has no column '{missing[0]}'", where, 1)
            for row in rows:
                if len(row) != len(head):
                    message = f"has {len(row)} fields, expected {len(head)}"
                    raise _wrong(message, where, rows.line_num)
                yield where, rows.line_num, dict(zip(head, row, strict=True))
        except (csv.Error, UnicodeDecodeError) as error:
            raise _wrong(f"is damaged: {error}", where, rows.line_num) from None


def _wrong(what: str, where: Path, line: int) -> DataError:
    return DataError(what, _AGAIN, file=where, line=line)


def features(collection: Judged) -> tuple[list[str], np.ndarray]:
    """Names of the features, and float32 ``[N, F]``."""
    texts = Texts.of(collection, FIELDS)
    return stacked(
        chain(
            terms(texts, short=("class",), mixed=("name", "description", ALL)),
            phrases(texts, ("name", "description", ALL)),
            characters(texts, ("name", "class"), main="name"),
            lengths(texts, ("name", "description")),
            _facts(collection),
        )
    )


def _facts(collection: Judged) -> Named:
    """Ratings and reviews of the product; counts as ``ln(1 + x)``."""
    for key in NUMBERS:
        values = np.array([product[key] for product in collection.documents], np.float64)
        of_pairs = values[collection.document]
        yield key, of_pairs if key == "average_rating" else np.log1p(np.maximum(0, of_pairs))


def extract(
    archive: Archive, parts: int, note: Callable[[str], None]
) -> tuple[list[RankedLists], dict[str, Any]]:
    """The parts of the collection from which folds are made, and what the record says about them.

    Queries for one class of products are in the same part.

    Args:
        archive: the archive of the catalogue's entry.
        parts: the number of parts.
        note: called with a short description of each step.

    Returns:
        The lists of each part, and a mapping with ``feature_names`` and ``omitted``, the number of
        items that were left out for each reason.

    Raises:
        DataError: see :func:`read`.
    """
    note("reading products and judgements")
    collection, group = read(archive)
    part = deal(group, parts, "wands")
    note(f"extracting features of {len(collection.labels)} pairs")
    names, values = features(collection)
    whole = as_lists(collection, values, group)
    lists = [whole.select(np.flatnonzero(part == number)) for number in range(parts)]
    return lists, {"feature_names": names, "omitted": collection.omitted}
