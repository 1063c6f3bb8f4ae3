"""The methods of the comparison under one protocol: a loss with a scorer, or boosted trees.

Every method is trained several times on each fold and evaluated on the same test queries. A
difference of two methods counts if it generalises to other queries, or groups of related queries,
and to other trainings on the same folds (:mod:`directrank.stats.two_way`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from directrank.papers.one_protocol.controls import control_pairs
from directrank.papers.one_protocol.questions import FURTHER
from directrank.papers.shared.cells import measured
from directrank.papers.shared.evidence import Dataset
from directrank.papers.shared.format import DIGITS, count
from directrank.stats.decisions import (
    BETTER,
    SIGNIFICANT,
    WORSE,
    between,
    decide,
    may_be_best,
    places,
)
from directrank.stats.estimates import Estimate
from directrank.stats.two_way import Crossed

#: The part of the experiments' names that says what is trained → its name in print.
SCORERS = {
    "linear": "linear",
    "tower": "network",
    "context": "context-aware",
    "trees": "trees",
    "untrained": "untrained",
}

#: The same as headings.
TITLES = {
    "linear": "Linear scorer",
    "tower": "Network",
    "context": "Context-aware ranker",
    "trees": "Boosted trees",
    "untrained": "Without training",
}

#: Scorers that take a loss, and those whose methods are named alone.
NEURAL, ALONE = ("linear", "tower", "context"), ("trees", "untrained")

#: What learns nothing: its methods are controls, which are not ranked.
CONTROLS = "untrained"

#: The metric that compares all pairs, and the one that chooses configurations and epochs.
PRIMARY = "ndcg@10"

#: Heading → metric.
METRICS = {"NDCG@5": "ndcg@5", "NDCG@10": PRIMARY, "MAP": "ap", "nERR@10": "nerr@10"}


def labels_of(names: pd.DataFrame) -> list[str]:
    """The name of each row's method among those of all scorers."""
    return [
        name + ("" if scorer in [SCORERS[one] for one in ALONE] else f", {scorer}")
        for name, scorer in names[["method", "scorer"]].itertuples(index=False)
    ]


def among(pairs: pd.DataFrame, chosen: np.ndarray) -> pd.DataFrame:
    """``pairs`` of methods that are all among ``chosen``, by their places there."""
    return pairs.assign(**{side: np.searchsorted(chosen, pairs[side]) for side in "ab"})


def in_table(places: np.ndarray) -> pd.arrays.IntegerArray:
    """First or last places as a column, which is empty for methods that are not ranked."""
    return pd.arrays.IntegerArray(places.astype(np.int64), places == 0)


class Comparison(ABC):
    """Values of methods for the same queries, each from several trainings, and what is known of the
    differences of all pairs.
    """

    @property
    @abstractmethod
    def dataset(self) -> Dataset:
        """What the numbers are of."""

    @property
    @abstractmethod
    def names(self) -> pd.DataFrame:
        """The names of the methods, one per row: columns ``method`` and ``scorer``."""

    @property
    @abstractmethod
    def edition(self) -> str:
        """The edition whose runs gave the values."""

    @property
    @abstractmethod
    def margin(self) -> float:
        """The smallest difference of interest."""

    @abstractmethod
    def measured(self, metric: str) -> Sequence[np.ndarray]:
        """A metric of every method, ``[T, Q]`` each: a row per training on each fold, a column per
        query that is not empty."""

    @cached_property
    def _known(self) -> dict[str, Sequence[np.ndarray]]:
        return {}

    def trainings(self, metric: str) -> Sequence[np.ndarray]:
        """:meth:`measured`, which takes its time once."""
        if metric not in self._known:
            self._known[metric] = self.measured(metric)
        return self._known[metric]

    @property
    @abstractmethod
    def folds(self) -> np.ndarray:
        """The fold of each query, 0 if there are none."""

    @property
    @abstractmethod
    def groups(self) -> np.ndarray | None:
        """The group of each query; None if queries are independent."""

    @property
    @abstractmethod
    def one_choice(self) -> Sequence[bool]:
        """Whether the trainings of a fold share the choice of a configuration, of each method."""

    @property
    @abstractmethod
    def trained_on(self) -> str:
        """A sentence about the training queries of several folds; empty if there is one set."""

    @abstractmethod
    def scale(self) -> str:
        """Sentences about trials, tuning, data and edition for a caption."""

    @abstractmethod
    def failed(self, *scorers: str) -> Mapping[str, str]:
        """The methods of these scorers that could not be trained, by their labels, and why."""

    @property
    def about(self) -> dict[str, Any]:
        """The first columns of every CSV file."""
        return {
            "edition": self.edition,
            "dataset": self.dataset.title,
            "data": self.dataset.kind,
        }

    @cached_property
    def labels(self) -> list[str]:
        """The name of each method among those of all scorers."""
        return labels_of(self.names)

    def of(self, *scorers: str) -> list[int]:
        """Positions of the methods of these scorers, by their names in experiments."""
        titles = {SCORERS[scorer] for scorer in scorers}
        return [n for n, scorer in enumerate(self.names["scorer"]) if scorer in titles]

    def crossed(self, metric: str) -> Crossed:
        """The values of a metric, from which all errors are computed."""
        if metric not in self._crossed:
            self._crossed[metric] = Crossed(
                self.trainings(metric), self.groups, self.folds, self.one_choice
            )
        return self._crossed[metric]

    @cached_property
    def _crossed(self) -> dict[str, Crossed]:
        return {}

    def over_queries(self, metric: str) -> list[Estimate]:
        """The mean over queries of every method, with its error."""
        return self.crossed(metric).means()

    def over_folds(self, metric: str) -> np.ndarray:
        """The mean over folds of each method's mean over trainings and queries, ``[k]``."""
        parts = [self.folds == number for number in np.unique(self.folds)]
        return np.array(
            [
                np.mean([values[:, part].mean() for part in parts])
                for values in self.trainings(metric)
            ]
        )

    @property
    def n_queries(self) -> int:
        """The number of queries that are not empty."""
        return len(self.folds)

    @property
    def n_folds(self) -> int:
        """The number of folds."""
        return len(np.unique(self.folds))

    @property
    def n_trainings(self) -> int:
        """The least number of trainings of a method on a fold."""
        return min(map(len, self.trainings(PRIMARY)))

    @property
    def size(self) -> str:
        """The number of queries, and of their groups, in words."""
        queries = f"{count(self.n_queries)} test queries"
        if self.groups is None:
            return queries
        return f"{queries} in {count(len(np.unique(self.groups)))} groups"

    @property
    def over(self) -> str:
        """What an interval or a test covers, in words."""
        queries = "queries" if self.groups is None else "groups of related queries"
        return (
            f"other {queries} and other trainings" if self.n_trainings > 1 else f"other {queries}"
        )

    @cached_property
    def ranked(self) -> np.ndarray:
        """Positions of the methods that are ranked: all but those that learn nothing."""
        return np.flatnonzero(self.names["scorer"] != SCORERS[CONTROLS])

    @cached_property
    def pairs(self) -> pd.DataFrame:
        """Every pair of ranked methods; see :func:`directrank.stats.decisions.decide`."""
        a, b = np.triu_indices(len(self.ranked), 1)
        differences = self.crossed(PRIMARY).differences(self.ranked[a], self.ranked[b])
        return decide(differences, self.margin)

    @cached_property
    def beside_controls(self) -> pd.DataFrame:
        """Every pair of which at least one method learns nothing, as :attr:`pairs`.

        They are a family of their own: nearly all of them differ, which says nothing of the others.
        """
        a, b = np.triu_indices(len(self.labels), 1)
        rest = ~(np.isin(a, self.ranked) & np.isin(b, self.ranked))
        if not rest.any():
            return self.pairs.iloc[:0]
        return decide(self.crossed(PRIMARY).differences(a[rest], b[rest]), self.margin)

    @property
    def every_pair(self) -> pd.DataFrame:
        """:attr:`pairs` and :attr:`beside_controls`."""
        return pd.concat([self.pairs, self.beside_controls], ignore_index=True)

    @property
    def trees_beside_losses(self) -> list[int]:
        """Positions of the trees that pictures of losses show: no variants within a library."""
        names = self.names["method"]
        return [number for number in self.of("trees") if names[number] not in FURTHER]

    @property
    def elsewhere(self) -> str:
        """What a caption says if there are other trees; empty if there are none."""
        if len(self.trees_beside_losses) == len(self.of("trees")):
            return ""
        return "Other boosted trees are in the table of all methods. "

    @cached_property
    def controls(self) -> pd.DataFrame:
        """The rows of :attr:`pairs` of methods that hardly differ; see :mod:`.controls`."""
        pairs = set(control_pairs(self.names))
        rows = [(a, b) in pairs for a, b in self.pairs[["a", "b"]].itertuples(index=False)]
        return self.pairs[rows]

    @property
    def distance(self) -> float:
        """The largest difference of two methods that hardly differ, 0 if there are none.

        Nothing is said about the order of two methods that are no further apart.
        """
        return float(self.controls["difference"].abs().max()) if len(self.controls) else 0.0

    @cached_property
    def verdicts(self) -> np.ndarray:
        """Int ``[k, k]``: 1 where the row's method is significantly better than the column's, and
        by more than :attr:`distance`; -1 where it is worse, 0 where the two are tied."""
        far = self.pairs["difference"].abs() > self.distance
        words = between(self.pairs[far], len(self.labels))
        return (words == BETTER).astype(int) - (words == WORSE)

    @cached_property
    def places(self) -> np.ndarray:
        """The first and last place of each method, ``[k, 2]``: tied methods share places, and those
        of methods that are not ranked are 0."""
        found = np.zeros((len(self.labels), 2), dtype=int)
        found[self.ranked] = places(self.verdicts[np.ix_(self.ranked, self.ranked)])
        return found

    @cached_property
    def may_be_best(self) -> np.ndarray:
        """Which methods may be the best; see :func:`directrank.stats.decisions.may_be_best`."""
        found = np.zeros(len(self.labels), dtype=bool)
        found[self.ranked] = may_be_best(among(self.pairs, self.ranked), len(self.ranked))
        return found

    @property
    def standard(self) -> str:
        """Sentences for a caption: what a test requires, and the distance of the controls."""
        return (
            f"Tests and intervals are for {self.over}: t tests, after Holm's correction over the "
            f"pairs, at {SIGNIFICANT}. {self.said_of_controls}"
        )

    @property
    def said_of_controls(self) -> str:
        """A sentence on the controls."""
        if not len(self.controls):
            return "No two methods that hardly differ were run, which would show what is noise."
        row = self.controls.loc[self.controls["difference"].abs().idxmax()]
        first, second = (self.labels[int(row[side])] for side in "ab")
        digits = DIGITS if self.distance >= 0.5 * 10**-DIGITS else DIGITS + 1
        return (
            f"Controls: the largest difference of two methods that hardly differ is "
            f"{measured(self.distance, digits=digits)} ({first} and {second}); methods that are no "
            "further apart are tied, whatever a test says."
        )
