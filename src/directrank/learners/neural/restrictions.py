"""What learners with compiled passes of their own refuse, in the same words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from directrank.system.errors import ConfigError

#: What a user can do about a setting that such a learner does not have.
REMEDY = "mend it, or take the learner 'neural'"


def require_plain_sgd(learner: str, training: Mapping[str, Any], fixed: Mapping[str, Any]) -> None:
    """Raise a :class:`ConfigError` where training has other settings than a learner's passes.

    Args:
        learner: its name.
        training: the section ``training`` with every default.
        fixed: the keys that have one value, with it.
    """
    for key, value in fixed.items():
        if training[key] != value:
            raise ConfigError(
                f"learner '{learner}': training.{key} must be {value}, is {training[key]}", REMEDY
            )
    optimizer = training["optimizer"]
    if optimizer["name"] != "sgd" or optimizer.get("weight_decay"):
        raise ConfigError(f"learner '{learner}' has plain sgd only", REMEDY)
