"""Features of judged pairs of query and document, from the words of the document's fields.

They are of the kinds that LETOR has: coverage, BM25, the cosine of TF-IDF vectors and language
models of each field; lengths; pairs of adjacent words and character trigrams. ``docs/msrd.md`` has
their formulas.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import TfidfTransformer

from directrank.data.text.judged import Judged
from directrank.data.text.words import Counts, Pairs, bigrams, trigrams, words

#: Features of all pairs, float ``[N]`` each, with their names.
Named = Iterator[tuple[str, np.ndarray]]

K1, B = 1.2, 0.75  # BM25
JELINEK_MERCER = 0.5  # weight of the collection's model

#: The field that holds the words of all others.
ALL = "all"


@dataclass(frozen=True)
class Texts:
    """The words of queries and documents, and the judged pairs.

    Attributes:
        queries: the words of each query.
        fields: for each field, and for :data:`ALL` of them, the words of each document.
        query, document: int64 ``[N]``, the pairs; those of a query are contiguous.
    """

    queries: Sequence[list[str]]
    fields: Mapping[str, Sequence[list[str]]]
    query: np.ndarray
    document: np.ndarray

    @classmethod
    def of(
        cls, collection: Judged, fields: Mapping[str, Callable[[Mapping[str, Any]], str]]
    ) -> Texts:
        """The words of a collection; ``fields`` has, by name, what gives a document's text."""
        found = {
            name: [words(text(document)) for document in collection.documents]
            for name, text in fields.items()
        }
        found[ALL] = [[*chain.from_iterable(texts)] for texts in zip(*found.values(), strict=True)]
        queries = [words(query) for query in collection.queries]
        return cls(queries, found, collection.query, collection.document)


def stacked(named: Named) -> tuple[list[str], np.ndarray]:
    """Names of the features, and float32 ``[N, F]``."""
    names, values = zip(*named, strict=True)
    return list(names), np.stack(values, 1).astype("f4")


def terms(texts: Texts, *, short: Collection[str], mixed: Collection[str]) -> Named:
    """Coverage, BM25, TF-IDF and language models of each field.

    Args:
        texts: the words.
        short: fields of a few words, of which coverage says everything.
        mixed: fields that also get the language model of Jelinek and Mercer.
    """
    pairs = Pairs(texts.queries, texts.query, texts.document)
    everywhere = _idf(Counts(texts.fields[ALL], pairs.vocabulary))
    for name, field in texts.fields.items():
        counts = Counts(field, pairs.vocabulary)
        yield f"{name}.coverage", _coverage(pairs, counts, everywhere)
        if name in short:
            continue
        yield f"{name}.bm25", pairs.sums(_bm25(counts))
        yield f"{name}.tfidf", _cosine(pairs, counts)
        yield f"{name}.lm_dirichlet", _dirichlet(pairs, counts)
        if name in mixed:
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


def phrases(texts: Texts, fields: Sequence[str]) -> Named:
    """Share of the query's pairs of adjacent words that each of ``fields`` has."""
    pairs = Pairs([bigrams(query) for query in texts.queries], texts.query, texts.document)
    for name in fields:
        counts = Counts([bigrams(text) for text in texts.fields[name]], pairs.vocabulary)
        present = counts.weighted(np.ones_like(counts.tf.data))
        yield f"{name}.bigrams", pairs.sums(present) / pairs.n_terms


def characters(texts: Texts, fields: Sequence[str], main: str) -> Named:
    """Character trigrams that query and field share, so that misspelt words still count.

    Those of the field ``main`` are also compared with all trigrams of either and of the field.
    """
    pairs = Pairs([trigrams(query) for query in texts.queries], texts.query, texts.document)
    for name in fields:
        counts = Counts([trigrams(text) for text in texts.fields[name]], pairs.vocabulary)
        common = pairs.sums(counts.tf)
        yield f"{name}.trigrams", common / pairs.n_terms
        if name == main:
            length = counts.length[texts.document]
            either = pairs.n_terms + length - common
            yield f"{name}.trigrams_jaccard", common / np.maximum(1, either)
            yield f"{name}.trigrams_covered", common / np.maximum(1, length)


def lengths(texts: Texts, fields: Sequence[str]) -> Named:
    """The number of words of each of ``fields`` and of the query."""
    for name in fields:
        of_field = np.array([len(text) for text in texts.fields[name]], np.float64)
        yield f"{name}.length", of_field[texts.document]
    of_query = np.array([len(query) for query in texts.queries], np.float64)
    yield "query.length", of_query[texts.query]
