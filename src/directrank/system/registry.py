"""Functions that are looked up by name and imported on first use."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any

from directrank.system.errors import ArgumentError, ConfigError
from directrank.system.sources import text_of


def listed(package: str) -> dict[str, str]:
    """What the ``__init__`` of a package imports from its modules for type checkers alone.

    They are the package's functions, which it imports when they are first used: name →
    ``module:function``. So each stands in one place, where type checkers and editors find it, too.
    """
    blocks = [node for node in ast.parse(text_of(package)).body if isinstance(node, ast.If)]
    return {
        alias.asname or alias.name: f"{node.module}:{alias.name}"
        for block in blocks
        if isinstance(block.test, ast.Name) and block.test.id == "TYPE_CHECKING"
        for node in block.body
        if isinstance(node, ast.ImportFrom) and f"{node.module}".startswith(f"{package}.")
        for alias in node.names
    }


def look_up(registry: Mapping[str, str], name: str, kind: str) -> Callable[..., Any]:
    """The function that ``registry`` (name → ``module:function``) lists under ``name``.

    Raises:
        ConfigError: the name is unknown; the remedy suggests the nearest known name and lists all.
    """
    module, function = target_of(registry, name, kind)
    return getattr(import_module(module), function)


def target_of(registry: Mapping[str, str], name: str, kind: str) -> tuple[str, str]:
    """The module and function that :func:`look_up` would import; raises the same errors."""
    if name not in registry:
        raise ConfigError(f"unknown {kind} '{name}'", nearest(str(name), registry))
    module, function = registry[name].split(":")
    return module, function


def refuse_options(what: str, options: Iterable[str], known: Iterable[str]) -> None:
    """Raise :class:`ArgumentError` for the first of the ``options`` that ``what`` does not have."""
    known = list(known)
    for option in options:
        if option not in known:
            raise ArgumentError(f"{what} has no option '{option}'", nearest(option, known))


def nearest(name: str, known: Iterable[str]) -> str:
    """A remedy for the unknown ``name``: the nearest known name, if any, and all known names."""
    known = list(known)
    near = difflib.get_close_matches(name, known, n=1)
    guess = f"did you mean '{near[0]}'? If not, " if near else ""
    return f"{guess}choose one of: {', '.join(known)}"
