"""Means over queries and folds, and the three conventions for queries without a relevant document.

Result files hold one value per query, NaN where the query is *empty* (no relevant document). The
value of an empty query is chosen here, when the mean is computed:

=========== ======================= ==========================================================
``exclude`` left out                Bruch2019; Yu2020 (which removes such queries beforehand)
``zero``    0                       Qin2010 (the evaluation tools of LETOR and MSLR)
``one``     1                       Pobrotyn2021; LightGBM and XGBoost
=========== ======================= ==========================================================

With N queries of which E are empty, ``m_one = (m_exclude (N - E) + E) / N`` and ``m_zero =
m_exclude (N - E) / N``: these are increasing affine maps, so a choice between models by their means
on a fixed set is the same under all three.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from directrank.system.errors import ConfigError, DataError

CONVENTIONS = ("exclude", "zero", "one")

_FILL = {"zero": 0.0, "one": 1.0}


def mean_over_queries(values: np.ndarray, empty: str = "exclude") -> float:
    """Mean of per-query values under one convention for empty queries.

    Args:
        values: float ``[Q]``, NaN for an empty query.
        empty: ``exclude``, ``zero`` or ``one``.

    Returns:
        The mean; NaN if no query is left to average.

    Raises:
        ConfigError: an unknown convention.

    >>> values = np.array([0.5, 1.0, np.nan])
    >>> [mean_over_queries(values, empty) for empty in CONVENTIONS]
    [0.75, 0.5, 0.8333333333333334]
    """
    _check_convention(empty)
    values = np.asarray(values, dtype=np.float64)
    known = ~np.isnan(values)
    values = values[known] if empty == "exclude" else np.where(known, values, _FILL[empty])
    return float(values.mean()) if len(values) else float("nan")


def mean_metric(per_query: pd.DataFrame, label: str, empty: str = "exclude") -> pd.DataFrame:
    """Mean of one metric per trial and split.

    Args:
        per_query: one row per trial, split and query, as runs write them.
        label: the metric's column, e.g. ``ndcg@5``.
        empty: ``exclude``, ``zero`` or ``one``.

    Returns:
        Columns ``trial``, ``split``, ``value``, ``n_queries`` and ``n_empty``, sorted by trial and
        split; ``n_queries`` counts the empty ones as well.

    Raises:
        DataError: the metric was not evaluated.
        ConfigError: an unknown convention.

    >>> rows = pd.DataFrame({"trial": 0, "split": "test", "ndcg@5": [0.5, 1.0, np.nan]})
    >>> mean_metric(rows, "ndcg@5", empty="zero").to_dict("records")
    [{'trial': 0, 'split': 'test', 'value': 0.5, 'n_queries': 3, 'n_empty': 1}]
    """
    _check_convention(empty)
    if label not in per_query:
        raise DataError(
            f"these results have no metric '{label}'",
            f"add it to the run's evaluation; they have {', '.join(map(str, per_query.columns))}",
        )
    column = per_query[label].to_numpy()
    rows = []
    for (trial, split), places in rows_of_trials(per_query).items():
        values = column[places]
        n_empty = int(np.isnan(values).sum())
        rows.append((trial, split, mean_over_queries(values, empty), len(values), n_empty))
    return pd.DataFrame(rows, columns=["trial", "split", "value", "n_queries", "n_empty"])


def rows_of_trials(per_query: pd.DataFrame) -> dict[tuple[int, str], np.ndarray]:
    """The rows of each trial and split, int ``[Q]``, sorted by trial and split."""
    return dict(sorted(per_query.groupby(["trial", "split"]).indices.items()))


def mean_of_fold_means(
    folds: Sequence[pd.DataFrame], label: str, empty: str = "zero"
) -> pd.DataFrame:
    """LETOR's published number: the mean over the folds of the mean over each fold's queries.

    It differs from the mean over the queries of all folds, unless the folds have the same size.

    Args:
        folds: one table of per-query results per fold, with the same trials and splits in each.
        label: the metric's column.
        empty: convention for empty queries; LETOR's own tool counts them as zero.

    Returns:
        Columns ``trial``, ``split``, ``value``, ``n_folds``, ``n_queries`` and ``n_empty``.

    Raises:
        DataError: there are no folds, they differ in their trials or splits, or the metric was not
            evaluated.
        ConfigError: an unknown convention.

    >>> folds = [
    ...     pd.DataFrame({"trial": 0, "split": "test", "ndcg@5": values})
    ...     for values in ([0.2, 0.4], [0.5, 0.6, 0.7])
    ... ]
    >>> mean_of_fold_means(folds, "ndcg@5")["value"].round(3).tolist()
    [0.45]
    """
    if not folds:
        raise DataError("there are no folds to average", "train the runs of all folds first")
    means = [mean_metric(fold, label, empty) for fold in folds]
    for mean in means[1:]:
        if not mean[["trial", "split"]].equals(means[0][["trial", "split"]]):
            raise DataError(
                "the folds' results differ in their trials or splits",
                "train every fold with the same number of trials",
            )
    result = means[0][["trial", "split"]].copy()
    result["value"] = np.stack([mean["value"] for mean in means], axis=1).mean(axis=1)
    result["n_folds"] = len(means)
    for count in ("n_queries", "n_empty"):
        result[count] = np.sum([mean[count] for mean in means], axis=0)
    return result


def convert_mean(
    value: float | np.ndarray, n_queries: int, n_empty: int, source: str, target: str
) -> float | np.ndarray:
    """Convert a mean from one convention for empty queries to another.

    Args:
        value: mean(s) in [0, 1] under ``source``. For means in per cent divide by 100 first.
        n_queries: N, number of queries of the set, including empty ones.
        n_empty: E, number of empty queries.
        source: convention of ``value``.
        target: convention of the result.

    Returns:
        The mean(s) under ``target``.

    Raises:
        ConfigError: an unknown convention.
        ValueError: the counts are impossible, or all queries are empty.

    >>> convert_mean(0.75, n_queries=3, n_empty=1, source="exclude", target="zero")
    0.5
    """
    _check_convention(source)
    _check_convention(target)
    if not 0 <= n_empty < n_queries:
        raise ValueError(f"{n_empty} empty queries of {n_queries} leave no mean to convert")
    known = n_queries - n_empty
    excluded = value
    if source != "exclude":
        excluded = (value * n_queries - _FILL[source] * n_empty) / known
    if target == "exclude":
        return excluded
    return (excluded * known + _FILL[target] * n_empty) / n_queries


def _check_convention(empty: str) -> None:
    if empty not in CONVENTIONS:
        raise ConfigError(
            f"unknown convention '{empty}' for empty queries",
            f"choose one of: {', '.join(CONVENTIONS)}",
        )
