"""The methods of the comparison under one protocol: a loss with a scorer, or boosted trees.

A method's value of a query is the mean over its trials. Queries are the blocks of every test: they
are independent of each other, which folds (they share training queries) and trials (they share all
of them) are not. So the tests speak of other queries, and of models trained as these were.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from directrank.papers.shared.evidence import (
    Dataset,
    Empty,
    Evidence,
    PlannedRun,
    data_sentence,
    spread,
)
from directrank.stats.means import mean_of_fold_means
from directrank.stats.ranks import all_pairs
from directrank.system.errors import DataError

#: The part of the experiments' names that says what is trained → what it is called in print.
SCORERS = {
    "linear": "linear",
    "tower": "network",
    "context": "ranker",
    "trees": "trees",
}

#: The same as a heading.
TITLES = {
    "linear": "Linear scorer",
    "tower": "Network",
    "context": "Context-aware ranker",
    "trees": "Boosted trees",
}

#: Scorers that take a loss.
NEURAL = ("linear", "tower", "context")

#: What all pairs are compared by, and what configurations and epochs are chosen by.
PRIMARY = "ndcg@10"

#: Heading → metric.
METRICS = {"NDCG@5": "ndcg@5", "NDCG@10": PRIMARY, "MAP": "ap", "nERR@10": "nerr@10"}

SIGNIFICANT = 0.05


@dataclass(frozen=True)
class Method:
    """A loss with a scorer, or a kind of trees.

    Attributes:
        name: the loss's or the library's name.
        scorer: a key of :data:`SCORERS`.
        runs: one per fold.
    """

    name: str
    scorer: str
    runs: Sequence[PlannedRun]

    @property
    def label(self) -> str:
        """Its name where methods of several scorers stand together, e.g. ``ListNet, linear``."""
        return self.name if self.scorer == "trees" else f"{self.name}, {SCORERS[self.scorer]}"

    def trial_means(self, metric: str, empty: Empty = "exclude") -> np.ndarray:
        """The mean of the folds' test means, one per trial: ``[trials]``."""
        means = mean_of_fold_means([run.result.per_query for run in self.runs], metric, empty)
        return means.loc[means["split"] == "test", "value"].to_numpy()

    def query_values(self, metric: str, empty: Empty = "exclude") -> pd.Series:
        """Every test query of all folds, averaged over trials; by fold and query id."""
        return pd.concat(
            {
                number: run.query_values("test", metric, empty)
                for number, run in enumerate(self.runs)
            }
        )

    @cached_property
    def seconds(self) -> float:
        """Training time of one configuration in seconds, validation included: the mean over trials,
        configurations and folds, as measured."""
        histories = [run.result.history for run in self.runs]
        fits = [history.groupby(["trial", "candidate"])["seconds"].sum() for history in histories]
        return float(pd.concat(fits).mean())


@dataclass(frozen=True)
class Protocol:
    """All methods on one data set.

    Attributes:
        edition: of the study.
        methods: those of a scorer together, in the order of the experiments.
    """

    edition: str
    methods: Sequence[Method]

    @property
    def dataset(self) -> Dataset:
        """What the numbers are of."""
        return self.methods[0].runs[0].dataset

    @property
    def about(self) -> dict[str, str]:
        """The first columns of every CSV file."""
        kind = self.dataset.kind
        return {"edition": self.edition, "dataset": self.dataset.title, "data": kind}

    def of(self, *scorers: str) -> list[int]:
        """Positions of the methods of these scorers."""
        return [n for n, method in enumerate(self.methods) if method.scorer in scorers]

    @cached_property
    def values(self) -> pd.DataFrame:
        """The primary metric, one row per query that is not empty, one column per method."""
        columns = [method.query_values(PRIMARY) for method in self.methods]
        for method, column in zip(self.methods, columns, strict=True):
            if not column.index.equals(columns[0].index):
                raise DataError(
                    f"'{method.label}' and '{self.methods[0].label}' were not evaluated on the "
                    "same queries",
                    "train both on the same prepared data",
                )
        return pd.DataFrame(dict(enumerate(columns)))

    @cached_property
    def pairs(self) -> pd.DataFrame:
        """Every pair of methods; see :func:`directrank.stats.ranks.all_pairs`."""
        return all_pairs(self.values)

    @cached_property
    def verdicts(self) -> np.ndarray:
        """Int ``[k, k]``: 1 where the row's method is significantly better than the column's, -1
        where it is worse, 0 where that cannot be told."""
        found = np.zeros((len(self.methods), len(self.methods)), dtype=int)
        sure = self.pairs[self.pairs["p_holm"] < SIGNIFICANT]
        # Wilcoxon's test speaks of ranks of differences: their sign decides, not the mean's.
        signs = np.sign(sure["effect"].to_numpy()).astype(int)
        found[sure["a"], sure["b"]] = signs
        found[sure["b"], sure["a"]] = -signs
        return found

    def scale(self) -> str:
        """Sentences about trials, tuning, data and edition for a caption."""
        runs = [run for method in self.methods for run in method.runs]
        trials = spread([run.n_trials for run in runs], "trial")
        budget = spread([run.result.fits["candidate"].nunique() for run in runs], "configuration")
        data = data_sentence(
            self.methods[0].runs, "test", "test parts" if self.folds > 1 else "test"
        )
        return f"Every method: {trials}, {budget} each, chosen by validation NDCG@10. {data} " + (
            f"Edition {self.edition}."
        )

    @property
    def folds(self) -> int:
        """Number of folds."""
        return len(self.methods[0].runs)


def protocol(evidence: Evidence, dataset: str) -> Protocol:
    """The methods that were run on ``dataset``.

    Raises:
        DataError: fewer than three methods, or one that lacks a fold which another has.
    """
    found: dict[tuple[str, str], list[PlannedRun]] = {}
    for scorer in SCORERS:
        for run in evidence.runs(f"{dataset}_{scorer}"):
            found.setdefault((scorer, run.setting("method")), []).append(run)
    methods = [Method(name, scorer, runs) for (scorer, name), runs in found.items()]
    if len(methods) < 3:
        raise DataError(
            f"fewer than three methods were run on {dataset}", "add variants to its experiments"
        )
    folds = [[run.result.spec["fold"] for run in method.runs] for method in methods]
    for method, own in zip(methods, folds, strict=True):
        if own != folds[0]:
            raise DataError(
                f"'{method.label}' was run on the folds {own}, others on {folds[0]}",
                "run every method on the same folds",
            )
    return Protocol(evidence.edition, methods)


def needs(dataset: str) -> tuple[str, ...]:
    """The experiments on ``dataset``."""
    return tuple(f"{dataset}_{scorer}" for scorer in SCORERS)


def standin_note(study: Protocol) -> list[str]:
    """A paragraph that warns of generated data, where they are."""
    if not study.dataset.standin:
        return []
    return [
        f"The {study.dataset.title} is generated data: what follows is about it alone, and says "
        "nothing about which loss is good on data of users."
    ]


def p_text(value: float) -> str:
    """A p value after the letter p: ``= 0.0123`` or ``< 0.0001``."""
    return "< 0.0001" if value < 0.0001 else f"= {value:.4f}"
