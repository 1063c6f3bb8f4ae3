"""The needs of a loss, which are declared where it is defined."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import signature
from typing import Any, TypeVar

Loss = TypeVar("Loss", bound=Callable[..., Any])


@dataclass(frozen=True)
class Needs:
    """The needs of a call of a loss.

    Attributes:
        per_list: hyper-parameters that may be a tensor ``[B, 1]`` with a value for each list, so
            that models that differ in them can share a call.
        draws: whether the loss draws random numbers from its ``generator``, or a function of its
            hyper-parameters that decides it.
        flat: whether flat lists on a CPU give the same bytes as padded ones, so that training may
            pass either.
    """

    per_list: tuple[str, ...] = ()
    draws: bool | Callable[[Mapping[str, Any]], bool] = False
    flat: bool = False

    def random(self, settings: Mapping[str, Any]) -> bool:
        """Whether a loss with these hyper-parameters draws random numbers."""
        return self.draws(settings) if callable(self.draws) else self.draws


def needs(
    per_list: tuple[str, ...] = (),
    draws: bool | str | Callable[[Mapping[str, Any]], bool] = False,
    flat: bool = False,
) -> Callable[[Loss], Loss]:
    """Declare the :class:`Needs` of a loss.

    ``draws`` may name a hyper-parameter: random numbers are drawn if it is not 0 or False.
    """

    def declare(loss: Loss) -> Loss:
        random = _by(loss, draws) if isinstance(draws, str) else draws
        loss.needs = Needs(per_list, random, flat)  # type: ignore[attr-defined]
        return loss

    return declare


def _by(loss: Loss, name: str) -> Callable[[Mapping[str, Any]], bool]:
    default = signature(loss).parameters[name].default
    return lambda settings: bool(settings.get(name, default))
