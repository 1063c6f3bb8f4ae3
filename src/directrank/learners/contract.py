"""The contract of learners: their arguments and results.

A *learner* is a function ``fit(data: Splits, settings: Mapping, job: FitJob) -> Fitted``. Networks,
trees and linear baselines share this form, so that runs treat them alike.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from directrank.lists.packed import RankedLists

if TYPE_CHECKING:
    from directrank.learners.neural.checkpoints import Checkpoints

Progress = Callable[[int, int, str], None]
"""``progress(done, total, text)``, which reports the progress of a fit."""


def no_progress(done: int, total: int, text: str) -> None:
    """A :data:`Progress` that shows nothing."""


@dataclass(frozen=True)
class Splits:
    """The three splits of a data set (of one fold, if there are folds).

    Attributes:
        train: the queries to which the model is fitted.
        vali: the queries that choose among epochs, rounds and hyper-parameters.
        test: the queries on which results are reported. No learner reads their labels, unless
            ``training.select_on`` chooses the epoch by them, to show the effect on results.
        label_levels: number of grades; every label is one of ``0 … label_levels - 1``.
    """

    train: RankedLists
    vali: RankedLists
    test: RankedLists
    label_levels: int


@dataclass(frozen=True)
class FitJob:
    """The run to which a fit belongs, and the settings of the fit.

    Attributes:
        streams: names the run's random numbers, which are ``derive_seed(streams, trial, purpose)``:
            its data and fold, so that runs on the same data have them in common.
        trial: number of the repetition, from 0.
        selection: metric mapping for early stopping, e.g. ``{"name": "ndcg", "k": 5}``.
        threads: the number of threads that the fit may use.
        device: ``"cpu"`` or a PyTorch device name such as ``"cuda"``.
        progress: called as ``progress(done, total, text)`` during the fit.
    """

    streams: str
    trial: int
    selection: Mapping[str, Any]
    threads: int
    device: str
    progress: Progress


@dataclass(frozen=True)
class Request:
    """Fits of networks that a run asks for at once.

    Attributes:
        settings: of each fit ``model``, ``loss`` and ``training``, as in a run.
        jobs: of each fit its run and trial.
        checkpoints: the store of the run's unfinished work; None saves none.
    """

    settings: Sequence[Mapping[str, Any]]
    jobs: Sequence[FitJob]
    checkpoints: Checkpoints | None = None


def history_row(
    epoch: int, seconds: float, train_loss: float = math.nan, vali_metric: float = math.nan
) -> dict[str, Any]:
    """A row of a fit's history; see :class:`Fitted`."""
    return {
        "epoch": epoch,
        "train_loss": train_loss,
        "vali_metric": vali_metric,
        "seconds": seconds,
    }


@dataclass
class Fitted:
    """A fitted model.

    Attributes:
        predict: scores of packed lists, float32 or float64 ``[N]``; higher is better.
        history: one row per epoch or boosting round: ``epoch`` (from 1), ``train_loss``,
            ``vali_metric`` (higher is better), ``seconds`` (that one took); NaN where not measured;
            and ``test_metric`` if an epoch was chosen on the test set.
        info: ``best_epoch``, ``stopped_early``, ``n_parameters`` and other facts about the fit.
        save: writes the model to the path given *without* its suffix, which the learner adds
            (``.safetensors``, ``.txt``).
        weights: the tensors of a network by their names, each ``[1, …]``; empty for other models.
        vali_metric: the mean metric on the validation set, if the fit has measured it anyway.
        device: where it computes scores.
    """

    predict: Callable[[RankedLists], np.ndarray]
    history: list[dict[str, Any]]
    info: dict[str, Any]
    save: Callable[[Path], None]
    weights: Mapping[str, Any] = field(default_factory=dict)
    vali_metric: float | None = None
    device: str = "cpu"
