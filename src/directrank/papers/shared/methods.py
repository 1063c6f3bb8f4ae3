"""The runs of a method, one per fold, and comparisons of methods on the same queries."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from directrank import learners
from directrank.papers.shared.evidence import Dataset, Empty, FinishedRun
from directrank.papers.shared.format import count
from directrank.stats.clusters import clustered_mean
from directrank.stats.estimates import Estimate, mean_interval
from directrank.stats.means import mean_of_fold_means
from directrank.stats.tests import wilcoxon
from directrank.stats.two_way import (
    difference_between_folds,
    difference_over_queries_and_starts,
    over_queries_and_starts,
)
from directrank.study.specification import candidates, trials_that_tune
from directrank.system.errors import ConfigError, DataError


@dataclass(frozen=True)
class Method:
    """The runs of one method, one per fold.

    Attributes:
        name: the method's name.
        runs: in the order of their folds.
        empty: the value of a query without a relevant document, unless a caller chooses another.
        variant: what distinguishes it from other variants of the same method, such as its
            architecture; empty if there is only one.
        suffix: what its label has after the name.
    """

    name: str
    runs: Sequence[FinishedRun]
    empty: Empty
    variant: str = ""
    suffix: str = ""

    @property
    def label(self) -> str:
        """Its name in print among methods with several variants."""
        return self.name + self.suffix

    @property
    def dataset(self) -> Dataset:
        """The data set of all its runs."""
        return self.runs[0].dataset

    @property
    def folds(self) -> list[int | None]:
        """The fold of each run; None for data with a single split."""
        return [run.fold for run in self.runs]

    def trial_means(
        self, metric: str, split: str = "test", empty: Empty | None = None
    ) -> np.ndarray:
        """The mean over folds of the means over ``split``, one per trial: ``[trials]``."""
        rows = [run.rows(split) for run in self.runs]
        return mean_of_fold_means(rows, metric, empty or self.empty)["value"].to_numpy()

    def mean(self, metric: str, split: str = "test") -> float:
        """The mean over the folds of their means over queries and trials."""
        return float(self.query_values(metric, split).groupby(level="fold").mean().mean())

    def query_values(
        self, metric: str, split: str = "test", empty: Empty | None = None
    ) -> pd.Series:
        """The value of every query of all folds, averaged over trials; by fold and query id."""
        empty = empty or self.empty
        values = {run.fold or 0: run.query_values(split, metric, empty) for run in self.runs}
        return pd.concat(values, names=["fold"])

    def trial_values(self, metric: str, split: str = "test") -> pd.DataFrame:
        """The value of every query of all folds, with a column per trial; otherwise like
        :meth:`query_values`.
        """
        values = {run.fold or 0: run.trial_values(split, metric, self.empty) for run in self.runs}
        return pd.concat(values, names=["fold"])

    @property
    def n_trials(self) -> int:
        """The least trials of a run."""
        return min(run.n_trials for run in self.runs)

    @property
    def deterministic(self) -> bool:
        """Whether another training would give the same values."""
        specs = [run.result.spec for run in self.runs]
        return all(
            learner.fixed is not None
            and all(learner.is_deterministic(candidate["model"]) for candidate in candidates(spec))
            for spec in specs
            for learner in [learners.get(spec["learner"])]
        )

    @property
    def repeated(self) -> bool:
        """Whether its runs show how much another training would differ."""
        return self.n_trials > 1 or self.deterministic

    @property
    def one_choice(self) -> bool:
        """Whether the trainings of a fold share the choice of a configuration."""
        specs = [run.result.spec for run in self.runs]
        return any("tune" in spec and trials_that_tune(spec) < spec["trials"] for spec in specs)

    def query_groups(self, split: str = "test") -> pd.Series:
        """The group of every query of all folds; by fold and query id."""
        groups = {run.fold or 0: run.query_groups(split) for run in self.runs}
        return pd.concat(groups, names=["fold"])


def by_method(
    runs: Sequence[FinishedRun],
    empty: Empty,
    *,
    order: Sequence[str] = (),
    setting: str = "method",
    name: str = "{}",
    variant: str = "",
    suffix: str = "",
) -> dict[str, Method]:
    """The methods of an experiment, those of ``order`` first, the others in the order of their
    runs.

    Args:
        runs: the runs of the experiment.
        empty: the value of a query without a relevant document.
        order: names of methods.
        setting: the setting that tells methods apart.
        name: the name of a method, in which the braces stand for this setting.
        variant, suffix: those of every method.

    Raises:
        DataError: a method has a fold twice, or lacks one that another has.
        ConfigError: a run lacks the setting, or its value does not fit ``name``.
    """
    grouped: dict[str, list[FinishedRun]] = {}
    for run in runs:
        value = run.setting(setting)
        try:
            grouped.setdefault(name.format(value), []).append(run)
        except ValueError as error:
            problem = f"'{name}' does not fit the setting '{setting}', which is '{value}': {error}"
            raise ConfigError(problem, "write {} for text and {:g} for numbers") from error
    names = [*(each for each in order if each in grouped), *grouped]
    methods = {
        each: Method(
            each, sorted(grouped[each], key=lambda run: run.fold or 0), empty, variant, suffix
        )
        for each in dict.fromkeys(names)
    }
    require_equal_folds(methods.values())
    return methods


def require_equal_folds(methods: Iterable[Method]) -> None:
    """Raise :class:`DataError` if a method has a fold twice, or different folds from the others."""
    methods = list(methods)
    every = sorted(
        {fold for method in methods for fold in method.folds}, key=lambda fold: fold or 0
    )
    for method in methods:
        if len(set(method.folds)) < len(method.folds):
            raise DataError(
                f"'{method.label}' has a fold twice; its folds are {method.folds}",
                "give each run of the experiment its own method and fold",
            )
        if method.folds != every:
            raise DataError(
                f"'{method.label}' was run on the folds {method.folds}, but others on {every}",
                "run every method once on each fold",
            )


def paired_values(methods: Iterable[Method], metric: str) -> list[pd.Series]:
    """The query values of each method, for the same queries in the same order.

    All paired comparisons of methods by query take their values from here.

    Raises:
        DataError: two methods were not evaluated on the same queries of the same folds.
    """
    methods = list(methods)
    values = [method.query_values(metric) for method in methods]
    for method, series in zip(methods, values, strict=True):
        _require_same_queries(method, methods[0], series.index, values[0].index)
    return values


def paired_trainings(
    methods: Iterable[Method], metric: str, split: str = "test"
) -> tuple[list[np.ndarray], pd.MultiIndex]:
    """The values of each method in each of its trainings, for the same queries in the same order.

    Returns:
        ``[T, Q]`` for each method, and the fold and id of each query.

    Raises:
        DataError: as :func:`paired_values`.
    """
    methods = list(methods)
    values = [method.trial_values(metric, split).dropna() for method in methods]
    for method, frame in zip(methods, values, strict=True):
        _require_same_queries(method, methods[0], frame.index, values[0].index)
    return [frame.to_numpy().T for frame in values], values[0].index


def _require_same_queries(a: Method, b: Method, of_a: pd.Index, of_b: pd.Index) -> None:
    if not of_a.equals(of_b):
        raise DataError(
            f"'{a.label}' and '{b.label}' were not evaluated on the same queries",
            "train both on the same prepared data",
            file=a.runs[0].result.folder,
        )


def groups_of(method: Method, queries: pd.MultiIndex, split: str = "test") -> np.ndarray | None:
    """The group of each query; None if every query is a group of its own, so that queries are
    independent.

    Args:
        method: any of those that were evaluated on the queries.
        queries: their folds and ids.
        split: of the data.
    """
    groups = method.query_groups(split).reindex(queries)
    return None if groups.is_unique else groups.to_numpy()


def mean_estimate(method: Method, metric: str, split: str = "test") -> Estimate:
    """The mean for other queries, or groups of related ones, and other trainings.

    That of a method that was trained once is for other queries only.
    """
    (values,), queries = paired_trainings([method], metric, split)
    folds = queries.get_level_values("fold").to_numpy()
    groups = groups_of(method, queries, split)
    return over_queries_and_starts(values, groups, folds, method.one_choice)


def interval_of_means(methods: Sequence[Method]) -> str:
    """A phrase that defines the intervals of :func:`mean_estimate`."""
    trials = [method.n_trials for method in methods]
    queries = "queries" if methods[0].query_groups().is_unique else "groups of related queries"
    trainings = " and other trainings" if min(trials) > 1 else ""
    if min(trials) == 1 < max(trials):
        trainings = " and, of methods with several trials, other trainings"
    return f"the half width of the 95% t interval for other {queries}{trainings}"


def how_tested(methods: Sequence[Method]) -> str:
    """A phrase that defines the test of :func:`compared`."""
    if all(method.repeated for method in methods):
        once = ""
    elif len(methods[0].runs) < 3:
        once = ", which methods that were trained once lack"
    else:
        once = ", over the folds if a method was trained once on each"
    return f"t test for other queries and other trainings{once}"


def compared(
    a: Method, b: Method, metric: str, split: str = "test", less: str | None = None
) -> Estimate:
    """The mean of ``a`` minus that of ``b``, for other queries and other trainings.

    This is the study's standard of evidence; see :mod:`directrank.stats.two_way`. If a method was
    trained once, and something of it is random, the folds tell how much trainings matter; the error
    is NaN if there are fewer than three.

    Args:
        a, b: the methods.
        metric: column of the results.
        split: where they are compared.
        less: another column. What is compared is the metric less this one.

    Raises:
        DataError: the methods were not evaluated on the same queries.
    """
    (of_a, of_b), queries = paired_trainings([a, b], metric, split)
    if less is not None:
        (less_a, less_b), _ = paired_trainings([a, b], less, split)
        of_a, of_b = of_a - less_a, of_b - less_b
    folds = queries.get_level_values("fold").to_numpy()
    groups = groups_of(a, queries, split)
    if not (a.repeated and b.repeated):
        return difference_between_folds(of_a, of_b, groups, folds)
    one_choice = (a.one_choice, b.one_choice)
    return difference_over_queries_and_starts(of_a, of_b, groups, folds, one_choice)


def over_trials(values: np.ndarray) -> dict[str, float]:
    """The columns of a mean over trials: ``mean``, ``half_width`` (95 % t interval), ``trials``."""
    estimate = mean_interval(values)
    return {"mean": estimate.mean, "half_width": estimate.half_width, "trials": estimate.n}


def signed_rank_p(a: pd.Series, b: pd.Series, groups: np.ndarray | None) -> float:
    """p of Wilcoxon's signed-rank test of paired query values.

    The test assumes independent queries. If they form groups, it is replaced by a t test of the
    mean difference with errors by group.
    """
    if groups is None:
        return wilcoxon(a, b).p_value
    return clustered_mean((a - b).to_numpy(), groups).p_differs()


def groups_sentence(methods: Sequence[Method]) -> str:
    """What a caption says about tests if test queries form groups; empty if they do not."""
    groups = methods[0].query_groups()
    if groups.is_unique:
        return ""
    return (
        f"The test queries form {count(groups.nunique())} groups. Queries of the same group are "
        "not independent, so intervals and tests are computed over groups, and a t test of the "
        "mean difference replaces Wilcoxon's test. "
    )
