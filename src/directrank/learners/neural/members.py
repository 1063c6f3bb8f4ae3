"""The models of a stack: the settings and the result of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import numpy as np
from torch import Tensor

from directrank.learners.neural.schedules import Pace
from directrank.system.seeds import derive_seed, numpy_stream


@dataclass(frozen=True)
class Member:
    """One model of a stack: a restart of a candidate of a trial of a run.

    Attributes:
        request: position of the run's request in the call.
        job: position of the candidate in the request.
        streams, trial, restart: the names from which its random numbers are derived; see
            :class:`directrank.learners.contract.FitJob`.
        model: the scorer and its settings.
        loss: the name and hyper-parameters of its loss.
        training: its complete training settings.
    """

    request: int
    job: int
    streams: str
    trial: int
    restart: int
    model: Mapping[str, Any]
    loss: Mapping[str, Any]
    training: Mapping[str, Any]

    @property
    def rate(self) -> float:
        """Its learning rate before any schedule."""
        return float(self.training["optimizer"]["lr"])

    @property
    def drawing(self) -> tuple[str | int, ...]:
        """The names of its random numbers, without the purpose.

        Candidates of one trial share them, so that they differ only in their settings, and so do
        runs on the same data.
        """
        return (self.streams, self.trial, self.restart)

    def names(self, purpose: str) -> tuple[str | int, ...]:
        """The names from which its random numbers for ``purpose`` are derived."""
        return (*self.drawing, purpose)

    def seed(self, purpose: str) -> int:
        """The seed of its random numbers by counters for ``purpose``."""
        return derive_seed(*self.names(purpose))

    def order(self, epoch: int, queries: int) -> np.ndarray:
        """The queries in the order of an epoch, from 0: int64 ``[queries]``."""
        return numpy_stream(*self.names("shuffle"), epoch).permutation(queries)


@dataclass
class Trained:
    """The result of a member so far.

    Attributes:
        state: the kept weights, each ``[1, …]``.
        history: one row per epoch.
        best_epoch, best_metric: the best on the split that chooses the epoch.
        epochs: passes over the training queries.
        finished: whether it stopped before the last epoch.
        objective: the objective of the kept weights on the whole training set, if restarts are
            compared.
        pace: the course of its training loss.
    """

    member: Member
    state: dict[str, Tensor] = field(default_factory=dict)
    history: list[dict[str, float]] = field(default_factory=list)
    best_epoch: int = 0
    best_metric: float = float("-inf")
    epochs: int = 0
    finished: bool = False
    objective: float = float("nan")
    pace: Pace = field(default_factory=Pace)

    @property
    def over(self) -> bool:
        """Whether it is not trained any further."""
        return self.finished or self.epochs >= self.member.training["max_epochs"]


#: The attributes of :class:`Trained` that are plain numbers.
PLAIN = ("history", "best_epoch", "best_metric", "epochs", "finished", "objective")


def rows_of(members: Sequence[Member]) -> list[list[int]]:
    """Positions of neighbours with the same streams."""
    numbered = enumerate(members)
    return [
        [number for number, _ in group]
        for _, group in groupby(numbered, key=lambda item: item[1].drawing)
    ]
