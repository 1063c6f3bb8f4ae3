"""The ranges of the numbers that losses, metrics and relaxations take as options, by their name."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from numbers import Real
from typing import Any

import numpy as np
import torch
from torch import Tensor

from directrank.system.errors import ArgumentError


def _whole(least: int) -> Callable[[Any], bool]:
    def allowed(value: Any) -> bool:
        try:
            return not isinstance(value, bool) and operator.index(value) >= least
        except TypeError:
            return False

    return allowed


def _between(least: float, most: float = math.inf) -> Callable[[Any], bool]:
    """Numbers above ``least`` and below ``most``; tensors on a GPU are not read."""

    def allowed(value: Any) -> bool:
        if isinstance(value, Tensor):
            within = value.device.type != "cpu" or ((value > least) & (value < most)).all()
            return bool(within)
        return (
            isinstance(value, Real) and not isinstance(value, bool) and least < float(value) < most
        )

    return allowed


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool | np.bool_)


_POSITIVE = "a finite number above 0", _between(0)
#: The largest number below 0 is the bound, so that 0 is allowed.
_NOT_NEGATIVE = "a finite number, 0 or more", _between(-math.ulp(0.0))

#: option → its range in words, and whether it has a value. None is allowed where it is the default.
RANGES: dict[str, tuple[str, Callable[[Any], bool]]] = {
    **dict.fromkeys(("k", "neighbours"), ("a whole number, 1 or more", _whole(1))),
    **dict.fromkeys(("samples", "iterations"), ("a whole number, 0 or more", _whole(0))),
    **dict.fromkeys(
        ("alpha", "alpha_b", "base", "beta", "lam", "levels", "penalty", "sigma", "tau"), _POSITIVE
    ),
    **dict.fromkeys(("delta", "gap", "margin", "mu", "noise", "tolerance"), _NOT_NEGATIVE),
    "epsilon": ("a finite number, at least -1", _between(math.nextafter(-1.0, -2.0))),
    **dict.fromkeys(
        ("break_ties", "normalize", "rows_first", "stop_gradient", "straight_through"),
        ("True or False", _is_bool),
    ),
    "max_label": ("a number from 0 to 1023", _between(-math.ulp(0.0), 1024)),
    "min_label": ("a finite number", _between(-math.inf)),
}

#: The options that may be None, which stands for no cut-off, no squashing and each query's own.
OPTIONAL = ("k", "levels", "max_label")


def check_options(options: Mapping[str, Any]) -> None:
    """Raise ArgumentError if an option is outside of its range; nothing while a graph is traced.

    >>> check_options({"k": 2.5})
    Traceback (most recent call last):
    directrank.system.errors.ArgumentError: k must be a whole number, 1 or more, or None, not 2.5
    """
    if torch.compiler.is_compiling():
        return
    for name, value in options.items():
        if name not in RANGES or (value is None and name in OPTIONAL):
            continue
        words, allowed = RANGES[name]
        if not allowed(value):
            none = ", or None" if name in OPTIONAL else ""
            if isinstance(value, Tensor):
                value = value.flatten()[0].item() if value.numel() == 1 else "what the tensor holds"
            raise ArgumentError(f"{name} must be {words}{none}, not {value!r}")
