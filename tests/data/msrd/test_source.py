"""Reading MSRD's files: what is left out is counted, what is wrong is named."""

from __future__ import annotations

import random

import numpy as np
import pytest

from directrank.data.archives import open_archive
from directrank.data.msrd.source import read
from directrank.system.errors import DataError
from msrd_archive import JUDGEMENTS, MOVIES, lines, movie, write


def test_judgements_of_a_query_lie_together_in_the_order_of_their_ids(tmp_path):
    collection = read(open_archive(write(tmp_path / "MSRD.zip")))
    assert collection.query_ids.tolist() == [2, 3, 4, 7, 9]
    assert collection.queries[3] == "godfather 2"
    assert (np.diff(collection.query) >= 0).all()
    grades = {
        (int(collection.query_ids[q]), collection.documents[m]["id"]): label
        for q, m, label in zip(
            collection.query, collection.document, collection.labels, strict=True
        )
    }
    expected = {(int(q.split(":")[1]), m): float(grade) for q, _, m, grade in JUDGEMENTS}
    assert grades == expected
    assert collection.omitted == {}


def test_the_order_of_the_file_tells_nothing(tmp_path):
    first = read(open_archive(write(tmp_path / "a.zip")))
    shuffled = random.Random(1).sample(JUDGEMENTS, len(JUDGEMENTS))
    second = read(open_archive(write(tmp_path / "b.zip", judgements=lines(shuffled))))
    np.testing.assert_array_equal(first.document, second.document)
    np.testing.assert_array_equal(first.labels, second.labels)


def test_what_is_left_out_is_counted(tmp_path):
    more = [
        *JUDGEMENTS,
        ("qid:7", "godfather 2", "99", 0),
        ("qid:7", "godfather 2", "2", 1),
        ("qid:50", "a film that is not there", "98", 0),
    ]
    collection = read(open_archive(write(tmp_path / "MSRD.zip", judgements=lines(more))))
    assert len(collection.labels) == len(JUDGEMENTS)
    assert collection.omitted == {
        "judgements of a movie that is not in the corpus": 2,
        "judgements that are given twice": 1,
        "queries without a judgement that is left": 1,
    }


def without(key: str) -> dict:
    broken = movie(*MOVIES[1])
    del broken[key]
    return broken


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ('{"id": "2", "title"', "is not JSON"),
        (without("overview"), "movie 2 has no text 'overview'"),
        (without("actors"), "movie 2 has no list of texts 'actors'"),
        (without("year"), "movie 2 has no number 'year'"),
        (without("id"), "is not a movie with an id"),
        (movie(*MOVIES[1]) | {"title": ""}, "movie 2 has an empty title"),
        (movie(*MOVIES[0]), "gives movie 1 a second time"),
    ],
)
def test_a_broken_movie_is_named_with_file_and_line(tmp_path, broken, message):
    corpus = [movie(*MOVIES[0]), broken]
    with pytest.raises(DataError, match=message) as caught:
        read(open_archive(write(tmp_path / "MSRD.zip", corpus=corpus)))
    assert caught.value.line == 2
    assert "movies-corpus.jsonl.gz" in str(caught.value)
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ("qid:1\tgodfather\t1", "has 3 fields"),
        ("query 1\tgodfather\t1\t1", "is not a query's id"),
        ("qid:1\tgodfather\t1\t3", "the grade is '3'"),
        ("qid:1\t \t1\t1", "query 1 has no text"),
        ("qid:7\tanother text\t1\t1", "gives query 7 a second text"),
        ("qid:7\tgodfather 2\t2\t0", "judges movie 2 of query 7 twice, and differently"),
    ],
)
def test_a_broken_judgement_is_named_with_file_and_line(tmp_path, broken, message):
    text = [*lines(), broken]
    with pytest.raises(DataError, match=message) as caught:
        read(open_archive(write(tmp_path / "MSRD.zip", judgements=text)))
    assert caught.value.line == len(text)
    assert "movies-judgments.tsv.gz" in str(caught.value)


def test_another_head_line_is_refused(tmp_path):
    with pytest.raises(DataError, match="does not begin with query_id"):
        read(open_archive(write(tmp_path / "MSRD.zip", judgements=lines()[1:])))
