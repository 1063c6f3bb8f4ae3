"""The features of MSRD's pairs of query and movie, each with its name; ``docs/msrd.md`` has them.

Beside those of the words of fields: matches of the title, of numbers and of names, and facts about
the movie.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np

from directrank.data.archives import Archive
from directrank.data.msrd.source import answers, communities, folds, read
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
from directrank.data.text.judged import Judged, as_lists
from directrank.data.text.words import words
from directrank.lists.packed import RankedLists

#: The fields of a movie's text, and the keys from which each is made.
FIELDS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "title": lambda movie: movie["title"],
    "overview": lambda movie: movie["overview"] or "",
    "tags": lambda movie: " ".join(movie["tags"]),
    "people": lambda movie: " ".join([movie["director"] or "", *movie["actors"]]),
    "characters": lambda movie: " ".join(movie["characters"]),
    "genres": lambda movie: " ".join(movie["genres"]),
}


def features(collection: Judged) -> tuple[list[str], np.ndarray]:
    """Names of the features, and float32 ``[N, F]``."""
    texts = Texts.of(collection, FIELDS)
    return stacked(
        chain(
            terms(texts, short=("genres",), mixed=("title", "overview", ALL)),
            phrases(texts, ("title", "people", ALL)),
            characters(texts, ("title", "people", "characters"), main="title"),
            _matches(texts, collection),
            lengths(texts, ("title", "overview")),
            _facts(collection),
        )
    )


def _matches(texts: Texts, collection: Judged) -> Named:
    """Matches of the title as a whole, of numbers, of the year and of the director's surname."""
    movies = zip(collection.documents, texts.fields["title"], strict=True)
    titles = [_Title(movie, text) for movie, text in movies]
    asked = [_Query(query) for query in texts.queries]
    values = np.zeros((len(MATCHES), len(collection.query)))
    pairs = zip(collection.query.tolist(), collection.document.tolist(), strict=True)
    for number, (query, movie) in enumerate(pairs):
        values[:, number] = _matched(asked[query], titles[movie])
    yield from zip(MATCHES, values, strict=True)


#: What :func:`_matched` returns.
MATCHES = (
    "title.exact",
    "title.in_query",
    "query.in_title",
    "title.starts_query",
    "title.head_in_query",
    "title.covered",
    "title.longest_run",
    "title.number",
    "year.match",
    "director.surname",
)


class _Title:
    """The parts of a title with which a query is compared."""

    def __init__(self, movie: Mapping[str, Any], title: list[str]) -> None:
        head = re.split(r"[:(–-]", movie["title"])[0]
        surname = words(movie["director"] or "")[-1:]
        self.words = set(title)
        self.text = f" {' '.join(title)} "
        self.head = f" {' '.join(words(head))} "
        self.numbers = {word for word in title if word.isdecimal() and len(word) < 3}
        self.year = str(int(movie["year"]))
        self.surname = f" {surname[0]} " if surname else ""


class _Query:
    """The parts of a query with which a title is compared."""

    def __init__(self, query: list[str]) -> None:
        self.words = query
        self.text = f" {' '.join(query)} "
        self.numbers = {word for word in query if word.isdecimal() and len(word) < 3}
        self.years = {word for word in query if re.fullmatch(r"(19|20)\d\d", word)}


def _matched(query: _Query, title: _Title) -> tuple[float, ...]:
    """The features :data:`MATCHES` of a pair; 0 where there is nothing to compare."""
    some = bool(title.words)
    numbers = years = 0.0
    if query.numbers or title.numbers:
        numbers = 1.0 if query.numbers == title.numbers else -1.0
    if query.years:
        years = 1.0 if title.year in query.years else -1.0
    return (
        query.text == title.text,
        some and title.text in query.text,
        bool(query.words) and query.text in title.text,
        some and query.text.startswith(title.text),
        len(title.head) > 2 and title.head in query.text,
        len(title.words.intersection(query.words)) / max(1, len(title.words)),
        _longest_run(query.words, title.text),
        numbers,
        years,
        bool(title.surname) and title.surname in query.text,
    )


def _longest_run(query: Sequence[str], title: str) -> int:
    """The length of the longest run of adjacent query words that also occurs in the title."""
    for length in range(len(query), 0, -1):
        starts = range(len(query) - length + 1)
        if any(f" {' '.join(query[start : start + length])} " in title for start in starts):
            return length
    return 0


def _facts(collection: Judged) -> Named:
    """What is known of the movie; counts and sums of money as ``ln(1 + x)``."""
    facts = {
        key: np.array([movie[key] for movie in collection.documents], np.float64)[
            collection.document
        ]
        for key in ("votes", "popularity", "rating", "year", "budget")
    }
    for key in ("votes", "popularity", "budget"):
        yield key, np.log1p(np.maximum(0, facts[key]))
    yield "rating", facts["rating"]
    yield "year", np.where(facts["year"] > 1800, facts["year"] - 2000, 0)  # 0 means not known


def extract(
    archive: Archive, parts: int, note: Callable[[str], None]
) -> tuple[list[RankedLists], dict[str, Any]]:
    """The parts of the collection from which folds are made, and what the record says about them.

    Queries whose answers lie in several parts are left out and counted. Nothing is random.

    Args:
        archive: the archive of the catalogue's entry.
        parts: the number of parts.
        note: called with a short description of each step.

    Returns:
        The lists of each part, and a mapping with ``feature_names`` and ``omitted``, the number of
        items that were left out for each reason.

    Raises:
        DataError: see :func:`directrank.data.msrd.source.read`.
    """
    note("reading movies and judgements")
    collection = read(archive)
    note("finding groups of queries")
    answering = answers(collection)
    group, part = folds(answering, communities(answering, len(collection.documents)), parts)
    note(f"extracting features of {len(collection.labels)} pairs")
    names, values = features(collection)
    whole = as_lists(collection, values, group)
    omitted = dict(collection.omitted)
    spanning = int((part < 0).sum())
    if spanning:
        omitted["queries whose answers lie in several parts"] = spanning
    lists = [whole.select(np.flatnonzero(part == number)) for number in range(parts)]
    return lists, {"feature_names": names, "omitted": omitted}
