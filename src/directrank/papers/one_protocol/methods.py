"""The methods of the comparison under one protocol: a loss with a scorer, or boosted trees.

A method's value for a query is the mean over its trials. Queries are the blocks of every test,
because they are independent of each other, while folds share training queries and trials share all
of them. So the tests generalise to other queries, for models trained as these were. If a collection
has groups of queries, only groups are independent, and they are the blocks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from directrank.papers.one_protocol.questions import FURTHER
from directrank.papers.shared.evidence import Dataset, Evidence
from directrank.papers.shared.format import count, p_value, spread
from directrank.papers.shared.leads import training_sentence
from directrank.papers.shared.methods import (
    Method,
    by_method,
    mean_over_queries,
    paired_groups,
    paired_values,
    require_equal_folds,
)
from directrank.stats.group_signs import GroupSigns
from directrank.stats.intervals import Interval
from directrank.stats.ranks import all_pairs, equivalence, mean_ranks
from directrank.system.errors import DataError

#: The part of the experiments' names that says what is trained → its name in print.
SCORERS = {"linear": "linear", "tower": "network", "context": "context-aware", "trees": "trees"}

#: The same as headings.
TITLES = {
    "linear": "Linear scorer",
    "tower": "Network",
    "context": "Context-aware ranker",
    "trees": "Boosted trees",
}

#: Scorers that take a loss.
NEURAL = ("linear", "tower", "context")

#: The metric that compares all pairs, and the one that chooses configurations and epochs.
PRIMARY = "ndcg@10"

#: Heading → metric.
METRICS = {"NDCG@5": "ndcg@5", "NDCG@10": PRIMARY, "MAP": "ap", "nERR@10": "nerr@10"}

SIGNIFICANT = 0.05

#: Margins: means that differ by no more than the first are equal in practice; the second is
#: narrower.
MARGINS = (0.01, 0.005)


def labels_of(names: pd.DataFrame) -> list[str]:
    """The name of each row's method among those of all scorers."""
    return [
        name + ("" if scorer == SCORERS["trees"] else f", {scorer}")
        for name, scorer in names[["method", "scorer"]].itertuples(index=False)
    ]


class Comparison(ABC):
    """Values of methods for the same queries, and the differences of all pairs."""

    @property
    @abstractmethod
    def dataset(self) -> Dataset:
        """What the numbers are of."""

    @property
    @abstractmethod
    def names(self) -> pd.DataFrame:
        """The names of the methods, one per row: columns ``method`` and ``scorer``."""

    @abstractmethod
    def values_of(self, metric: str) -> pd.DataFrame:
        """A metric, one row per query that is not empty, one column per method."""

    @property
    @abstractmethod
    def groups(self) -> np.ndarray | None:
        """The group of each row of :attr:`values`; None if queries are independent."""

    @cached_property
    def values(self) -> pd.DataFrame:
        """:meth:`values_of` the primary metric."""
        return self.values_of(PRIMARY)

    @cached_property
    def labels(self) -> list[str]:
        """The name of each method among those of all scorers."""
        return labels_of(self.names)

    @cached_property
    def blocks(self) -> pd.DataFrame:
        """:meth:`blocked` of :attr:`values`."""
        return self.blocked(self.values)

    def blocked(self, values: pd.DataFrame) -> pd.DataFrame:
        """The blocks that are ranked: a row per query, or the mean of each group of queries."""
        return values if self.groups is None else values.groupby(self.groups).mean()

    def ahead(self, pairs: pd.DataFrame) -> np.ndarray:
        """For every pair 1 if the first is ahead and -1 if the second is, according to the test.

        Wilcoxon's test is of the ranks of differences, so their sign decides, not that of the mean.
        """
        effect = pairs["effect" if self.groups is None else "difference"]
        return np.sign(effect.to_numpy()).astype(int)

    @property
    def size(self) -> str:
        """The number of queries, and of their groups, in words."""
        queries = f"{count(len(self.values))} test queries"
        return queries if self.groups is None else f"{queries} in {count(len(self.blocks))} groups"

    @property
    def ranked(self) -> str:
        """What the methods are ranked on, in words."""
        queries = f"{count(len(self.values))} test queries"
        if self.groups is None:
            return queries
        return f"the means of {count(len(self.blocks))} groups of {queries}"

    @property
    def kind_of_blocks(self) -> str:
        """The kind of blocks that are ranked, in words."""
        return "Queries" if self.groups is None else "Groups of related queries"

    @property
    def test(self) -> str:
        """The test behind :attr:`pairs`, in words."""
        if self.groups is None:
            return "Wilcoxon's signed-rank test"
        return "a t test with errors by group of queries"

    @property
    def correction(self) -> str:
        """The correction over all pairs, in words."""
        if self.groups is None:
            return "Holm's correction"
        return "Romano and Wolf's correction with random signs of groups"

    @cached_property
    def signs(self) -> GroupSigns | None:
        """What corrects the tests of all pairs if queries form groups; otherwise None."""
        if self.groups is None:
            return None
        return GroupSigns(self.values.to_numpy(dtype=np.float64), self.groups)

    @cached_property
    def mean_ranks(self) -> np.ndarray:
        """The mean over the blocks of each method's rank, ``[k]``."""
        return mean_ranks(self.blocks.to_numpy())

    @cached_property
    def pairs(self) -> pd.DataFrame:
        """Every pair of at least two methods; see :func:`directrank.stats.ranks.all_pairs`."""
        return all_pairs(self.values, self.groups, self.signs)

    def equivalent(self, margin: float) -> np.ndarray:
        """Corrected p that each pair is equivalent within ``margin``."""
        return equivalence(self.pairs, margin, self.signs)

    @cached_property
    def decisions(self) -> pd.Series:
        """:meth:`decided` within the first of :data:`MARGINS`."""
        return self.decided(MARGINS[0])

    def decided(self, margin: float) -> pd.Series:
        """For every pair whether the first is ``better``, ``worse``, ``equivalent``, or ``cannot
        tell``.

        A pair may differ significantly and by less than the margin; it then counts as better
        or worse.
        """
        words = np.array(["worse", "cannot tell", "better"])[1 + self.ahead(self.pairs)]
        sure = (self.pairs["p_corrected"] < SIGNIFICANT).to_numpy()
        equal = self.equivalent(margin) < SIGNIFICANT
        return pd.Series(np.where(sure, words, np.where(equal, "equivalent", "cannot tell")))

    def settled(self, margin: float) -> float:
        """The share of pairs that differ or are equivalent within ``margin``, after correction."""
        sure = (self.pairs["p_corrected"] < SIGNIFICANT).to_numpy()
        return float(np.mean(sure | (self.equivalent(margin) < SIGNIFICANT)))

    @cached_property
    def verdicts(self) -> np.ndarray:
        """Int ``[k, k]``: 1 where the row's method is significantly better than the column's, -1
        where it is worse, 0 where that cannot be told."""
        k = len(self.labels)
        verdicts = np.zeros((k, k), dtype=int)
        if k < 2:
            return verdicts
        sure = self.pairs[self.pairs["p_corrected"] < SIGNIFICANT]
        signs = self.ahead(sure)
        verdicts[sure["a"], sure["b"]] = signs
        verdicts[sure["b"], sure["a"]] = -signs
        return verdicts


@dataclass(frozen=True)
class Protocol(Comparison):
    """All methods on one data set, from their runs.

    Attributes:
        evidence: that of the product.
        methods: grouped by scorer, in the order of the experiments; a method's variant is its
            scorer.
    """

    evidence: Evidence
    methods: Sequence[Method]

    @property
    def dataset(self) -> Dataset:
        """What the numbers are of."""
        return self.methods[0].dataset

    @property
    def about(self) -> dict[str, Any]:
        """The first columns of every CSV file."""
        return self.evidence.about(self.dataset)

    @cached_property
    def names(self) -> pd.DataFrame:
        """See :attr:`Comparison.names`."""
        rows = [(method.name, SCORERS[method.variant]) for method in self.methods]
        return pd.DataFrame(rows, columns=["method", "scorer"])

    def of(self, *scorers: str) -> list[int]:
        """Positions of the methods of these scorers."""
        return [n for n, method in enumerate(self.methods) if method.variant in scorers]

    def values_of(self, metric: str) -> pd.DataFrame:
        """See :meth:`Comparison.values_of`."""
        return pd.DataFrame(dict(enumerate(paired_values(self.methods, metric))))

    @cached_property
    def groups(self) -> np.ndarray | None:
        """See :attr:`Comparison.groups`."""
        first = paired_values(self.methods[:1], PRIMARY)[0]
        return paired_groups(self.methods, first)

    def over_queries(self, method: Method, metric: str) -> Interval:
        """The mean of a metric over queries, with the interval that their groups allow."""
        values = method.query_values(metric)
        return mean_over_queries(values, paired_groups([method], values))

    def trained_on(self) -> str:
        """A sentence about the training queries of several folds; empty if there is one set.

        :meth:`scale` says how many queries a single training set has.
        """
        if self.folds == 1:
            return ""
        runs = [run for method in self.methods for run in method.runs]
        sizes = [run.result.record["data"]["splits"]["train"]["queries"] for run in runs]
        low, high = count(min(sizes)), count(max(sizes))
        drawn = any(run.result.spec.get("train_queries") for run in runs)
        return (
            f"The methods are trained on {low if low == high else f'{low} to {high}'} queries of "
            f"each fold{', drawn at random from its training set' if drawn else ''}. "
        )

    def scale(self) -> str:
        """Sentences about trials, tuning, data and edition for a caption."""
        runs = [run for method in self.methods for run in method.runs]
        trials = spread([run.n_trials for run in runs], "trial")
        budget = spread([run.result.fits["candidate"].nunique() for run in runs], "configuration")
        part = "test sets" if self.folds > 1 else "test"
        sentences = [
            f"Every method has {trials} with {budget} each, chosen by validation NDCG@10.",
            training_sentence(runs),
            self.evidence.sources(self.methods[0].runs, part),
            self.left_out,
        ]
        return " ".join(filter(None, sentences))

    def failed(self, *scorers: str) -> dict[str, str]:
        """The methods of these scorers that could not be trained, by their labels, and why."""
        return {
            _label(one.name, scorer): one.reason
            for scorer in scorers
            for one in self.evidence.failed
            if one.experiment.endswith(f"_{scorer}")
        }

    @property
    def left_out(self) -> str:
        """A sentence that names the methods that could not be trained; empty if there are none."""
        names = list(self.failed(*SCORERS))
        return f"Left out, because training failed: {'; '.join(names)}." if names else ""

    @property
    def trees_beside_losses(self) -> list[int]:
        """Positions of the trees that pictures of losses show: no variants within a library."""
        return [number for number in self.of("trees") if self.methods[number].name not in FURTHER]

    @property
    def elsewhere(self) -> str:
        """What a caption says if there are other trees; empty if there are none."""
        if len(self.trees_beside_losses) == len(self.of("trees")):
            return ""
        return "Other boosted trees are in the table of all methods. "

    @property
    def folds(self) -> int:
        """Number of folds."""
        return len(self.methods[0].runs)


def protocol(evidence: Evidence, dataset: str) -> Protocol:
    """The methods that were run on ``dataset``.

    Raises:
        DataError: there is none, or one lacks a fold that another has.
    """
    methods = [method for scorer in SCORERS for method in methods_of(evidence, dataset, scorer)]
    if not methods:
        raise DataError(
            f"no method was trained on {dataset}", "see the logs of the fits, or run other methods"
        )
    require_equal_folds(methods)
    return Protocol(evidence, methods)


def methods_of(evidence: Evidence, dataset: str, scorer: str) -> list[Method]:
    """The methods of a scorer that were run on ``dataset``, in the order of its experiment."""
    suffix = _label("", scorer)
    runs = evidence.runs(f"{dataset}_{scorer}")
    return list(by_method(runs, "exclude", variant=scorer, suffix=suffix).values())


def _label(name: str, scorer: str) -> str:
    return name + ("" if scorer == "trees" else f", {SCORERS[scorer]}")


def p_text(value: float) -> str:
    """A p value after the letter p: ``= 0.0123`` or ``< 0.0001``."""
    text = p_value(value)
    return text if text.startswith("<") else f"= {text}"
