"""Which loss, whatever the scorer: on one collection, and on several that count alike.

A loss's value of a query in a training is the mean over the scorers. Over several collections a
difference is the mean of the collections' differences: it speaks of other queries of these
collections and of other trainings, not of other collections.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from directrank.papers.one_protocol.controls import control_pairs
from directrank.papers.one_protocol.derived import Averaged
from directrank.papers.one_protocol.methods import NEURAL, PRIMARY, SCORERS, Comparison, among
from directrank.papers.one_protocol.published import read
from directrank.stats.decisions import (
    BETTER,
    EQUIVALENT,
    WITHIN,
    WORDS,
    WORSE,
    between,
    decide,
    may_be_best,
)
from directrank.stats.estimates import Estimate
from directrank.system.errors import DataError


@dataclass(frozen=True)
class Losses(Averaged):
    """The losses that were run with each of :attr:`scorers` on one collection, without trees."""

    @property
    def scorer(self) -> str:
        """The names of all scorers."""
        return ", ".join(self.scorers)

    @cached_property
    def means(self) -> pd.Series:
        """NDCG@10 of each loss: the mean over queries."""
        means = [estimate.mean for estimate in self.over_queries(PRIMARY)]
        return pd.Series(means, index=self.labels)

    def against(self, name: str) -> dict[str, list[str]]:
        """What is known of a loss beside each other one.

        Words of :data:`directrank.stats.decisions.WORDS` → the losses of which it is said: those
        that ``name`` is better than, worse than, equivalent to, and that cannot be told from it.
        """
        words = between(self.pairs, len(self.labels))[self.labels.index(name)]
        return {word: [self.labels[n] for n in np.flatnonzero(words == word)] for word in WORDS}

    @cached_property
    def scorers(self) -> list[str]:
        """The scorers that :func:`of_most_losses` keeps."""
        counts = self.every.names.groupby("scorer").size()
        run = {SCORERS[scorer]: counts.get(SCORERS[scorer], 0) for scorer in NEURAL}
        return of_most_losses(run)

    @cached_property
    def parts(self) -> dict[str, list[int]]:
        """Loss → the positions of its methods."""
        names = self.every.names
        neural = names[names["scorer"].isin(self.scorers)]
        places = {str(name): list(own.index) for name, own in neural.groupby("method", sort=False)}
        return {name: own for name, own in places.items() if len(own) == len(self.scorers)}


def of_most_losses(losses: Mapping[str, int]) -> list[str]:
    """The scorers, without those that fewer than half as many losses were run with as with another,
    which would leave only these losses.

    Args:
        losses: scorer → the number of losses that were run with it.

    >>> of_most_losses({"linear": 0, "network": 47, "context-aware": 12})
    ['network']
    """
    return [scorer for scorer, count in losses.items() if 2 * count >= max(1, *losses.values())]


def read_losses(path: str | Path) -> Losses:
    """The losses of a file of published values.

    Raises:
        DataError: fewer than two losses were run with the same scorers.
    """
    losses = Losses(read(path))
    if len(losses.labels) < 2:
        raise DataError(
            "fewer than two losses were run with the same scorers",
            "name a file of the comparison under one protocol",
            file=Path(path),
        )
    return losses


@dataclass(frozen=True)
class Together:
    """The methods that several collections have in common; each collection weighs the same.

    Attributes:
        studies: one per collection, at least one.
    """

    studies: Sequence[Comparison]

    @cached_property
    def labels(self) -> list[str]:
        """The losses' names, in the order of the first collection."""
        first, *others = (study.labels for study in self.studies)
        return [label for label in first if all(label in labels for labels in others)]

    @property
    def margin(self) -> float:
        """The smallest difference of interest."""
        return self.studies[0].margin

    @cached_property
    def means(self) -> pd.DataFrame:
        """NDCG@10, a row per collection and a column per loss."""
        rows = {}
        for study in self.studies:
            means = [estimate.mean for estimate in study.over_queries(PRIMARY)]
            rows[study.dataset.title] = pd.Series(means, index=study.labels)[self.labels]
        return pd.DataFrame(rows).T

    @cached_property
    def mean(self) -> pd.Series:
        """The mean over collections of each loss's NDCG@10."""
        return self.means.mean()

    @cached_property
    def ranked(self) -> np.ndarray:
        """Positions among :attr:`labels` of those that are ranked; see
        :attr:`Comparison.ranked`."""
        first = self.studies[0]
        ranked = {first.labels[number] for number in first.ranked}
        return np.flatnonzero([label in ranked for label in self.labels])

    @cached_property
    def pairs(self) -> pd.DataFrame:
        """Every pair of losses that are ranked: the mean over collections of the difference in
        NDCG@10; see :func:`directrank.stats.decisions.decide`."""
        every = self.differences
        ranked = every["a"].isin(self.ranked) & every["b"].isin(self.ranked)
        return decide(every[ranked].reset_index(drop=True), self.margin)

    @cached_property
    def differences(self) -> pd.DataFrame:
        """Every pair of losses: ``difference``, ``error`` and ``freedom``.

        ``a`` and ``b`` are positions among :attr:`labels`. Collections have no query and no
        training in common, so that variances are added, with Satterthwaite's degrees of freedom.
        """
        difference, variance, freedom = (
            np.stack(parts) for parts in zip(*map(self._moments, self.studies), strict=True)
        )
        return pd.DataFrame(
            dict(zip("ab", np.triu_indices(len(self.labels), 1), strict=True))
            | {
                "difference": difference.mean(0),
                "error": np.sqrt(variance.sum(0)) / len(self.studies),
                "freedom": _satterthwaite(variance, freedom),
            }
        )

    def difference(self, name: str, other: str) -> Estimate:
        """NDCG@10 of a loss minus that of another one."""
        a, b = self.labels.index(name), self.labels.index(other)
        every = self.differences
        row = every[(every["a"] == min(a, b)) & (every["b"] == max(a, b))].iloc[0]
        return Estimate((1 if a < b else -1) * row["difference"], row["error"], row["freedom"])

    @cached_property
    def distance(self) -> float:
        """How far two losses may be apart that hardly differ; 0 if there are none.

        It is the end of the 95 % interval of their difference that is further from 0. Averages over
        scorers and collections leave one or two such pairs, which by chance are nearly equal as
        often as not, so that what they differ by says little of what they may differ by. A
        collection that lacks one of the two adds nothing to their difference. Without a known
        error, as of methods that were trained once on two folds, it is their difference.
        """
        ends = []
        for pair in self._controls.values():
            difference, variance, freedom = (np.array(values) for values in zip(*pair, strict=True))
            estimate = Estimate(
                difference.sum() / len(self.studies),
                math.sqrt(variance.sum()) / len(self.studies),
                float(_satterthwaite(variance, freedom)),
            )
            width = estimate.interval().half_width
            ends.append(abs(estimate.mean) + (0.0 if math.isnan(width) else width))
        return max(ends, default=0.0)

    @cached_property
    def _controls(self) -> dict[tuple[str, str], list[tuple[float, float, float]]]:
        """The names of each control → difference, squared error and degrees of freedom on every
        collection that has both."""
        found: dict[tuple[str, str], list[tuple[float, float, float]]] = {}
        for study in self.studies:
            pairs = study.every_pair.set_index(["a", "b"])
            for a, b in control_pairs(study.names):
                row, names = pairs.loc[a, b], (study.labels[a], study.labels[b])
                sign = 1 if names[0] < names[1] else -1
                moments = (sign * row["difference"], row["error"] ** 2, row["freedom"])
                found.setdefault((min(names), max(names)), []).append(moments)
        return found

    @cached_property
    def candidates(self) -> list[str]:
        """The losses that may be the best, the highest mean first; see
        :func:`directrank.stats.decisions.may_be_best`."""
        possible = np.zeros(len(self.labels), dtype=bool)
        possible[self.ranked] = may_be_best(among(self.pairs, self.ranked), len(self.ranked))
        order = self.mean.sort_values(ascending=False, kind="stable").index
        return [name for name in order if possible[self.labels.index(name)]]

    def equivalent(self, to: str) -> list[str]:
        """The losses that are shown to be within the margin of another one, the highest mean first.

        By two one-sided tests after Holm's correction over all pairs, because the loss that they
        are compared with is itself chosen by these numbers.
        """
        sure = (self.pairs["verdict"] == EQUIVALENT) | (self.pairs["size"] == WITHIN)
        return self._others(self.pairs[sure], to)

    def told_apart(self, by: str) -> list[str]:
        """The losses that differ from another one significantly, the highest mean first."""
        sure = self.pairs["verdict"].isin([BETTER, WORSE])
        return self._others(self.pairs[sure], by)

    def _others(self, pairs: pd.DataFrame, name: str) -> list[str]:
        place = self.labels.index(name)
        found = [*pairs.loc[pairs["a"] == place, "b"], *pairs.loc[pairs["b"] == place, "a"]]
        return sorted((self.labels[other] for other in found), key=lambda n: -self.mean[n])

    def _moments(self, study: Comparison) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Difference, squared error and degrees of freedom of every pair of :attr:`labels`."""
        k = len(study.labels)
        tables = np.zeros((3, k, k))
        pairs = study.every_pair
        a, b = pairs["a"].to_numpy(), pairs["b"].to_numpy()
        moments = (pairs["difference"], pairs["error"] ** 2, pairs["freedom"])
        for table, column in zip(tables, moments, strict=True):
            table[a, b] = column
            table[b, a] = column
        tables[0, b, a] *= -1
        places = [study.labels.index(label) for label in self.labels]
        rows, columns = np.triu_indices(len(places), 1)
        chosen = tables[:, np.array(places)[rows], np.array(places)[columns]]
        return chosen[0], chosen[1], chosen[2]


def _satterthwaite(variance: np.ndarray, freedom: np.ndarray) -> np.ndarray:
    """The degrees of freedom of sums over the first axis of independent variances."""
    total = variance.sum(0)
    below = np.asarray((variance**2 / freedom).sum(0))
    return np.divide(total**2, below, out=np.full_like(total, np.inf), where=below > 0)
