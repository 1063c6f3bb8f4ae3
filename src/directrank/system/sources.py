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
    """The source of a module, such as ``directrank.losses``; empty if there is none.

    That of ``module:function`` is the function, and what it uses that the module defines.
    """
    module, _, function = module.partition(":")
    path = _path(module)
    text = b"" if path is None else path.read_bytes()
    return _Used(module, function).text if function else text


@cache
def imports_of(module: str) -> frozenset[str]:
    """The modules of this package that a module imports anywhere, inside functions, too.

    Imports for type checkers only do not count. Those of ``module:function`` are the ones that the
    function uses.
    """
    module, _, function = module.partition(":")
    if function:
        return _Used(module, function).imports
    return frozenset(_graph().find_modules_directly_imported_by(module))


class _Used:
    """What a function of a module uses: definitions of the module, and imports of this package.

    Python finds a name of neither a local variable nor a builtin in the module, so that every
    module that the function can reach by a name is found; a local variable of the same name finds
    one too many.
    """

    def __init__(self, module: str, function: str) -> None:
        lines = text_of(module).splitlines(keepends=True)
        imported, defined = _names_of(module)
        found, waiting = set[str](), {function}
        while waiting:
            found |= waiting
            nodes = [each for name in waiting for each in ast.walk(defined.get(name, ast.Pass()))]
            waiting = {each.id for each in nodes if isinstance(each, ast.Name)} - found
        self.imports = frozenset(imported[name] for name in found if name in imported)
        self.text = b"".join(
            b"".join(lines[_first_line(node) - 1 : node.end_lineno])
            for name, node in defined.items()
            if name in found
        )


@cache
def _names_of(module: str) -> tuple[dict[str, str], dict[str, ast.stmt]]:
    """The names that a module's top level imports from this package, with their modules, and those
    that it defines, with their statements."""
    imported: dict[str, str] = {}
    defined: dict[str, ast.stmt] = {}
    for node in _tree(module).body:
        if isinstance(node, ast.ImportFrom) and f"{node.module}.".startswith(f"{PACKAGE.name}."):
            for alias in node.names:
                own = f"{node.module}.{alias.name}"
                imported[alias.asname or alias.name] = own if _path(own) else f"{node.module}"
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            defined[node.name] = node
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [each for target in targets for each in ast.walk(target)]
            defined.update({each.id: node for each in names if isinstance(each, ast.Name)})
    return imported, defined


def _first_line(node: ast.stmt) -> int:
    """The line at which a definition begins, with its decorators."""
    return min([node.lineno, *(mark.lineno for mark in getattr(node, "decorator_list", ()))])


def dependencies(modules: Iterable[str]) -> set[str]:
    """``modules`` and the modules of this package that they import, directly or not.

    ``module:function`` stands for what a function uses of its module.

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
