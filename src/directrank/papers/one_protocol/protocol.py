"""All methods on one collection, from their runs or from what was published of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from directrank.data import catalog
from directrank.papers.one_protocol.methods import (
    ALONE,
    CONTROLS,
    METRICS,
    PRIMARY,
    SCORERS,
    Comparison,
)
from directrank.papers.one_protocol.published import read
from directrank.papers.shared.evidence import Dataset, Evidence, FinishedRun
from directrank.papers.shared.format import count_range, spread
from directrank.papers.shared.leads import training_sentence
from directrank.papers.shared.methods import (
    Method,
    by_method,
    groups_of,
    paired_trainings,
    require_equal_folds,
)
from directrank.papers.shared.product import ValuesResult
from directrank.stats.two_way import OF_CHOICE
from directrank.system.errors import DataError


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
    def edition(self) -> str:
        """See :attr:`Comparison.edition`."""
        return self.evidence.edition

    @property
    def margin(self) -> float:
        """See :attr:`Comparison.margin`."""
        return self.evidence.margin

    @cached_property
    def names(self) -> pd.DataFrame:
        """See :attr:`Comparison.names`."""
        rows = [(method.name, SCORERS[method.variant]) for method in self.methods]
        return pd.DataFrame(rows, columns=["method", "scorer"])

    def measured(self, metric: str) -> Sequence[np.ndarray]:
        """See :meth:`Comparison.measured`."""
        return paired_trainings(self.methods, metric)[0]

    @cached_property
    def _queries(self) -> pd.MultiIndex:
        return paired_trainings(self.methods[:1], PRIMARY)[1]

    @cached_property
    def folds(self) -> np.ndarray:
        """See :attr:`Comparison.folds`."""
        return self._queries.get_level_values("fold").to_numpy()

    @cached_property
    def groups(self) -> np.ndarray | None:
        """See :attr:`Comparison.groups`."""
        return groups_of(self.methods[0], self._queries)

    @property
    def one_choice(self) -> list[bool]:
        """See :attr:`Comparison.one_choice`."""
        return [method.one_choice for method in self.methods]

    @property
    def runs(self) -> list[FinishedRun]:
        """The runs of all methods."""
        return [run for method in self.methods for run in method.runs]

    @property
    def trained_on(self) -> str:
        """A sentence about the training queries of several folds; empty if there is one set.

        :meth:`scale` says how many queries a single training set has.
        """
        if self.n_folds == 1:
            return ""
        sizes = [run.result.record["data"]["splits"]["train"]["queries"] for run in self.runs]
        drawn = any(run.result.spec.get("train_queries") for run in self.runs)
        return (
            f"The methods are trained on {count_range(sizes)} queries of each fold"
            f"{', drawn at random from its training set' if drawn else ''}. "
        )

    def scale(self) -> str:
        """Sentences about trials, tuning, data and edition for a caption."""
        trained = [method for method in self.methods if method.variant != CONTROLS]
        runs = [run for method in trained or self.methods for run in method.runs]
        trials = spread([run.n_trials for run in runs], "trial")
        budget = spread([run.result.fits["candidate"].nunique() for run in runs], "configuration")
        part = "test sets" if self.n_folds > 1 else "test"
        tuning = (
            f"{trials}, of which the first chooses from {budget} by validation NDCG@10 for all; "
            f"{OF_CHOICE:.0%} of a training's variance is taken to come from this choice"
            if any(self.one_choice)
            else f"{trials} with {budget} each, chosen by validation NDCG@10"
        )
        sentences = [
            f"Every method has {tuning}.",
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


def comparison(evidence: Evidence, dataset: str) -> Comparison:
    """The methods that were run on ``dataset``, from their published values if a product is given
    the file, which needs no runs."""
    for file in evidence.values_files:
        published = read(file)
        if published.dataset.name == dataset:
            return published
    return protocol(evidence, dataset)


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
    return name + ("" if scorer in ALONE else f", {SCORERS[scorer]}")


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
        "trained_on": study.trained_on,
        "failed": {scorer: dict(study.failed(scorer)) for scorer in SCORERS},
        "margin": study.margin,
    }
    if any(study.one_choice):
        about["one_choice"] = study.one_choice
    return ValuesResult(values[[*columns, *METRICS.values()]], about)
