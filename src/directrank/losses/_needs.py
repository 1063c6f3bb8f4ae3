"""What a loss asks of whoever trains with it, declared where it is defined."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

Loss = TypeVar("Loss", bound=Callable[..., Any])


@dataclass(frozen=True)
class Needs:
    """What a call of a loss needs.

    Attributes:
        per_list: hyper-parameters that may be a tensor ``[B, 1]``, a value for each list, so that
            models that differ in them share a call.
        draws: whether the loss draws random numbers from its ``generator``; or the name of the
            hyper-parameter that says how many times it does.
    """

    per_list: tuple[str, ...] = ()
    draws: bool | str = False

    def random(self, settings: Mapping[str, Any]) -> bool:
        """Whether a loss with these hyper-parameters draws random numbers."""
        if isinstance(self.draws, str):
            return settings.get(self.draws, 0) > 0
        return self.draws


def needs(per_list: tuple[str, ...] = (), draws: bool | str = False) -> Callable[[Loss], Loss]:
    """Declare the :class:`Needs` of a loss."""

    def declare(loss: Loss) -> Loss:
        loss.needs = Needs(per_list, draws)  # type: ignore[attr-defined]
        return loss

    return declare
