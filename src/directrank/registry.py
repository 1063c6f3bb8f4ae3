"""Functions known by name and imported on first use."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from directrank.errors import ConfigError


def look_up(registry: Mapping[str, str], name: str, kind: str) -> Callable[..., Any]:
    """The function that ``registry`` (name → ``module:function``) holds as ``name``.

    Raises:
        ConfigError: an unknown name, with the nearest known one and all of them.
    """
    if name not in registry:
        near = difflib.get_close_matches(str(name), registry, n=1)
        guess = f"did you mean '{near[0]}'? " if near else ""
        raise ConfigError(f"unknown {kind} '{name}'", f"{guess}known are: {', '.join(registry)}")
    module, function = registry[name].split(":")
    return getattr(import_module(module), function)
