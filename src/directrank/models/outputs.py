"""What scorers may do to their last value."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from directrank.system.errors import ConfigError
from directrank.system.registry import nearest

OUTPUTS: dict[str, Callable[[Tensor], Tensor]] = {"linear": lambda x: x, "tanh": torch.tanh}


def output_activation(name: str) -> Callable[[Tensor], Tensor]:
    """The activation ``name``; an unknown one is a :class:`ConfigError`."""
    if name not in OUTPUTS:
        raise ConfigError(f"unknown output '{name}' of a model", nearest(name, OUTPUTS))
    return OUTPUTS[name]
