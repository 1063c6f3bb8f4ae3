"""Comparisons that are made of another one, whose tests are corrected over their own methods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from directrank.papers.one_protocol.methods import Comparison
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


@dataclass(frozen=True)
class Trees(Derived):
    """The ensembles of boosted trees of a comparison."""

    @cached_property
    def names(self) -> pd.DataFrame:
        """A row per ensemble."""
        return self.every.names.iloc[self.every.of("trees")].reset_index(drop=True)

    def measured(self, metric: str) -> Sequence[np.ndarray]:
        """See :meth:`Comparison.measured`."""
        of_methods = self.every.trainings(metric)
        return [of_methods[place] for place in self.every.of("trees")]

    @property
    def one_choice(self) -> list[bool]:
        """See :attr:`Comparison.one_choice`."""
        return [self.every.one_choice[place] for place in self.every.of("trees")]
