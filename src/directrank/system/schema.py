"""Check documents against JSON schemas, and report errors that a person can act on."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError, best_match

from directrank.system.errors import ConfigError
from directrank.system.registry import nearest


class _Strict:
    """Refuses a key that a mapping already has, which YAML forbids and PyYAML lets pass."""

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Merge what ``<<`` names into a mapping, whose own keys come first and must differ."""
        # A node that is named again has its merged keys by then.
        known: set[int] = self.__dict__.setdefault("_flattened", set())
        if id(node) not in known:
            keys = [key for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
            names = [key.value for key in keys]
            for place, key in enumerate(keys):
                if key.value in names[:place]:
                    problem = f"the key '{key.value}' is there twice"
                    raise yaml.constructor.ConstructorError(None, None, problem, key.start_mark)
            known.add(id(node))
        super().flatten_mapping(node)  # type: ignore[misc]


class _Loader(_Strict, yaml.SafeLoader):
    """Reads YAML's numbers, and also those without a point, such as ``1e-7``."""


class _FastLoader(_Strict, getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """The same in C where PyYAML has it, ten times as fast, with less helpful errors."""


for _loader in (_Loader, _FastLoader):
    _loader.add_implicit_resolver(
        "tag:yaml.org,2002:float",
        re.compile(r"[-+]?[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+$"),
        list("-+0123456789"),
    )


def read_yaml(path: str | Path) -> Any:
    """Read a YAML or JSON file, with ``1e-7`` as a number.

    Raises:
        ConfigError: the file is missing or not valid.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file", "check the path") from None
    try:
        return _loaded(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or error
        raise ConfigError(f"{path}{line}: not valid YAML: {problem}", "correct the file") from None


@cache
def package_schema(name: str) -> Mapping[str, Any]:
    """The schema ``name`` (such as ``run``) that comes with the package."""
    text = (files("directrank") / "schemas" / f"{name}.schema.yaml").read_text(encoding="utf-8")
    return _loaded(text)


def _loaded(text: str) -> Any:
    try:
        return yaml.load(text, _FastLoader)
    except yaml.YAMLError:
        return yaml.load(text, _Loader)


def check(document: Any, schema: Mapping[str, Any], where: str) -> None:
    """Raise a :class:`ConfigError` that names ``where`` and the key if ``document`` is not valid.

    A schema maps old names of keys to new ones under ``x-renamed``, for the message.
    """
    error = best_match(Draft202012Validator(schema).iter_errors(document))
    if error is not None:
        raise ConfigError(f"{where}: {_sentence(error)}", _remedy(error))


def complete(document: Mapping[str, Any], schema: Mapping[str, Any], where: str) -> dict[str, Any]:
    """``document``, with the defaults of ``schema``'s properties for the keys that it lacks.

    Raises:
        ConfigError: see :func:`check`.
    """
    check(dict(document), schema, where)
    properties = schema["properties"].items()
    defaults = {key: entry["default"] for key, entry in properties if "default" in entry}
    return {**defaults, **document}


def suggest(name: str, known: Iterable[str]) -> str:
    """As :func:`.registry.nearest`, with the known names sorted."""
    return nearest(name, sorted(known))


def refuse_unknown(settings: Iterable[str], known: Iterable[str], what: str) -> None:
    """Raise a :class:`ConfigError` for the first of ``settings`` that is not ``known``."""
    known = list(known)
    for key in settings:
        if key not in known:
            raise ConfigError(f"{what} has no setting '{key}'", suggest(key, known))


def _path(error: ValidationError) -> str:
    return ".".join(str(part) for part in error.absolute_path) or "the top level"


def _unknown_keys(error: ValidationError) -> list[str]:
    return sorted(set(error.instance) - set(error.schema.get("properties", {})))


def _sentence(error: ValidationError) -> str:
    if error.validator == "additionalProperties" and isinstance(error.instance, dict):
        unknown = _unknown_keys(error)
        if unknown:
            return f"unknown key '{unknown[0]}' at {_path(error)}"
    return f"{error.message} (at {_path(error)})"


def _remedy(error: ValidationError) -> str:
    if error.validator == "additionalProperties" and isinstance(error.instance, dict):
        unknown = _unknown_keys(error)
        if unknown:
            renamed = error.schema.get("x-renamed", {})
            if unknown[0] in renamed:
                return f"use its new name, '{renamed[unknown[0]]}'"
            return suggest(unknown[0], error.schema.get("properties", {}))
    description = error.schema.get("description") if isinstance(error.schema, Mapping) else None
    return description or "see config/README.md for the meaning of each key"
