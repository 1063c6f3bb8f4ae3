"""Comparisons that are made of another one, whose tests are corrected over their own methods."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from directrank.papers.one_protocol.methods import SCORERS, Comparison
from directrank.papers.shared.evidence import Dataset


@dataclass(frozen=True)
class Derived(Comparison):
    """What a comparison has in common with the one that it is made of.

    Attributes:
        every: the methods of that one.
    """

    every: Comparison

    @property
    def dataset(self) -> Dataset:
        """What the numbers are of."""
        return self.every.dataset

    @property
    def edition(self) -> str:
        """See :attr:`Comparison.edition`."""
        return self.every.edition

    @property
    def margin(self) -> float:
        """See :attr:`Comparison.margin`."""
        return self.every.margin

    @property
    def trained_on(self) -> str:
        """See :attr:`Comparison.trained_on`."""
        return self.every.trained_on

    def scale(self) -> str:
        """See :meth:`Comparison.scale`."""
        return self.every.scale()

    def failed(self, *scorers: str) -> Mapping[str, str]:
        """See :meth:`Comparison.failed`."""
        return self.every.failed(*scorers)

    @property
    def folds(self) -> np.ndarray:
        """See :attr:`Comparison.folds`."""
        return self.every.folds

    @property
    def groups(self) -> np.ndarray | None:
        """See :attr:`Comparison.groups`."""
        return self.every.groups


class Averaged(Derived):
    """Groups of another comparison's methods: a group's value of a query in a training is the mean
    over its methods."""

    @property
    @abstractmethod
    def parts(self) -> Mapping[str, Sequence[int]]:
        """Name of each group → the positions of its methods."""

    @property
    @abstractmethod
    def scorer(self) -> str:
        """What the column ``scorer`` has for all of them."""

    @cached_property
    def names(self) -> pd.DataFrame:
        """See :attr:`Comparison.names`."""
        return pd.DataFrame({"method": list(self.parts), "scorer": self.scorer})

    @cached_property
    def labels(self) -> list[str]:
        """The groups' names."""
        return list(self.parts)

    def measured(self, metric: str) -> Sequence[np.ndarray]:
        """See :meth:`Comparison.measured`; a training is one of each method of a group."""
        of_methods = self.every.trainings(metric)
        return [
            np.mean([of_methods[place][:fewest] for place in places], axis=0)
            for places in self.parts.values()
            for fewest in [min(len(of_methods[place]) for place in places)]
        ]

    @property
    def one_choice(self) -> list[bool]:
        """See :attr:`Comparison.one_choice`."""
        of_methods = self.every.one_choice
        return [any(of_methods[place] for place in places) for places in self.parts.values()]


@dataclass(frozen=True)
class Trees(Averaged):
    """The ensembles of boosted trees of a comparison, each by itself."""

    scorer = SCORERS["trees"]

    @cached_property
    def parts(self) -> dict[str, list[int]]:
        """Ensemble → its position."""
        return {self.every.names["method"][place]: [place] for place in self.every.of("trees")}
