"""What a run can train: the registry of learners."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from directrank.errors import ConfigError
from directrank.schema import suggest


@dataclass(frozen=True)
class Learner:
    """Where a learner is, and what it reads.

    ``target`` is ``module:function``; a neural learner reads the sections ``model``, ``loss`` and
    ``training`` of a run and trains many models in one call, every other one reads ``model`` and
    trains one.
    """

    target: str
    neural: bool = False

    def load(self) -> Callable[..., Any]:
        """Import the learner's function."""
        module, function = self.target.split(":")
        return getattr(import_module(module), function)


REGISTRY: dict[str, Learner] = {
    "neural": Learner("directrank.training.fit:fit_many", neural=True),
    "lightgbm": Learner("directrank.trees.lightgbm:fit"),
    "ranklib": Learner("directrank.trees.ranklib:fit"),
}


def get(name: str) -> Learner:
    """The learner ``name``; an unknown one is a :class:`ConfigError`."""
    if name not in REGISTRY:
        raise ConfigError(f"unknown learner '{name}'", suggest(name, REGISTRY))
    return REGISTRY[name]
