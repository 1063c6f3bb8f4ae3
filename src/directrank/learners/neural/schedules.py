"""Learning rates that change, and weights that are drawn anew, by how training goes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass
class Pace:
    """How the training loss of one model has gone since its weights were drawn.

    Attributes:
        factor: what its learning rate is multiplied by now.
        epochs: passes over the training queries since then.
        last: training loss of the last of them.
        lowest: the lowest of them.
        idle: epochs since that one.
        draws: how often weights were drawn anew.
    """

    factor: float = 1.0
    epochs: int = 0
    last: float = float("inf")
    lowest: float = float("inf")
    idle: int = 0
    draws: int = 0

    def after_epoch(self, loss: float, schedule: Mapping[str, Any] | None) -> None:
        """Take note of an epoch's mean training loss and change the learning rate.

        ``schedule`` is ``{name: step, every, factor}``: multiply by ``factor`` every so many
        epochs; ``{name: on_worse_cost, factor}``: after each epoch whose loss is worse than that of
        the epoch before (Burges2006, section 6); or None.
        """
        self.epochs += 1
        if schedule is not None:
            in_steps = schedule["name"] == "step"
            if self.epochs % schedule["every"] == 0 if in_steps else loss > self.last:
                self.factor *= schedule["factor"]
        self.idle = 0 if loss < self.lowest else self.idle + 1
        self.lowest = min(self.lowest, loss)
        self.last = loss

    def gone_stale(self, restart_after: int | None) -> bool:
        """Whether the loss has not fallen below its lowest for ``restart_after`` epochs."""
        return restart_after is not None and self.idle >= restart_after

    def drawn_anew(self) -> Pace:
        """The pace of fresh weights."""
        return Pace(draws=self.draws + 1)
