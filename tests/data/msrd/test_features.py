"""MSRD's features against sums over words, pair by pair, and against an independent library."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer

from directrank.data.archives import open_archive
from directrank.data.msrd.features import FIELDS, features
from directrank.data.msrd.source import read
from directrank.data.text.words import trigrams, words
from msrd_archive import write


@pytest.fixture(scope="module")
def extracted(tmp_path_factory):
    collection = read(open_archive(write(tmp_path_factory.mktemp("msrd") / "MSRD.zip")))
    names, values = features(collection)
    return collection, dict(zip(names, values.T, strict=True))


def pairs(collection):
    """Position, words of the query, and movie of each pair."""
    judged = zip(collection.query, collection.document, strict=True)
    for number, (query, movie) in enumerate(judged):
        yield number, words(collection.queries[query]), movie


def texts(collection, field):
    return [words(FIELDS[field](movie)) for movie in collection.documents]


def test_every_feature_has_a_name_of_its_own_and_is_finite(extracted):
    collection, values = extracted
    assert len(values) == 54
    for column in values.values():
        assert column.shape == collection.labels.shape
        assert column.dtype == np.float32
        assert np.isfinite(column).all()


@pytest.mark.parametrize("field", ["title", "overview"])
def test_bm25_is_the_sum_over_the_words_of_the_query(extracted, field):
    collection, values = extracted
    documents = texts(collection, field)
    mean = sum(map(len, documents)) / len(documents)
    for number, query, movie in pairs(collection):
        expected = 0.0
        for word in query:
            df = sum(word in text for text in documents)
            idf = math.log(1 + (len(documents) - df + 0.5) / (df + 0.5))
            tf = documents[movie].count(word)
            norm = 1 - 0.75 + 0.75 * len(documents[movie]) / mean
            expected += idf * tf * 2.2 / (tf + 1.2 * norm)
        assert values[f"{field}.bm25"][number] == pytest.approx(expected, rel=1e-5, abs=1e-6)


def test_language_models_are_sums_over_the_words_of_the_query(extracted):
    collection, values = extracted
    documents = texts(collection, "title")
    vocabulary = {word for query in collection.queries for word in words(query)}
    total = sum(map(len, documents))
    mu = max(10.0, 10 * total / len(documents))
    for number, query, movie in pairs(collection):
        text = documents[movie]
        dirichlet = mercer = 0.0
        for word in query:
            count = sum(other.count(word) for other in documents)
            background = (count + 0.5) / (total + 0.5 * len(vocabulary))
            model = (text.count(word) + mu * background) / (len(text) + mu)
            dirichlet += math.log(model / background) / len(query)
            mixed = 0.5 * text.count(word) / len(text) + 0.5 * background
            mercer += math.log(mixed / (0.5 * background)) / len(query)
        assert values["title.lm_dirichlet"][number] == pytest.approx(dirichlet, rel=1e-4, abs=1e-6)
        assert values["title.lm_jelinek_mercer"][number] == pytest.approx(
            mercer, rel=1e-4, abs=1e-6
        )


def test_tfidf_is_the_cosine_of_scikit_learns_vectors(extracted):
    collection, values = extracted
    vocabulary = sorted({word for query in collection.queries for word in words(query)})
    vectors = TfidfVectorizer(analyzer=words, vocabulary=vocabulary, sublinear_tf=True)
    of_movies = vectors.fit_transform([FIELDS["overview"](movie) for movie in collection.documents])
    of_queries = vectors.transform(collection.queries)
    cosines = (of_queries @ of_movies.T).toarray()[collection.query, collection.document]
    np.testing.assert_allclose(values["overview.tfidf"], cosines, rtol=1e-5, atol=1e-6)


def test_trigrams_are_compared_as_sets(extracted):
    collection, values = extracted
    documents = texts(collection, "title")
    for number, query, movie in pairs(collection):
        ours, theirs = set(trigrams(query)), set(trigrams(documents[movie]))
        jaccard = len(ours & theirs) / len(ours | theirs)
        assert values["title.trigrams_jaccard"][number] == pytest.approx(jaccard, rel=1e-5)
        assert values["title.trigrams"][number] == pytest.approx(len(ours & theirs) / len(ours))


def at(extracted, query_id, movie_id, name):
    collection, values = extracted
    for number, (query, movie) in enumerate(
        zip(collection.query, collection.document, strict=True)
    ):
        here = (collection.query_ids[query], collection.documents[movie]["id"])
        if here == (query_id, movie_id):
            return float(values[name][number])
    raise AssertionError((query_id, movie_id))


def test_a_sequels_number_matches_in_any_notation(extracted):
    assert at(extracted, 7, "2", "title.number") == 1
    assert at(extracted, 7, "1", "title.number") == -1
    assert at(extracted, 2, "3", "title.number") == 0


def test_accents_years_surnames_and_titles_match(extracted):
    assert at(extracted, 2, "3", "title.exact") == 1
    assert at(extracted, 4, "6", "title.starts_query") == 1
    assert at(extracted, 4, "6", "year.match") == 1
    assert at(extracted, 4, "3", "year.match") == -1
    assert at(extracted, 3, "1", "director.surname") == 1
    assert at(extracted, 3, "6", "director.surname") == 0
    assert at(extracted, 3, "2", "title.longest_run") == 2
