"""Which method to take, which to tune and which to avoid: one rule for losses and for trees.

Of methods that are no further apart than controls, any may be taken. The rule takes the one with
the highest mean whose cost is small and whose setting need not be tuned.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from directrank.papers.one_protocol.by_loss import Together
from directrank.stats.decisions import BETTER, between

#: A method that costs no more than so many times the cheapest one is cheap: a training step costs
#: more than its loss.
CHEAP = 10


@dataclass(frozen=True)
class Standing:
    """Where methods stand on some collections.

    Attributes:
        together: all methods that were compared there.
        among: those that are asked for, at least one.
        distance: how far two methods that hardly differ may be apart; nothing nearer is ranked.
    """

    together: Together
    among: Collection[str]
    distance: float

    @cached_property
    def order(self) -> list[str]:
        """The methods, the highest mean first."""
        mean = self.together.mean.sort_values(ascending=False, kind="stable")
        return [str(name) for name in mean.index if name in self.among]

    @property
    def first(self) -> str:
        """The method with the highest mean."""
        return self.order[0]

    def gap(self, name: str) -> float:
        """How far the mean of a method is below the highest one."""
        mean = self.together.mean
        return float(mean[self.first] - mean[name])

    @cached_property
    def tied(self) -> list[str]:
        """The methods that are no further below the highest mean than controls may be apart."""
        return [name for name in self.order if self.gap(name) <= self.distance]

    @cached_property
    def behind(self) -> list[str]:
        """The methods to which another one is preferable.

        They cannot be the best with 95 % confidence, are not tied with the highest mean, and are
        not shown to be within the smallest difference of interest of it.
        """
        near = {*self.together.candidates, *self.tied, *self.together.equivalent(self.first)}
        return [name for name in self.order if name not in near]

    def beaten_by(self, name: str) -> int:
        """The number of other methods of :attr:`order` that are significantly better, and by more
        than the controls."""
        pairs, labels = self.together.pairs, self.together.labels
        far = pairs[pairs["difference"].abs() > self.distance]
        is_better = between(far, len(labels))[:, labels.index(name)] == BETTER
        return sum(label in self.among for label in np.array(labels)[is_better])


@dataclass(frozen=True)
class Field:
    """What the choice among some methods rests on.

    Attributes:
        whole: where they stand on all collections together.
        each: where they stand on each of them.
        cost: of a method, in any unit; missing where it was not measured.
        moves: how far a method's validation metric moves with its own setting; missing for a
            method that has none.
    """

    whole: Standing
    each: Sequence[Standing]
    cost: Mapping[str, float]
    moves: Mapping[str, float]

    def worth_tuning(self, name: str) -> bool:
        """Whether a method's own setting moves validation by more than controls may differ."""
        return self.moves.get(name, 0.0) > self.whole.distance

    def first_cheap(self, names: Sequence[str]) -> str:
        """The first method that costs no more than :data:`CHEAP` times the cheapest of them; one
        whose cost is unknown only if no cost is known. Empty if there is none."""
        known = [self.cost[name] for name in names if name in self.cost]
        if not known:
            return next(iter(names), "")
        enough = CHEAP * min(known)
        return next(name for name in names if self.cost.get(name, math.inf) <= enough)


@dataclass(frozen=True)
class Advice:
    """What follows for a reader.

    Attributes:
        field: what it rests on.
        default: the method to take.
        tuned: the one to take if its setting is tuned; empty if there is none beside ``default``.
        avoided: the one to avoid; empty if none is behind.
    """

    field: Field
    default: str
    tuned: str
    avoided: str

    @property
    def also_behind(self) -> list[str]:
        """The others that are behind on all collections together, the highest mean first."""
        return [name for name in self.field.whole.behind if name != self.avoided]


def advise(field: Field) -> Advice:
    """Apply the rule.

    - *To take*: of the methods that are tied with the highest mean and whose setting need not be
      tuned, or else of all that are tied, the one with the highest mean of those that are cheap.
    - *To tune*: likewise, of the other ones that are tied and whose setting is worth tuning.
    - *To avoid*: of the methods that are behind on all collections together, the one to which most
      others are significantly better; the lowest mean decides between equals.
    """
    tied = field.whole.tied
    ready = [name for name in tied if not field.worth_tuning(name)]
    default = field.first_cheap(ready or tied)
    tuned = field.first_cheap(
        [name for name in tied if name != default and field.worth_tuning(name)]
    )
    whole = field.whole
    avoided = max(
        whole.behind, key=lambda name: (whole.beaten_by(name), whole.gap(name)), default=""
    )
    return Advice(field, default, tuned, avoided)
