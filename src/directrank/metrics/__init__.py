"""Ranking metrics per query: ``name(scores, labels, mask, k=None, …) -> Tensor [B]``.

Each metric is one file: a formula over any ranking, and the function that applies it to the stable
sort. Metrics are loaded on first use.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from directrank import kernels
from directrank.system.registry import imported_modules, look_up, target_of

if TYPE_CHECKING:
    from torch import Tensor

    from directrank.metrics._average_precision import average_precision
    from directrank.metrics._err import err, nerr
    from directrank.metrics._ndcg import ndcg
    from directrank.metrics._precision import precision
    from directrank.metrics._reciprocal_rank import reciprocal_rank

#: name → module:function
REGISTRY: dict[str, str] = {
    "ndcg": "directrank.metrics._ndcg:ndcg",
    "precision": "directrank.metrics._precision:precision",
    "average_precision": "directrank.metrics._average_precision:average_precision",
    "reciprocal_rank": "directrank.metrics._reciprocal_rank:reciprocal_rank",
    "err": "directrank.metrics._err:err",
    "nerr": "directrank.metrics._err:nerr",
}

#: What a metric is called in the label of a column.
SHORT_NAMES = {"average_precision": "ap", "reciprocal_rank": "rr"}

__all__ = [
    "REGISTRY",
    "average_precision",
    "err",
    "evaluate",
    "formula",
    "get",
    "label",
    "modules_of",
    "ndcg",
    "nerr",
    "precision",
    "reciprocal_rank",
]


def get(name: str) -> Callable[..., Tensor]:
    """The metric ``name``; an unknown one is a ``ConfigError`` that lists the known ones."""
    return look_up(REGISTRY, name, "metric")


def formula(name: str) -> Callable[..., tuple[Tensor, Tensor]]:
    """The metric ``name`` over any ranking, ``(ranking, judgements, k, …) -> (value, defined)``."""
    return getattr(import_module(get(name).__module__), f"{name}_of")


def label(mapping: Mapping[str, Any]) -> str:
    """The column name of a configured metric, e.g. ``ndcg@5/letor`` or ``ap@5/graded_ideal``.

    Options at their default are left out. So is ``empty``: values are stored per query, and a
    convention for empty queries is applied when a mean is taken.

    Raises:
        ConfigError: an unknown metric.
    """
    options = dict(mapping)
    name = options.pop("name")
    target_of(REGISTRY, name, "metric")
    text = SHORT_NAMES.get(name, name)
    if options.get("k") is not None:
        text += f"@{options['k']}"
    named = options.keys() - {"k", "empty"}
    # In the order of the metric's parameters, which are not looked up where none is asked for.
    for key, parameter in inspect.signature(get(name)).parameters.items() if named else ():
        value = options.get(key, parameter.default)
        if key not in named or value == parameter.default:
            continue
        text += f"/{value}" if isinstance(value, str) else f"/{key}={value:g}"
    return text


def evaluate(
    mappings: Iterable[Mapping[str, Any]],
    scores: Tensor,
    labels: Tensor,
    mask: Tensor | None = None,
) -> dict[str, Tensor]:
    """Several metrics of the same lists, sorted once.

    Args:
        mappings: metrics as in a configuration, e.g. ``{"name": "ndcg", "k": 5}``.
        scores: ``[B, L]``.
        labels: ``[B, L]``.
        mask: bool ``[B, L]``, True for a real document; None where all are real.

    Returns:
        Column label (:func:`label`) → float64 ``[B]``; NaN for an empty query, unless the mapping
        names another convention.

    Raises:
        ConfigError: an unknown metric.
    """
    from directrank.metrics.evaluation import Evaluation

    evaluation = Evaluation(scores, labels, mask)
    values = {}
    for mapping in mappings:
        options = dict(mapping)
        values[label(mapping)] = evaluation.value(formula(options.pop("name")), **options)
    return values


def modules_of(name: str) -> list[str]:
    """The modules of directrank that the value of the metric ``name`` depends on, sorted."""
    module, _ = target_of(REGISTRY, name, "metric")
    return kernels.with_kernels(imported_modules(module))


def __getattr__(name: str) -> Any:
    if name in REGISTRY:
        return get(name)
    raise AttributeError(f"module 'directrank.metrics' has no attribute {name!r}")
