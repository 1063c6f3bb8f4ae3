"""Shared parts of learners of boosted trees: the selection metric, and the record of trees.

After every tree the run's selection metric is measured on the validation set: this is the study's
own metric, averaged over the queries that are not empty, whatever value the library gives to an
empty query. The first number of trees with the best value is kept, and training ends after
``early_stopping_rounds`` trees without improvement.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import cached_property
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch

from directrank import metrics
from directrank.learners.contract import FitJob, Fitted, Splits, history_row
from directrank.lists.packed import RankedLists
from directrank.metrics.packed import Evaluator
from directrank.system.errors import DirectrankError, TrainingError
from directrank.system.seeds import derive_seed


class MeanMetric:
    """The mean of a metric over the queries of ``lists`` that are not empty.

    Args:
        lists: the queries.
        metric: a metric mapping such as ``{"name": "ndcg", "k": 10}``.
    """

    def __init__(self, lists: RankedLists, metric: Mapping[str, Any]) -> None:
        self.label = metrics.label(metric)
        self._lists = lists
        self._metric = metric

    def __call__(self, scores: np.ndarray) -> float:
        """The mean for scores ``[N]``."""
        (values,) = self._evaluator(torch.from_numpy(scores)[None]).values()
        return float(np.nanmean(values))

    @cached_property
    def _evaluator(self) -> Evaluator:
        return Evaluator(self._lists, [self._metric])


class Boosting:
    """A fit, tree by tree: its history, its end, and the number of trees that are kept.

    Args:
        settings: with ``n_trees`` and ``early_stopping_rounds``.
        job: the fit's.
    """

    def __init__(self, settings: Mapping[str, Any], job: FitJob) -> None:
        self.rows: list[dict[str, Any]] = []
        self._n_trees: int = settings["n_trees"]
        self._patience: int = settings["early_stopping_rounds"]
        self._job = job
        self._label = metrics.label(job.selection)
        self._best = 0
        self._before = 0.0

    def start(self) -> None:
        """Start the clock of the next tree."""
        self._before = time.perf_counter()

    def add(self, value: float) -> bool:
        """Record the next tree with its validation metric; return whether training should end."""
        seconds = time.perf_counter() - self._before
        self.rows.append(history_row(len(self.rows) + 1, seconds, vali_metric=value))
        if not self._best or value > self.rows[self._best - 1]["vali_metric"]:
            self._best = len(self.rows)
        self.start()
        self._job.progress(len(self.rows), self._n_trees, f"{self._label} {value:.4f}")
        return bool(self._patience) and len(self.rows) - self._best >= self._patience

    @property
    def kept(self) -> int:
        """The number of trees to keep."""
        return self._best if self._patience else len(self.rows)

    def fitted(
        self,
        kept: int,
        n_parameters: int,
        predict: Callable[[RankedLists], np.ndarray],
        save: Callable[[Path], None],
    ) -> Fitted:
        """The result of a learner for a model of ``kept`` trees."""
        info = {
            "best_epoch": kept,
            "epochs": len(self.rows),
            "stopped_early": len(self.rows) < self._n_trees,
            "n_parameters": n_parameters,
        }
        return Fitted(predict, self.rows, info, save)


def library(name: str, install: str) -> ModuleType:
    """The library ``name``; raises :class:`DirectrankError` if it has to be installed."""
    try:
        return import_module(name)
    except ImportError:
        raise DirectrankError(
            f"the learner '{name}' needs a package that is not installed",
            f"run `pip install {install}`",
        ) from None


def seed(job: FitJob, name: str) -> int:
    """The seed of the learner ``name`` for a trial, of 31 bits, which the libraries accept."""
    return derive_seed(job.run, job.trial, name) % 2**31


def no_split(data: Splits, remedy: str) -> TrainingError:
    """The error of a fit whose trees have one leaf each.

    All its scores would be equal, and every metric would be that of the file's order.
    """
    return TrainingError(
        f"no tree found a split in {data.train.n_documents} documents of "
        f"{data.train.n_queries} queries",
        remedy,
    )


def finite(scores: np.ndarray, remedy: str) -> np.ndarray:
    """The ``scores``; raises :class:`TrainingError` if one is not finite."""
    if not np.isfinite(scores).all():
        raise TrainingError("the trees' outputs are not finite", remedy)
    return scores
