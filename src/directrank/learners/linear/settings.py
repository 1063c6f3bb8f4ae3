"""The settings of the linear baselines, as schemas that are read without importing a learner."""

from __future__ import annotations

from typing import Any

#: The solver's settings, as part of a learner's schema.
SOLVER: dict[str, Any] = {
    "tolerance": {
        "type": "number",
        "exclusiveMinimum": 0,
        "default": 1e-3,
        "description": "tolerance is the gap at which the solver stops, in units of the loss",
    },
    "max_planes": {
        "type": "integer",
        "minimum": 1,
        "default": 2000,
        "description": "max_planes is the largest number of cutting planes",
    },
}

RANKING_SVM: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "c": {
            "type": "number",
            "exclusiveMinimum": 0,
            "default": 1.0,
            "description": "c is the weight of the mean hinge loss against half the squared norm",
        },
        "mean_over": {
            "enum": ["pairs", "queries"],
            "default": "pairs",
            "description": "mean_over: 'pairs' gives every pair the same weight (Joachims, 2002), "
            "'queries' every query",
        },
        **SOLVER,
    },
}

SVM_MAP: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "c": {
            "type": "number",
            "exclusiveMinimum": 0,
            "default": 1.0,
            "description": "c is the weight of the mean slack of the queries",
        },
        "min_label": {
            "type": "number",
            "default": 1.0,
            "description": "min_label is the least label that counts as relevant",
        },
        **SOLVER,
    },
}

ADARANK: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "measure": {
            "type": "object",
            "required": ["name"],
            "properties": {"name": {"type": "string"}},
            "default": {"name": "average_precision"},
            "description": "measure is the metric E that is boosted, in [0, 1]",
        },
        "rounds": {
            "type": "integer",
            "minimum": 1,
            "default": 300,
            "description": "rounds is the largest number of weak rankers",
        },
        "patience": {
            "type": ["integer", "null"],
            "minimum": 1,
            "default": None,
            "description": "patience: training ends after this many rounds without a better "
            "validation metric; null goes through all rounds",
        },
        "both_directions": {
            "type": "boolean",
            "default": True,
            "description": "both_directions: a weak ranker may also sort by a feature upwards",
        },
    },
}
