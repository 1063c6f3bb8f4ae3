"""The settings of a learner as a JSON schema."""

from __future__ import annotations

from typing import Any

Setting = dict[str, Any]


def schema(**settings: Setting) -> dict[str, Any]:
    """The schema of these settings and no others.

    >>> schema(rounds=integer(300, 1, "rounds is the largest number of weak rankers"))["properties"]
    {'rounds': {'type': 'integer', 'minimum': 1, 'default': 300, \
'description': 'rounds is the largest number of weak rankers'}}
    """
    return {"type": "object", "additionalProperties": False, "properties": settings}


def setting(default: Any, description: str, **limits: Any) -> Setting:
    """A setting; ``limits`` are a JSON schema's keywords: ``type``, ``enum`` and so on."""
    return {**limits, "default": default, "description": description}


def integer(default: int, least: int, description: str) -> Setting:
    """A whole number of at least ``least``."""
    return setting(default, description, type="integer", minimum=least)


def positive(default: float, description: str, **limits: float) -> Setting:
    """A number above 0."""
    return setting(default, description, type="number", exclusiveMinimum=0, **limits)


def share(default: float, description: str) -> Setting:
    """A number above 0 and up to 1."""
    return positive(default, description, maximum=1)
