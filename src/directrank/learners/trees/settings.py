"""Settings that several learners of trees have, as entries of their schemas."""

from __future__ import annotations

from typing import Any

N_TREES: dict[str, Any] = {
    "type": "integer",
    "minimum": 1,
    "description": "n_trees is the largest number of trees",
}

EARLY_STOPPING_ROUNDS: dict[str, Any] = {
    "type": "integer",
    "minimum": 0,
    "description": "early_stopping_rounds: training ends after as many trees without a better "
    "validation metric, and the best number of trees is kept; 0 keeps all trees",
}

LEARNING_RATE: dict[str, Any] = {
    "type": "number",
    "exclusiveMinimum": 0,
    "description": "learning_rate is the factor on every tree's output",
}

MAX_BIN: dict[str, Any] = {
    "type": "integer",
    "minimum": 2,
    "description": "max_bin is the largest number of histogram bins of a feature",
}

SHARE: dict[str, Any] = {"type": "number", "exclusiveMinimum": 0, "maximum": 1}
