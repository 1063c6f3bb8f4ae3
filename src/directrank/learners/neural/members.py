"""The models of a stack: the settings and the result of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from torch import Tensor

from directrank.learners.neural.schedules import Pace


@dataclass(frozen=True)
class Member:
    """One model of a stack: a restart of a candidate of a trial.

    Attributes:
        job: position of the candidate in the call.
        run, trial, restart: what its random streams are derived from.
        loss: its loss by name with hyper-parameters.
        rate: its learning rate before any schedule.
    """

    job: int
    run: str
    trial: int
    restart: int
    loss: Mapping[str, Any]
    rate: float

    @property
    def drawing(self) -> tuple[str | int, ...]:
        """What its random streams are named after.

        Candidates of one trial share their streams, so that they differ in their settings alone.
        """
        return (self.run, self.trial, self.restart)

    def names(self, purpose: str) -> tuple[str | int, ...]:
        """The names its random stream for ``purpose`` is derived from."""
        return (*self.drawing, purpose)


@dataclass
class Trained:
    """The result of a member so far.

    Attributes:
        state: the kept weights, each ``[1, …]``.
        history: one row per epoch.
        best_epoch, best_metric: the best on the split that chooses the epoch.
        epochs: passes over the training queries.
        finished: whether it stopped before the last epoch.
        objective: of the kept weights on the whole training set, where restarts are compared.
        pace: how its training loss changes.
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


#: What of a :class:`Trained` is plain numbers.
PLAIN = ("history", "best_epoch", "best_metric", "epochs", "finished", "objective")


def rows_of(members: Sequence[Member]) -> list[list[int]]:
    """Positions of neighbours with the same streams; each alone where their numbers differ."""
    numbered = enumerate(members)
    rows = [
        [number for number, _ in group]
        for _, group in groupby(numbered, key=lambda item: item[1].drawing)
    ]
    if len({len(row) for row in rows}) > 1:
        return [[number] for number in range(len(members))]
    return rows
