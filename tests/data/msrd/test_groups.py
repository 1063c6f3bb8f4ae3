"""Groups of queries, and folds that share no movie that answers a query."""

from __future__ import annotations

import numpy as np

from directrank.data.msrd.source import communities, folds


def franchises(n_groups=12, queries_each=20, movies_each=5, seed=3):
    """Queries about movies of groups, with two answers each, and the group of each query."""
    rng = np.random.default_rng(seed)
    answering, group = [], []
    for number in range(n_groups):
        for _ in range(queries_each):
            answering.append(
                number * movies_each + np.sort(rng.choice(movies_each, 2, replace=False))
            )
            group.append(number)
    return answering, np.array(group), n_groups * movies_each


def test_movies_that_answer_the_same_queries_are_found_together():
    answering, _, n_movies = franchises()
    found = communities(answering, n_movies)
    assert (found == np.repeat(np.arange(12) * 5, 5)).all()


def test_no_movie_answers_queries_of_two_folds():
    answering, group, n_movies = franchises()
    found, fold = folds(answering, communities(answering, n_movies), 5)
    assert (fold >= 0).all()
    for a in range(5):
        ours = {movie for q in np.flatnonzero(fold == a) for movie in answering[q]}
        others = {movie for q in np.flatnonzero(fold != a) for movie in answering[q]}
        assert not ours & others
    assert len(np.unique(found)) == 12
    assert all(len(np.unique(found[group == number])) == 1 for number in range(12))
    assert np.ptp(np.bincount(fold)) <= 20


def test_a_query_whose_answers_lie_in_two_folds_is_left_out():
    answering, _, n_movies = franchises()
    community = communities(answering, n_movies)
    _, before = folds(answering, community, 5)
    a, b = (answering[np.flatnonzero(before == fold)[0]][0] for fold in (0, 1))
    _, fold = folds([*answering, np.array([a, b])], community, 5)
    assert fold[-1] == -1
    assert (fold[:-1] >= 0).all()


def test_a_query_without_an_answer_is_a_group_of_its_own():
    answering, _, n_movies = franchises(n_groups=3)
    answering += [np.array([], int), np.array([], int)]
    group, fold = folds(answering, communities(answering, n_movies), 2)
    assert group[-1] != group[-2]
    assert set(group[-2:]).isdisjoint(group[:-2])
    assert (fold[-2:] >= 0).all()
