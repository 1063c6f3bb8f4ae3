"""The package's modules as source text: their imports and signatures.

They are read without being imported, so that planning a study needs no PyTorch.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import cache
from inspect import Parameter, Signature
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).parents[1]


@cache
def text_of(module: str) -> bytes:
    """The source of a module, such as ``directrank.losses``; empty if there is none."""
    path = _path(module)
    return b"" if path is None else path.read_bytes()


@cache
def imports_of(module: str) -> frozenset[str]:
    """The modules of this package that a module imports anywhere, inside functions, too.

    Imports for type checkers only do not count.
    """
    return frozenset(_graph().find_modules_directly_imported_by(module))


def dependencies(modules: Iterable[str]) -> set[str]:
    """``modules`` and the modules of this package that they import, directly or not.

    They include what the ``__init__`` of a package imports, but that file itself only if it is
    named: it lists what others may import, and a new entry does not affect modules that use another
    one.
    """
    named = set(modules)
    found: set[str] = set()
    waiting = set(named)
    while waiting:
        found |= waiting
        packages = {name.rpartition(".")[0] for name in waiting} - {""}
        waiting = packages.union(*map(imports_of, waiting)) - found
    return {name for name in found if name in named or not _graph().find_children(name)}


@cache
def _graph() -> Any:
    """The imports among the modules of this package."""
    import grimp

    return grimp.build_graph(PACKAGE.name, exclude_type_checking_imports=True, cache_dir=None)


@cache
def signature_of(module: str, function: str) -> Signature | None:
    """The signature of a function that ``module`` defines, without annotations.

    None if no ``def`` at the module's top level defines it. A default that is not a literal is
    given as its source text.
    """
    for node in _tree(module).body:
        if isinstance(node, ast.FunctionDef) and node.name == function:
            return Signature(list(_parameters(node.args)))
    return None


def _parameters(arguments: ast.arguments) -> Iterator[Parameter]:
    def parameter(argument: ast.arg, kind: Any, default: ast.expr | None) -> Parameter:
        if default is None:
            return Parameter(argument.arg, kind)
        try:
            value = ast.literal_eval(default)
        except ValueError:
            value = ast.unparse(default)
        return Parameter(argument.arg, kind, default=value)

    positional = arguments.posonlyargs + arguments.args
    required = len(positional) - len(arguments.defaults)
    for number, argument in enumerate(positional):
        early = number < len(arguments.posonlyargs)
        kind = Parameter.POSITIONAL_ONLY if early else Parameter.POSITIONAL_OR_KEYWORD
        default = arguments.defaults[number - required] if number >= required else None
        yield parameter(argument, kind, default)
    if arguments.vararg:
        yield Parameter(arguments.vararg.arg, Parameter.VAR_POSITIONAL)
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        yield parameter(argument, Parameter.KEYWORD_ONLY, default)
    if arguments.kwarg:
        yield Parameter(arguments.kwarg.arg, Parameter.VAR_KEYWORD)


def _tree(module: str) -> ast.Module:
    return ast.parse(text_of(module))


@cache
def _path(module: str) -> Path | None:
    path = PACKAGE.joinpath(*module.split(".")[1:])
    for file in (path.with_suffix(".py"), path / "__init__.py"):
        if file.is_file():
            return file
    return None
