"""Which loss, whatever the scorer: on one collection, and on several that count alike.

A loss's value of a query is the mean over the scorers of its means over trials. Over several
collections a difference is the mean of the collections' differences: it speaks of other queries of
these collections. What it would be on other collections a mean rank says no more than roughly, with
as few as there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from directrank.papers.one_protocol.methods import NEURAL, SCORERS, SIGNIFICANT, Comparison
from directrank.papers.one_protocol.per_query import Published, read
from directrank.papers.shared.evidence import Dataset
from directrank.stats.estimates import Estimate
from directrank.stats.ranks import equivalence
from directrank.stats.tests import holm
from directrank.system.errors import DataError

#: What is said of a pair; see :attr:`Comparison.decisions`.
WORDS = ("better", "worse", "equivalent", "cannot tell")


@dataclass(frozen=True)
class Losses(Comparison):
    """The losses that were run with every scorer on one collection, from its published values.

    Attributes:
        published: values of losses with scorers, and of trees, which are left out here.
    """

    published: Published

    @property
    def dataset(self) -> Dataset:
        """What the numbers are of."""
        return self.published.dataset

    @cached_property
    def names(self) -> pd.DataFrame:
        """A row per loss; the column ``scorer`` names all of them."""
        scorers = ", ".join(self._scorers)
        return pd.DataFrame({"method": list(self._places), "scorer": scorers})

    @cached_property
    def labels(self) -> list[str]:
        """The losses' names."""
        return list(self._places)

    def values_of(self, metric: str) -> pd.DataFrame:
        """A metric, one row per query that is not empty, one column per loss."""
        of_methods = self.published.values_of(metric)
        columns = [of_methods[places].mean(axis=1) for places in self._places.values()]
        return pd.DataFrame(dict(enumerate(columns)))

    @property
    def groups(self) -> np.ndarray | None:
        """See :attr:`Comparison.groups`."""
        return self.published.groups

    @cached_property
    def means(self) -> pd.Series:
        """NDCG@10 of each loss: the mean over queries."""
        return pd.Series(self.values.mean().to_numpy(), index=self.labels)

    def against(self, name: str) -> dict[str, list[str]]:
        """What the queries say of a loss beside each other one.

        Words of :attr:`Comparison.decisions` → the losses of which it is said: those that ``name``
        is better than, worse than, equivalent to, and that cannot be told from it.
        """
        said: dict[str, list[str]] = {word: [] for word in WORDS}
        turned = {"better": "worse", "worse": "better"}
        place = self.labels.index(name)
        for a, b, word in zip(self.pairs["a"], self.pairs["b"], self.decisions, strict=True):
            if a == place:
                said[word].append(self.labels[b])
            elif b == place:
                said[turned.get(word, word)].append(self.labels[a])
        return said

    @cached_property
    def _scorers(self) -> list[str]:
        known = set(self.published.names["scorer"])
        return [SCORERS[scorer] for scorer in NEURAL if SCORERS[scorer] in known]

    @cached_property
    def _places(self) -> dict[str, list[int]]:
        """Loss → where its methods stand among the published ones."""
        names = self.published.names
        neural = names[names["scorer"].isin(self._scorers)]
        places = {str(name): list(own.index) for name, own in neural.groupby("method", sort=False)}
        return {name: own for name, own in places.items() if len(own) == len(self._scorers)}


def read_losses(path: str | Path) -> Losses:
    """The losses of a file of published values.

    Raises:
        DataError: fewer than two losses were run with every scorer.
    """
    losses = Losses(read(path))
    if len(losses.labels) < 2:
        raise DataError(
            "fewer than two losses were run with every scorer",
            "name a file of the comparison under one protocol",
            file=Path(path),
        )
    return losses


@dataclass(frozen=True)
class Together:
    """The losses that several collections have in common; each collection weighs the same.

    Attributes:
        studies: one per collection, at least one.
    """

    studies: Sequence[Losses]

    @cached_property
    def labels(self) -> list[str]:
        """The losses' names, in the order of the first collection."""
        first, *others = (study.labels for study in self.studies)
        return [label for label in first if all(label in labels for labels in others)]

    @cached_property
    def means(self) -> pd.DataFrame:
        """NDCG@10, a row per collection and a column per loss."""
        rows = {study.dataset.title: study.means[self.labels] for study in self.studies}
        return pd.DataFrame(rows).T

    @cached_property
    def ranks(self) -> pd.DataFrame:
        """The rank of each loss by its mean on each collection, likewise; 1 is the best."""
        return self.means.rank(axis=1, ascending=False)

    @cached_property
    def mean_ranks(self) -> pd.Series:
        """The mean over collections of each loss's rank."""
        return self.ranks.mean()

    @cached_property
    def pairs(self) -> pd.DataFrame:
        """Every pair of losses: the mean over collections of the difference in NDCG@10.

        Columns ``a``, ``b`` (positions among :attr:`labels`), ``difference``, ``error``,
        ``freedom``, ``p_value`` and ``p_holm``, of a t test with Satterthwaite's degrees of
        freedom: collections have no query in common, so that the variances add up.
        """
        difference, variance, freedom = (
            np.stack(parts) for parts in zip(*map(self._moments, self.studies), strict=True)
        )
        total = variance.sum(0)
        below = (variance**2 / freedom).sum(0)
        frame = pd.DataFrame(
            dict(zip("ab", np.triu_indices(len(self.labels), 1), strict=True))
            | {
                "difference": difference.mean(0),
                "error": np.sqrt(total) / len(self.studies),
                "freedom": np.divide(
                    total**2, below, out=np.full_like(total, np.inf), where=below > 0
                ),
            }
        )
        estimates = [Estimate(*row) for row in frame.iloc[:, 2:].itertuples(index=False)]
        frame["p_value"] = [estimate.p_differs() for estimate in estimates]
        frame["p_holm"] = holm(frame["p_value"].to_numpy())
        return frame

    def best(self, among: Iterable[str] | None = None) -> str:
        """The loss with the best mean rank; of several, that with the highest mean."""
        chosen = self.labels if among is None else [name for name in self.labels if name in among]
        order = pd.DataFrame({"rank": self.mean_ranks, "mean": -self.means.mean()}).loc[chosen]
        return str(order.sort_values(["rank", "mean"], kind="stable").index[0])

    def equivalent(self, to: str, margin: float) -> list[str]:
        """The losses that are shown to be within ``margin`` of another one, by mean rank.

        By two one-sided tests after Holm's correction over all pairs, because the loss that they
        are compared with is itself chosen by these numbers.
        """
        sure = equivalence(self.pairs, margin) < SIGNIFICANT
        return self._others(self.pairs[sure], to)

    def told_apart(self, by: str) -> list[str]:
        """The losses that differ from another one significantly, by mean rank."""
        return self._others(self.pairs[self.pairs["p_holm"] < SIGNIFICANT], by)

    def _others(self, pairs: pd.DataFrame, name: str) -> list[str]:
        place = self.labels.index(name)
        found = [*pairs.loc[pairs["a"] == place, "b"], *pairs.loc[pairs["b"] == place, "a"]]
        return sorted((self.labels[other] for other in found), key=lambda n: self.mean_ranks[n])

    def _moments(self, study: Losses) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Difference, squared error and degrees of freedom of every pair of :attr:`labels`."""
        k = len(study.labels)
        tables = np.zeros((3, k, k))
        a, b = study.pairs["a"].to_numpy(), study.pairs["b"].to_numpy()
        error = study.pairs["error"].to_numpy()
        for table, column in zip(
            tables, (study.pairs["difference"], error**2, study.pairs["freedom"]), strict=True
        ):
            table[a, b] = column
            table[b, a] = column
        tables[0, b, a] *= -1
        places = [study.labels.index(label) for label in self.labels]
        rows, columns = np.triu_indices(len(places), 1)
        chosen = tables[:, np.array(places)[rows], np.array(places)[columns]]
        return chosen[0], chosen[1], chosen[2]
