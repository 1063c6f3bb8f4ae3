"""Functions known by name and imported on first use, and what their code is made of."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib import import_module
from typing import Any

from directrank.system import sources
from directrank.system.errors import ConfigError


def look_up(registry: Mapping[str, str], name: str, kind: str) -> Callable[..., Any]:
    """The function that ``registry`` (name → ``module:function``) holds as ``name``.

    Raises:
        ConfigError: an unknown name, with the nearest known one and all of them.
    """
    module, function = target_of(registry, name, kind)
    return getattr(import_module(module), function)


def target_of(registry: Mapping[str, str], name: str, kind: str) -> tuple[str, str]:
    """Module and function that :func:`look_up` would import, which raises what that raises."""
    if name not in registry:
        raise ConfigError(f"unknown {kind} '{name}'", nearest(str(name), registry))
    module, function = registry[name].split(":")
    return module, function


def nearest(name: str, known: Iterable[str]) -> str:
    """A remedy for the unknown ``name``: the nearest of the known ones, and all of them."""
    known = list(known)
    near = difflib.get_close_matches(name, known, n=1)
    guess = f"did you mean '{near[0]}'? " if near else ""
    return f"{guess}known are: {', '.join(known)}"


@cache
def imported_modules(module: str) -> tuple[str, ...]:
    """``module`` and the modules of this package that it imports anywhere, in turn, sorted."""
    return tuple(sorted(sources.dependencies([module], everywhere=True)))
