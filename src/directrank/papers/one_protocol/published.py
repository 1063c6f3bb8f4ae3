"""The comparison's published values per query, as a comparison of their methods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from directrank.papers.one_protocol.methods import PRIMARY, Comparison
from directrank.papers.shared.evidence import Dataset
from directrank.study.published import open_results


@dataclass(frozen=True)
class Published(Comparison):
    """All methods on one collection, from its published values.

    Attributes:
        frame: see :func:`directrank.study.published.open_results`.
    """

    frame: pd.DataFrame

    @property
    def dataset(self) -> Dataset:
        """The data set of the numbers."""
        about = self.frame.attrs
        return Dataset(about["collection"], about["title"], about["origin"])

    @property
    def edition(self) -> str:
        """The edition whose runs gave the values."""
        return str(self.frame.attrs["edition"])

    @property
    def margin(self) -> float:
        """See :attr:`Comparison.margin`."""
        return float(self.frame.attrs["margin"])

    @cached_property
    def names(self) -> pd.DataFrame:
        """See :attr:`Comparison.names`."""
        return pd.DataFrame(self.frame.attrs["methods"], columns=["method", "scorer"])

    @property
    def one_choice(self) -> Sequence[bool]:
        """See :attr:`Comparison.one_choice`; files name it where it is so for any method."""
        return self.frame.attrs.get("one_choice", [False] * len(self.names))

    @property
    def trained_on(self) -> str:
        """See :attr:`Comparison.trained_on`."""
        return str(self.frame.attrs["trained_on"])

    def scale(self) -> str:
        """See :meth:`Comparison.scale`."""
        return str(self.frame.attrs["protocol"])

    def failed(self, *scorers: str) -> Mapping[str, str]:
        """See :meth:`Comparison.failed`."""
        known: Mapping[str, Mapping[str, str]] = self.frame.attrs["failed"]
        return {name: why for scorer in scorers for name, why in known.get(scorer, {}).items()}

    @cached_property
    def queries(self) -> pd.DataFrame:
        """``fold`` and ``query_id`` of each query that is not empty, in order."""
        return self._places[0]

    def measured(self, metric: str) -> Sequence[np.ndarray]:
        """See :meth:`Comparison.measured`."""
        _, kept, query = self._places
        frame = self.frame[kept]
        keys = pd.MultiIndex.from_arrays([frame["method"], frame["scorer"]])
        method = pd.MultiIndex.from_frame(self.names).get_indexer(keys)
        trial = frame["trial"].to_numpy()
        shape = (len(self.names), int(trial.max()) + 1, len(self.queries))
        values = np.full(shape, np.nan)
        values[method, trial, query] = frame[metric].to_numpy()
        return [own[~np.isnan(own).all(axis=1)] for own in values]

    @cached_property
    def folds(self) -> np.ndarray:
        """See :attr:`Comparison.folds`."""
        return self.queries["fold"].to_numpy()

    @cached_property
    def groups(self) -> np.ndarray | None:
        """See :attr:`Comparison.groups`."""
        if "group" not in self.frame:
            return None
        first = self.frame.drop_duplicates(["fold", "query_id"])
        of_query = first.set_index(["fold", "query_id"])["group"]
        return of_query.reindex(pd.MultiIndex.from_frame(self.queries)).to_numpy()

    @cached_property
    def _places(self) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
        """The queries, the rows of queries that are not empty, and the query of each of these."""
        kept = self.frame[PRIMARY].notna().to_numpy()
        keys = self.frame.loc[kept, ["fold", "query_id"]]
        queries = keys.drop_duplicates().sort_values(["fold", "query_id"], ignore_index=True)
        places = pd.MultiIndex.from_frame(queries)
        return queries, kept, places.get_indexer(pd.MultiIndex.from_frame(keys))


def read(path: str | Path) -> Published:
    """The published values of a file; see :func:`directrank.study.published.open_results`."""
    return Published(open_results(path))
