"""The settings of what is not trained, as schemas that are read without importing a learner."""

from __future__ import annotations

from typing import Any

RANDOM_ORDER: dict[str, Any] = {"type": "object", "additionalProperties": False, "properties": {}}
