"""Publish the comparison's values per query for others, and read them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from directrank.data import catalog
from directrank.papers.one_protocol.methods import (
    METRICS,
    SCORERS,
    Comparison,
    protocol,
)
from directrank.papers.shared.evidence import Dataset, Evidence
from directrank.papers.shared.product import ValuesResult
from directrank.study.published import open_results


def per_query(evidence: Evidence, dataset: str) -> ValuesResult:
    """The value of every method for every test query, in each trial."""
    study = protocol(evidence, dataset)
    frames = [
        run.rows("test").assign(
            method=method.name,
            scorer=SCORERS[method.variant],
            fold=run.fold or 0,
        )
        for method in study.methods
        for run in method.runs
    ]
    values = pd.concat(frames, ignore_index=True)
    columns = ["method", "scorer", "fold", "trial", "query_id"]
    columns += ["group"] if study.groups is not None else []
    about = {
        "edition": evidence.edition,
        "collection": study.dataset.name,
        "title": study.dataset.title,
        "origin": study.dataset.origin,
        "licence": catalog.get(study.dataset.name).licence,
        "methods": study.names.to_numpy().tolist(),
        "protocol": study.scale(),
    }
    return ValuesResult(values[[*columns, *METRICS.values()]], about)


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

    @cached_property
    def names(self) -> pd.DataFrame:
        """See :attr:`Comparison.names`."""
        return pd.DataFrame(self.frame.attrs["methods"], columns=["method", "scorer"])

    def values_of(self, metric: str) -> pd.DataFrame:
        """See :meth:`Comparison.values_of`."""
        return self.metrics[metric]

    @cached_property
    def metrics(self) -> dict[str, pd.DataFrame]:
        """Every metric, one row per query that is not empty, one column per method."""
        keys = ["method", "scorer", "fold", "query_id"]
        means = self.frame.groupby(keys, observed=True, sort=False)[list(METRICS.values())].mean()
        order = list(self.names.itertuples(index=False, name=None))
        tables = {}
        for name, column in means.items():
            table = column.unstack(["method", "scorer"]).sort_index()[order].dropna(how="all")
            table.columns = pd.RangeIndex(len(order))
            tables[str(name)] = table
        return tables

    @cached_property
    def groups(self) -> np.ndarray | None:
        """See :attr:`Comparison.groups`."""
        if "group" not in self.frame:
            return None
        first = self.frame.drop_duplicates(["fold", "query_id"])
        of_query = first.set_index(["fold", "query_id"])["group"]
        return of_query.reindex(self.values.index).to_numpy()


def read(path: str | Path) -> Published:
    """The published values of a file; see :func:`directrank.study.published.open_results`."""
    return Published(open_results(path))
