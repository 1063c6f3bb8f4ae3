"""Compare a user's own methods with the published ones of a collection.

Each of the user's methods is compared with every published method by the tests of the published
comparison. The corrections of differences and of equivalences are over these pairs; pairs of
published methods are not compared here.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from directrank.papers.one_protocol.derived import Derived
from directrank.papers.one_protocol.methods import METRICS
from directrank.papers.one_protocol.own_values import Own
from directrank.papers.shared.evidence import PUBLISHED
from directrank.papers.shared.format import listed
from directrank.papers.shared.tables import in_front
from directrank.stats.decisions import decide
from directrank.stats.estimates import Interval, of_row
from directrank.stats.two_way import Crossed
from directrank.system.errors import ConfigError, DataError

#: Metric → its heading.
HEADINGS: Mapping[str, str] = {metric: heading for heading, metric in METRICS.items()}


def published_file(collection: str, edition: str, tables: Path = PUBLISHED.parent) -> Path:
    """The published values of a collection.

    Args:
        collection: its name.
        edition: ``real``, ``demo`` or one of the user's.
        tables: the folder ``paper_tables``.

    Raises:
        ConfigError: there are none; the message names those that exist.
    """
    file = tables / edition / "one_protocol" / f"per_query_{collection}.parquet"
    if not file.is_file():
        there = [
            f"--collection {path.stem.removeprefix('per_query_')} --edition {path.parts[-3]}"
            for path in sorted(tables.glob("*/one_protocol/per_query_*.parquet"))
        ]
        raise ConfigError(
            f"there are no published values of '{collection}' in the edition '{edition}'",
            (f"choose one of {listed(there)}; " if there else "")
            + "use --results for any other file",
        )
    return file


@dataclass(frozen=True)
class Placing(Derived):
    """The published methods followed by a user's, compared by one metric.

    Attributes:
        every: the published methods.
        own: the user's methods, with their values of the metric.
        metric: its column.
        within: the smallest difference of interest.
    """

    own: Sequence[Own]
    metric: str
    within: float

    def __post_init__(self) -> None:
        groups = np.arange(self.n_queries) if self.groups is None else self.groups
        if len(np.unique(groups)) < 2:
            raise DataError(
                f"{self.dataset.title} has a single test query or group of queries, which says "
                "nothing about others",
                "choose a larger collection",
            )

    @property
    def margin(self) -> float:
        """See :attr:`Comparison.margin`."""
        return self.within

    @property
    def one_choice(self) -> Sequence[bool]:
        """See :attr:`Comparison.one_choice`; each of the user's trials stands for a training of
        its own."""
        return [*self.every.one_choice, *(False for _ in self.own)]

    @cached_property
    def names(self) -> pd.DataFrame:
        """See :attr:`Comparison.names`; the user's methods have no scorer."""
        own = pd.DataFrame({"method": [own.name for own in self.own], "scorer": ""})
        return pd.concat([self.every.names, own], ignore_index=True)

    @cached_property
    def labels(self) -> list[str]:
        """See :attr:`Comparison.labels`."""
        return [*self.every.labels, *(own.name for own in self.own)]

    def measured(self, metric: str) -> Sequence[np.ndarray]:
        """See :meth:`Comparison.measured`; the user's values are only of :attr:`metric`."""
        own = [np.stack([trial[metric].to_numpy() for trial in one.trials]) for one in self.own]
        return [*self.every.trainings(metric), *own]

    @property
    def n_trainings(self) -> int:
        """See :attr:`Comparison.n_trainings`; the user's methods have their trials."""
        return min(map(len, self.trainings(self.metric)))

    @property
    def positions(self) -> range:
        """Positions of the user's methods."""
        return range(len(self.every.labels), len(self.labels))

    @cached_property
    def values(self) -> Crossed:
        """The values of the metric by which the methods are compared."""
        return self.crossed(self.metric)

    @cached_property
    def pairs(self) -> pd.DataFrame:
        """Each of the user's methods (``a``) with each published one (``b``); see
        :attr:`Comparison.pairs`. The correction is over these pairs."""
        others = range(len(self.every.labels))
        a, b = zip(*itertools.product(self.positions, others), strict=True)
        return decide(self.values.differences(a, b), self.margin)

    @cached_property
    def means(self) -> list[Interval]:
        """The mean of every method with its interval."""
        return [estimate.interval() for estimate in self.values.means()]

    def place(self, number: int) -> int:
        """One more than the number of published methods with a higher mean."""
        mean = self.means[number].mean
        return 1 + sum(other.mean > mean for other in self.means[: len(self.every.labels)])

    def table(self) -> pd.DataFrame:
        """A row for each of the user's methods with each published one."""
        pairs = self.pairs
        differences = [of_row(row).interval() for row in pairs.itertuples()]
        first, second = ([self.means[n] for n in pairs[side]] for side in ("a", "b"))
        groups = self.n_queries if self.groups is None else len(np.unique(self.groups))
        data = pd.DataFrame(
            {
                "run": [self.labels[n] for n in pairs["a"]],
                "metric": HEADINGS[self.metric],
                "mean": [one.mean for one in first],
                "half_width": [one.half_width for one in first],
                "place": [self.place(n) for n in pairs["a"]],
                **self.names.iloc[pairs["b"]].to_dict("list"),
                "method_mean": [one.mean for one in second],
                "method_half_width": [one.half_width for one in second],
                "difference": pairs["difference"],
                "difference_half_width": [one.half_width for one in differences],
                "p_value": pairs["p_value"],
                "p_holm": pairs["p_differs"],
                "margin": self.margin,
                "p_beyond_holm": pairs["p_beyond"],
                "p_equivalent_holm": pairs["p_within"],
                "verdict": pairs["verdict"],
                "size": pairs["size"],
                "queries": self.n_queries,
                "groups": groups,
            }
        )
        about = {"edition": self.edition, "dataset": self.dataset.title}
        return in_front(data, about)
