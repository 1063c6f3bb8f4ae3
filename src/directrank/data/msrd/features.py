"""The features of MSRD's pairs of query and movie, each with its name; ``docs/msrd.md`` has them.

They are of the kinds that LETOR has: coverage, BM25, the cosine of TF-IDF vectors and language
models of each field; lengths; matches of phrases, numbers and names; and facts about the movie."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import TfidfTransformer

from directrank.data.archives import Archive
from directrank.data.msrd.source import Movies, answers, communities, folds, read
from directrank.data.msrd.text import Counts, Pairs, bigrams, trigrams, words
from directrank.lists.packed import RankedLists

Named = Iterator[tuple[str, np.ndarray]]

K1, B = 1.2, 0.75  # BM25
JELINEK_MERCER = 0.5  # weight of the collection's model

#: The fields of a movie's text, and the keys from which each is made.
FIELDS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "title": lambda movie: movie["title"],
    "overview": lambda movie: movie["overview"] or "",
    "tags": lambda movie: " ".join(movie["tags"]),
    "people": lambda movie: " ".join([movie["director"] or "", *movie["actors"]]),
    "characters": lambda movie: " ".join(movie["characters"]),
    "genres": lambda movie: " ".join(movie["genres"]),
}
ALL = "all"


def features(collection: Movies) -> tuple[list[str], np.ndarray]:
    """Names of the features, and float32 ``[N, F]``."""
    fields = {
        name: [words(text(movie)) for movie in collection.movies] for name, text in FIELDS.items()
    }
    fields[ALL] = [[*chain.from_iterable(texts)] for texts in zip(*fields.values(), strict=True)]
    queries = [words(query) for query in collection.queries]
    named = [
        *_terms(queries, fields, collection),
        *_phrases(queries, fields, collection),
        *_characters(queries, fields, collection),
        *_matches(queries, fields, collection),
        *_facts(fields, queries, collection),
    ]
    return [name for name, _ in named], np.stack([values for _, values in named], 1).astype("f4")


def _terms(
    queries: Sequence[list[str]], fields: Mapping[str, list[list[str]]], collection: Movies
) -> Named:
    """Coverage, BM25, TF-IDF and language models of each field."""
    pairs = Pairs(queries, collection.query, collection.movie)
    everywhere = _idf(Counts(fields[ALL], pairs.vocabulary))
    for name, texts in fields.items():
        counts = Counts(texts, pairs.vocabulary)
        yield f"{name}.coverage", _coverage(pairs, counts, everywhere)
        if name == "genres":
            continue  # coverage says everything about a list of a few words
        yield f"{name}.bm25", pairs.sums(_bm25(counts))
        yield f"{name}.tfidf", _cosine(pairs, counts)
        yield f"{name}.lm_dirichlet", _dirichlet(pairs, counts)
        if name in (ALL, "title", "overview"):
            yield f"{name}.lm_jelinek_mercer", _jelinek_mercer(pairs, counts)


def _idf(counts: Counts) -> np.ndarray:
    """``ln(1 + (M - df + 1/2) / (df + 1/2))``, as in BM25."""
    return np.log(1 + (len(counts.length) - counts.df + 0.5) / (counts.df + 0.5))


def _coverage(pairs: Pairs, counts: Counts, idf: np.ndarray) -> np.ndarray:
    """Share of the query's terms that the field has, each weighted by its idf in all fields."""
    present = counts.weighted(idf[counts.tf.indices])
    return pairs.sums(present) / np.maximum(1e-9, pairs.of_query(idf))


def _bm25(counts: Counts) -> Any:
    tf = counts.tf.data
    norm = 1 - B + B * counts.length[counts.rows] / max(1e-9, counts.length.mean())
    return counts.weighted(_idf(counts)[counts.tf.indices] * tf * (K1 + 1) / (tf + K1 * norm))


def _cosine(pairs: Pairs, counts: Counts) -> np.ndarray:
    """The cosine of TF-IDF vectors with ``1 + ln tf``, over the terms that any query has."""
    transform = TfidfTransformer(sublinear_tf=True).fit(counts.tf)
    of_texts = transform.transform(counts.tf)
    of_queries = transform.transform(pairs.of_queries.tf)
    return pairs.sums(of_texts, of_queries)


def _background(counts: Counts) -> np.ndarray:
    """The collection's model of terms, with one half added to each count."""
    return (counts.cf + 0.5) / (counts.length.sum() + 0.5 * len(counts.cf))


def _dirichlet(pairs: Pairs, counts: Counts) -> np.ndarray:
    """``Σ_t ln((tf + μ c_t) / ((|d| + μ) c_t)) / |q|`` with μ ten times the field's mean length."""
    mu = float(np.clip(10 * counts.length.mean(), 10, 2000))
    background = _background(counts)
    present = counts.weighted(np.log1p(counts.tf.data / (mu * background[counts.tf.indices])))
    length = np.log(mu / (counts.length + mu))[pairs.text]
    return pairs.sums(present) / pairs.n_terms + length


def _jelinek_mercer(pairs: Pairs, counts: Counts) -> np.ndarray:
    """``Σ_t ln(1 + (1 - λ) tf / (λ |d| c_t)) / |q|``."""
    share = counts.tf.data / np.maximum(1, counts.length)[counts.rows]
    background = _background(counts)[counts.tf.indices]
    ratio = (1 - JELINEK_MERCER) * share / (JELINEK_MERCER * background)
    return pairs.sums(counts.weighted(np.log1p(ratio))) / pairs.n_terms


def _phrases(
    queries: Sequence[list[str]], fields: Mapping[str, list[list[str]]], collection: Movies
) -> Named:
    """Share of the query's pairs of adjacent words that a field has."""
    pairs = Pairs([bigrams(query) for query in queries], collection.query, collection.movie)
    for name in ("title", "people", ALL):
        counts = Counts([bigrams(text) for text in fields[name]], pairs.vocabulary)
        present = counts.weighted(np.ones_like(counts.tf.data))
        yield f"{name}.bigrams", pairs.sums(present) / pairs.n_terms


def _characters(
    queries: Sequence[list[str]], fields: Mapping[str, list[list[str]]], collection: Movies
) -> Named:
    """Character trigrams that query and field share, so that misspelt words still count."""
    pairs = Pairs([trigrams(query) for query in queries], collection.query, collection.movie)
    for name in ("title", "people", "characters"):
        counts = Counts([trigrams(text) for text in fields[name]], pairs.vocabulary)
        common = pairs.sums(counts.tf)
        yield f"{name}.trigrams", common / pairs.n_terms
        if name == "title":
            length = counts.length[collection.movie]
            yield "title.trigrams_jaccard", common / np.maximum(1, pairs.n_terms + length - common)
            yield "title.trigrams_covered", common / np.maximum(1, length)


def _matches(
    queries: Sequence[list[str]], fields: Mapping[str, list[list[str]]], collection: Movies
) -> Named:
    """Matches of the title as a whole, of numbers, of the year and of the director's surname."""
    movies = zip(collection.movies, fields["title"], strict=True)
    titles = [_Title(movie, text) for movie, text in movies]
    asked = [_Query(query) for query in queries]
    values = np.zeros((len(MATCHES), len(collection.query)))
    pairs = zip(collection.query.tolist(), collection.movie.tolist(), strict=True)
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


def _facts(
    fields: Mapping[str, list[list[str]]], queries: Sequence[list[str]], collection: Movies
) -> Named:
    """Lengths, and what is known of the movie; counts and sums of money as ``ln(1 + x)``."""
    for name in ("title", "overview"):
        lengths = np.array([len(text) for text in fields[name]], np.float64)
        yield f"{name}.length", lengths[collection.movie]
    yield "query.length", np.array([len(query) for query in queries], np.float64)[collection.query]
    facts = {
        key: np.array([movie[key] for movie in collection.movies], np.float64)[collection.movie]
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
    group, part = folds(answering, communities(answering, len(collection.movies)), parts)
    note(f"extracting features of {len(collection.labels)} pairs")
    names, values = features(collection)
    whole = as_lists(collection, values, group)
    omitted = dict(collection.omitted)
    spanning = int((part < 0).sum())
    if spanning:
        omitted["queries whose answers lie in several parts"] = spanning
    lists = [whole.select(np.flatnonzero(part == number)) for number in range(parts)]
    return lists, {"feature_names": names, "omitted": omitted}


def as_lists(collection: Movies, values: np.ndarray, group: np.ndarray) -> RankedLists:
    """All queries with the features ``values``, float32 ``[N, F]``."""
    offsets = np.searchsorted(collection.query, np.arange(len(collection.queries) + 1))
    return RankedLists(
        features=values,
        labels=collection.labels,
        offsets=offsets.astype(np.int64),
        query_ids=collection.query_ids,
        groups=group,
    )
