"""Functions known by name and imported on first use, and what their code is made of."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from directrank.errors import ConfigError


def look_up(registry: Mapping[str, str], name: str, kind: str) -> Callable[..., Any]:
    """The function that ``registry`` (name → ``module:function``) holds as ``name``.

    Raises:
        ConfigError: an unknown name, with the nearest known one and all of them.
    """
    if name not in registry:
        raise ConfigError(f"unknown {kind} '{name}'", nearest(str(name), registry))
    module, function = registry[name].split(":")
    return getattr(import_module(module), function)


def nearest(name: str, known: Iterable[str]) -> str:
    """A remedy for the unknown ``name``: the nearest of the known ones, and all of them."""
    known = list(known)
    near = difflib.get_close_matches(name, known, n=1)
    guess = f"did you mean '{near[0]}'? " if near else ""
    return f"{guess}known are: {', '.join(known)}"


@cache
def imported_modules(module: str) -> tuple[str, ...]:
    """``module`` and the modules of its package that it imports, directly or not, sorted.

    Found in the source text. Packages' ``__init__`` files are left out: they name modules but
    compute nothing.
    """
    found: set[str] = set()
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name not in found and (targets := _imports(name)) is not None:
            found.add(name)
            waiting += targets
    return tuple(sorted(found))


@cache
def _imports(module: str) -> tuple[str, ...] | None:
    """What one module imports of its own package; None for a package or what is not there."""
    spec = find_spec(module)
    if spec is None or spec.submodule_search_locations is not None:
        return None
    package = module.partition(".")[0]
    tree = ast.parse(Path(spec.origin).read_text(encoding="utf-8"))
    targets: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(package):
            targets.append(node.module)
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            targets += [name for name in names if _is_module(name)]
    return tuple(targets)


@cache
def _is_module(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return False
