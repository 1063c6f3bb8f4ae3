"""The ranges of the numbers that losses, metrics and relaxations take as options, by their name."""

from __future__ import annotations

import inspect
import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
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
            if value.is_complex():
                return False
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

#: Those that formulas and kernels take as integers, and those that they take as Python's numbers.
_WHOLE = ("k", "neighbours", "samples", "iterations")
_PLAIN = ("max_label", "min_label")


@dataclass(frozen=True)
class Kinds:
    """What the annotations of a function say of its options.

    Attributes:
        per_query: those that may be a tensor ``[B, 1]``; an option without annotation may.
        words: those that are names.
    """

    per_query: frozenset[str]
    words: frozenset[str]


#: Of a function that takes nothing but numbers.
NUMBERS = Kinds(frozenset(), frozenset())


@cache
def kinds_of(function: Callable[..., Any]) -> Kinds:
    """The kinds of a function's options; a gain may be a list, and so is not among its words."""
    per_query, words = set(), set()
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.annotation is parameter.empty or "Tensor" in str(parameter.annotation):
            per_query.add(name)
        elif isinstance(parameter.default, str) and name != "gain":
            words.add(name)
    return Kinds(frozenset(per_query), frozenset(words))


def check_options(
    options: Mapping[str, Any], kinds: Kinds | None = None, queries: int | None = None
) -> dict[str, Any]:
    """The options in the form in which formulas and kernels take them: a whole number is an int,
    the bound of a label a number, and an array of gains a tuple. Nothing is done while a graph is
    traced.

    Args:
        options: by their names; those without a range are returned as they are.
        kinds: those of the function; None allows a tensor ``[B, 1]`` for any number.
        queries: B; None if it is unknown.

    Raises:
        ArgumentError: an option is outside of its range, is a tensor of another shape than one
            element or ``[B, 1]``, or is an array in place of a name.

    >>> check_options({"k": 2.5})
    Traceback (most recent call last):
    directrank.system.errors.ArgumentError: k must be a whole number, 1 or more, or None, not 2.5
    """
    found = dict(options)
    if torch.compiler.is_compiling():
        return found
    for name, value in options.items():
        if isinstance(value, str) and name not in RANGES:
            continue
        if name == "gain":
            found[name] = _listed(value)
        elif name in RANGES and not (value is None and name in OPTIONAL):
            found[name] = _in_range(name, value, kinds, queries)
        elif kinds is not None and name in kinds.words and hasattr(value, "__array__"):
            raise ArgumentError(f"{name} must be a name, not an array", "give a string")
    return found


def _in_range(name: str, value: Any, kinds: Kinds | None, queries: int | None) -> Any:
    """The value of an option with a range, in the form in which formulas and kernels take it."""
    _, allowed = RANGES[name]
    if isinstance(value, Tensor):
        many = kinds is None or name in kinds.per_query
        if value.numel() != 1:
            _check_shape(name, value, many, queries)
        elif name in _PLAIN:
            value = value.item()
        elif not many and value.ndim:  # of flat lists, a dimension would be one of documents
            value = value.reshape(())
    if not allowed(value):
        if isinstance(value, Tensor):
            value = value.flatten()[0].item() if value.numel() == 1 else "what the tensor holds"
        raise ArgumentError(f"{_must(name)}, not {value!r}")
    return operator.index(value) if name in _WHOLE else value


def _must(name: str) -> str:
    return f"{name} must be {RANGES[name][0]}{', or None' if name in OPTIONAL else ''}"


def _check_shape(name: str, value: Tensor, many: bool, queries: int | None) -> None:
    """Raise ArgumentError unless there may be ``many`` values, and this is one for each query."""
    rows = len(value) if queries is None and value.ndim else queries
    if many and value.shape == (rows, 1):
        return
    each = f", or one for each query as {[queries or 'B', 1]}" if many else ""
    raise ArgumentError(
        f"{_must(name)}, not a tensor {list(value.shape)}",
        f"give a number or a tensor of one element{each}".replace("'", ""),
    )


def _listed(gain: Any) -> Any:
    """Gains in an array ``[labels]`` as a tuple, but for those that are learned."""
    if getattr(gain, "requires_grad", False) or not hasattr(gain, "tolist"):
        return gain
    return tuple(gain.tolist()) if np.ndim(gain) == 1 else gain
