"""Groups of queries that share movies that answer them, and folds that no group spans.

Queries about one franchise ask for the same movies. In a plain random split, the movies that answer
a test query would also answer training queries, and a model could learn the movies instead of what
makes a movie answer a query.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, pairwise

import networkx as nx
import numpy as np

from directrank.data.msrd.source import Collection


def answers(collection: Collection) -> list[np.ndarray]:
    """The positions of the movies that answer each query, ascending."""
    n_queries = len(collection.queries)
    bounds = np.searchsorted(collection.query, np.arange(n_queries + 1))
    return [
        np.sort(collection.movie[first:last][collection.labels[first:last] > 0])
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
