"""Shared parts of learners of boosted trees: the selection metric, and the record of trees.

After every tree the run's selection metric is measured on the validation set: this is the study's
own metric, averaged over the queries that are not empty, whatever value the library gives to an
empty query. The first number of trees with the best value is kept, and training ends after
``early_stopping_rounds`` trees without improvement.
"""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from functools import cached_property
from importlib import import_module
from io import StringIO
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch

from directrank import metrics
from directrank.learners.contract import FitJob, Fitted, Splits, history_row
from directrank.learners.trees.settings import unknown
from directrank.lists.packed import RankedLists
from directrank.metrics.packed import Evaluator
from directrank.system.errors import ConfigError, DirectrankError, TrainingError
from directrank.system.seeds import derive_seed

#: How libraries speak of an option that they do not have.
_UNKNOWN = re.compile(r'Parameters: { "(\w+)"|Unknown option {(\w+)}')

#: The place in a library's source that its error names.
_PLACE = re.compile(
    r"(\[[\d:]+\] )?\S+\.(cc|cpp|h):\d+: | at \S+, line \d+ \.|\n+Stack trace.*", re.DOTALL
)


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


def check(
    settings: Mapping[str, Any],
    of: Mapping[str, Any],
    where: str,
    train: Callable[[RankedLists], object],
) -> None:
    """Raise :class:`ConfigError` if a library does not take ``settings``.

    Args:
        settings: the section ``model`` of a run.
        of: the learner's schema.
        where: the start of the message.
        train: trains a tree on these lists with ``settings``.
    """
    labels = np.array([0, 1, 0, 1], np.float32)
    # Options may name features by their numbers, hence a thousand.
    toy = RankedLists(np.eye(4, 1000, dtype=np.float32), labels, np.array([0, 2, 4]), np.arange(2))
    # LightGBM prints its errors, too.
    with warnings.catch_warnings(record=True) as caught, redirect_stdout(StringIO()):
        warnings.simplefilter("always")
        try:
            train(toy)
            reason = None
        except Exception as error:
            reason = reason_of(error)
    match = _UNKNOWN.search(reason or "\n".join(str(each.message) for each in caught))
    if match is not None:
        raise unknown(match[match.lastindex or 1], of, where)
    if reason is not None:
        raise ConfigError(
            f"{where}: {of['title']} does not take {dict(settings)}: {reason}",
            "correct the value",
        )


def reason_of(error: Exception) -> str:
    """The message of a library's error, without the place in its source."""
    return _PLACE.sub("", str(error)).strip()


def seed(job: FitJob, name: str) -> int:
    """The seed of the learner ``name`` for a trial, of 31 bits, which the libraries accept."""
    return derive_seed(job.streams, job.trial, name) % 2**31


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
