"""The package's modules as source text: where they are, what they hold, and what they import."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parents[1]


@cache
def text_of(module: str) -> bytes:
    """The source of a module, such as ``directrank.losses``; empty where there is none."""
    path = _path(module)
    return b"" if path is None else path.read_bytes()


def is_package(module: str) -> bool:
    """Whether other modules lie below it."""
    path = _path(module)
    return path is not None and path.name == "__init__.py"


@cache
def imports_of(module: str, everywhere: bool = False) -> tuple[str, ...]:
    """The modules of this package that a module imports, in its order.

    Those that it imports at its top level; with ``everywhere`` those inside its functions and for
    type checkers as well.
    """
    found: list[str] = []
    for node, at_top in _import_statements(ast.parse(text_of(module)).body):
        if not (at_top or everywhere):
            continue
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif node.module and not node.level:
            found.append(node.module)
            found += [f"{node.module}.{alias.name}" for alias in node.names]
    ours = [name for name in found if name.startswith(f"{PACKAGE.name}.")]
    return tuple(name for name in ours if _path(name) is not None)


def reached(modules: Iterable[str], imports: Callable[[str], Iterable[str]]) -> set[str]:
    """``modules``, what they import, what that imports, and so on."""
    found: set[str] = set()
    waiting = list(modules)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += imports(name)
    return found


def _import_statements(
    body: Sequence[ast.AST], at_top: bool = True
) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool]]:
    """Imports among statements and in what is nested in them, and whether they are at the top."""
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node, at_top
            continue
        later = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or (
            isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        )
        # Expressions hold no imports, and are most of a syntax tree.
        nested = [child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.expr)]
        yield from _import_statements(nested, at_top and not later)


@cache
def _path(module: str) -> Path | None:
    path = PACKAGE.joinpath(*module.split(".")[1:])
    for file in (path.with_suffix(".py"), path / "__init__.py"):
        if file.is_file():
            return file
    return None
