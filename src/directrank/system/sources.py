"""The package's modules as source text: their imports, constants and signatures.

They are read without being imported, so that planning a study needs no PyTorch, and digests can
follow the imports.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Sequence
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


def modules() -> list[str]:
    """The names of all modules of this package, including packages."""
    files = (path.relative_to(PACKAGE.parent).with_suffix("") for path in PACKAGE.rglob("*.py"))
    parts = (file.parent.parts if file.name == "__init__" else file.parts for file in files)
    return sorted(".".join(names) for names in parts)


def imports_of(module: str, everywhere: bool = False) -> tuple[str, ...]:
    """The modules of this package that a module imports, in the order of its imports.

    These are the imports at its top level and, with ``everywhere``, also those inside functions and
    those for type checkers only.
    """
    return tuple(name for name, at_top in _imports(module) if at_top or everywhere)


def dependencies(modules: Iterable[str], everywhere: bool = False) -> set[str]:
    """``modules`` and the modules of this package that they import, directly or not.

    A package's ``__init__`` is left out unless it is named: it lists what others may import, and a
    new entry does not affect modules that use another one.
    """

    def imports(name: str) -> list[str]:
        return [other for other in imports_of(name, everywhere) if not _is_package(other)]

    return reached(modules, imports)


def reached(modules: Iterable[str], imports: Callable[[str], Iterable[str]]) -> set[str]:
    """``modules`` and everything that they import, directly or not."""
    result: set[str] = set()
    waiting = list(modules)
    while waiting:
        name = waiting.pop()
        if name not in result:
            result.add(name)
            waiting += imports(name)
    return result


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


def constant_of(module: str, name: str) -> Any:
    """The value of a constant that a module defines by a literal.

    Its dictionaries may contain (``NAME``) or unpack (``**NAME``) other such constants, including
    imported ones.

    Raises:
        LookupError: the module neither defines nor imports it.
        ValueError: it is computed.
    """
    for node in _tree(module).body:
        match node:
            case (
                ast.Assign(targets=[ast.Name(id=target)], value=ast.expr() as value)
                | ast.AnnAssign(target=ast.Name(id=target), value=ast.expr() as value)
            ) if target == name:
                return _literal(value, module)
            case ast.ImportFrom(module=str(origin), names=aliases) if name in (
                alias.name for alias in aliases
            ):
                return constant_of(origin, name)
    raise LookupError(f"{module} has no constant {name}")


def _literal(node: ast.expr, module: str) -> Any:
    if isinstance(node, ast.Name):
        return constant_of(module, node.id)
    if not isinstance(node, ast.Dict):
        return ast.literal_eval(node)
    result: dict[Any, Any] = {}
    for key, value in zip(node.keys, node.values, strict=True):
        content = _literal(value, module)
        result |= content if key is None else {ast.literal_eval(key): content}
    return result


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


@cache
def _imports(module: str) -> tuple[tuple[str, bool], ...]:
    """The modules of this package that a module imports, each with whether at its top level."""
    names: list[tuple[str, bool]] = []
    for node, at_top in _import_statements(_tree(module).body):
        if isinstance(node, ast.Import):
            names += [(alias.name, at_top) for alias in node.names]
        elif node.module and not node.level:
            names.append((node.module, at_top))
            names += [(f"{node.module}.{alias.name}", at_top) for alias in node.names]
    ours = f"{PACKAGE.name}."
    return tuple(item for item in names if item[0].startswith(ours) and _path(item[0]) is not None)


def _import_statements(
    body: Sequence[ast.AST], at_top: bool = True
) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool]]:
    """Imports among statements and nested in them, each with whether it is at the top level."""
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node, at_top
            continue
        later = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or (
            isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        )
        # Expressions contain no imports and make up most of a syntax tree.
        nested = [child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.expr)]
        yield from _import_statements(nested, at_top and not later)


def _tree(module: str) -> ast.Module:
    return ast.parse(text_of(module))


def _is_package(module: str) -> bool:
    path = _path(module)
    return path is not None and path.name == "__init__.py"


@cache
def _path(module: str) -> Path | None:
    path = PACKAGE.joinpath(*module.split(".")[1:])
    for file in (path.with_suffix(".py"), path / "__init__.py"):
        if file.is_file():
            return file
    return None
