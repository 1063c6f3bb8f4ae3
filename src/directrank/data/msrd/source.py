"""MSRD's archive: its texts and judgements, groups of queries, and lists with features.

The features themselves are computed in :mod:`directrank.data.msrd.features`.
"""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np

from directrank.data.archives import Archive
from directrank.data.text.judged import Judged, arranged
from directrank.system.errors import DataError

CORPUS = "movies-corpus.jsonl.gz"
JUDGEMENTS = "movies-judgments.tsv.gz"

#: Keys of a movie that hold text, or lists of texts.
TEXTS = ("title", "overview", "director")
LISTS = ("tags", "genres", "actors", "characters")
#: Keys of a movie that hold numbers.
NUMBERS = ("year", "votes", "rating", "popularity", "budget")

_AGAIN = "get the file again from the page of the data set"


def read(archive: Archive) -> Judged:
    """Read the collection.

    A document is a movie, with every key of :data:`TEXTS`, :data:`LISTS` and :data:`NUMBERS`; its
    label is 1 where it was judged to answer the query. Judgements of a movie that is missing are
    left out and counted.

    Raises:
        DataError: a file is missing, or a line is malformed; the message names file and line.
    """
    movies = _movies(archive)
    known = {movie["id"] for movie in movies}
    texts: dict[int, str] = {}
    judged: dict[int, dict[str, int]] = {}
    unknown = repeated = 0
    for where, line, row in _rows(archive):
        number, text, movie, grade = _judgement(where, line, row)
        if texts.setdefault(number, text) != text:
            raise DataError(f"gives query {number} a second text", _AGAIN, file=where, line=line)
        if movie not in known:
            unknown += 1
        elif movie in judged.setdefault(number, {}):
            if judged[number][movie] != grade:
                message = f"judges movie {movie} of query {number} twice, and differently"
                raise DataError(message, _AGAIN, file=where, line=line)
            repeated += 1
        else:
            judged[number][movie] = grade
    omitted = {
        "judgements of a movie that is not in the corpus": unknown,
        "judgements that are given twice": repeated,
    }
    return arranged(movies, texts, judged, omitted)


def _movies(archive: Archive) -> list[Mapping[str, Any]]:
    movies, seen = [], set()
    for where, number, line in _lines(archive, CORPUS):
        try:
            movie = json.loads(line)
        except ValueError as error:
            raise DataError(f"is not JSON: {error}", _AGAIN, file=where, line=number) from None
        problem = _problem(movie)
        if problem is None and movie["id"] in seen:
            problem = f"gives movie {movie['id']} a second time"
        if problem is not None:
            raise DataError(problem, _AGAIN, file=where, line=number)
        seen.add(movie["id"])
        movies.append(movie)
    return movies


def _problem(movie: Any) -> str | None:
    """What is wrong with a movie; None if nothing is."""
    if not isinstance(movie, dict) or not isinstance(movie.get("id"), str):
        return "is not a movie with an id"
    for key in TEXTS:
        if not isinstance(movie.get(key), str | None) or key not in movie:
            return f"movie {movie['id']} has no text '{key}'"
    if not movie["title"]:
        return f"movie {movie['id']} has an empty title"
    for key in LISTS:
        texts = movie.get(key)
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            return f"movie {movie['id']} has no list of texts '{key}'"
    for key in NUMBERS:
        if not isinstance(movie.get(key), int | float) or isinstance(movie[key], bool):
            return f"movie {movie['id']} has no number '{key}'"
    return None


def _judgement(where: Path, line: int, row: list[str]) -> tuple[int, str, str, int]:
    """Query number, its text, movie and grade."""
    if len(row) != 4:
        message = f"has {len(row)} fields, expected query_id, query, doc_id and grade"
        raise DataError(message, _AGAIN, file=where, line=line)
    query, text, movie, grade = row
    number = query.removeprefix("qid:")
    if not number.isdecimal():
        raise DataError(f"'{query}' is not a query's id", _AGAIN, file=where, line=line)
    if grade not in ("0", "1"):
        raise DataError(f"the grade is '{grade}', not 0 or 1", _AGAIN, file=where, line=line)
    if not text.strip():
        raise DataError(f"query {number} has no text", _AGAIN, file=where, line=line)
    return int(number), text, movie, int(grade)


def _rows(archive: Archive) -> Iterator[tuple[Path, int, list[str]]]:
    lines = _lines(archive, JUDGEMENTS)
    where, number, head = next(lines, (archive.path, 0, ""))
    if head.split("\t") != ["query_id", "query", "doc_id", "grade"]:
        message = "does not begin with query_id, query, doc_id, grade"
        raise DataError(message, _AGAIN, file=where, line=number)
    for where, number, line in lines:
        yield where, number, line.split("\t")


def _lines(archive: Archive, name: str) -> Iterator[tuple[Path, int, str]]:
    """File, number and text of every line of a compressed member."""
    members = [member for member in archive.members if member.split("/")[-1] == name]
    if len(members) != 1:
        raise DataError(
            f"holds {len(members)} files {name}",
            "it must hold one of each file that the page of the data set names",
            file=archive.path,
        )
    where = archive.path / members[0]
    with archive.open(members[0]) as stream:
        try:
            text = io.TextIOWrapper(gzip.GzipFile(fileobj=stream), encoding="utf-8", newline="\n")
            for number, line in enumerate(text, 1):
                yield where, number, line.rstrip("\r\n")
        except (OSError, EOFError, UnicodeDecodeError) as error:
            raise DataError(f"is damaged: {error}", _AGAIN, file=where) from None


def answers(collection: Judged) -> list[np.ndarray]:
    """The positions of the movies that answer each query, ascending."""
    n_queries = len(collection.queries)
    bounds = np.searchsorted(collection.query, np.arange(n_queries + 1))
    return [
        np.sort(collection.document[first:last][collection.labels[first:last] > 0])
        for first, last in pairwise(bounds)
    ]


def communities(answering: Sequence[np.ndarray], n_movies: int) -> np.ndarray:
    """The community of each movie, int ``[M]``: the smallest position of a movie in it.

    Movies that answer the same queries belong together (Louvain's method; a query with k answers
    links each pair of them with weight 1/k). Connected components would not serve this purpose,
    because one of them would contain most movies.
    """
    weights: dict[tuple[int, int], float] = {}
    for movies in answering:
        for pair in combinations(movies.tolist(), 2):
            weights[pair] = weights.get(pair, 0.0) + 1 / len(movies)
    graph = nx.Graph()
    graph.add_nodes_from(range(n_movies))
    graph.add_weighted_edges_from((a, b, weight) for (a, b), weight in sorted(weights.items()))
    result = np.arange(n_movies)
    for community in nx.community.louvain_communities(graph, seed=1):
        result[sorted(community)] = min(community)
    return result


def folds(
    answering: Sequence[np.ndarray], community: np.ndarray, n_folds: int
) -> tuple[np.ndarray, np.ndarray]:
    """Groups of queries, and the fold in which each is tested.

    Communities are assigned, the largest first, to the fold with the fewest queries. A query
    without an answer belongs to no community and is a group of its own.

    Returns:
        Int ``[Q]`` twice: the group, and the fold, counted from 0; -1 for a query whose answers lie
        in several folds, which is to be left out.
    """
    size = np.zeros(len(community))
    for movies in answering:
        np.add.at(size, community[movies], 1 / max(1, len(movies)))
    load, of_community = np.zeros(n_folds), np.full(len(community), -1)
    for number in sorted(np.flatnonzero(size), key=lambda number: (-size[number], number)):
        of_community[number] = load.argmin()
        load[of_community[number]] += size[number]
    group = np.empty(len(answering), np.int64)
    fold = np.empty(len(answering), np.int64)
    for query, movies in enumerate(answering):
        if not len(movies):
            group[query], fold[query] = len(community) + query, load.argmin()
            load[fold[query]] += 1
            continue
        found = np.unique(of_community[community[movies]])
        fold[query] = found[0] if len(found) == 1 else -1
        names, counts = np.unique(community[movies], return_counts=True)
        group[query] = names[counts.argmax()]
    return group, fold
