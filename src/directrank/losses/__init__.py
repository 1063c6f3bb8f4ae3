"""Ranking losses per query: ``name(scores, labels, mask, …) -> Tensor [B]``, to be minimised.

Each loss is a file of its own and is loaded on first use, so that a change of one is no change of
the others.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from directrank.system.registry import imported_modules, look_up, target_of

if TYPE_CHECKING:
    from torch import Tensor

    from directrank.losses._approx_ap import approx_ap
    from directrank.losses._approx_ndcg import approx_ndcg
    from directrank.losses._approx_precision import approx_precision
    from directrank.losses._composed import compose, composed
    from directrank.losses._lambda_family import lambda_family
    from directrank.losses._lambdarank import lambdarank
    from directrank.losses._listmle import listmle
    from directrank.losses._listnet import listnet
    from directrank.losses._neural_ndcg import neural_ndcg, neural_ndcg_transposed
    from directrank.losses._ranknet import ranknet
    from directrank.losses._rmse import rmse
    from directrank.losses._softrank import softrank
    from directrank.losses._twin import twin_ap, twin_ndcg, twin_nerr, twin_precision
    from directrank.losses._wassrank import wassrank

#: name → module:function
REGISTRY: dict[str, str] = {
    "rmse": "directrank.losses._rmse:rmse",
    "ranknet": "directrank.losses._ranknet:ranknet",
    "lambda_family": "directrank.losses._lambda_family:lambda_family",
    "lambdarank": "directrank.losses._lambdarank:lambdarank",
    "listnet": "directrank.losses._listnet:listnet",
    "listmle": "directrank.losses._listmle:listmle",
    "wassrank": "directrank.losses._wassrank:wassrank",
    "softrank": "directrank.losses._softrank:softrank",
    "approx_ndcg": "directrank.losses._approx_ndcg:approx_ndcg",
    "approx_ap": "directrank.losses._approx_ap:approx_ap",
    "approx_precision": "directrank.losses._approx_precision:approx_precision",
    "neural_ndcg": "directrank.losses._neural_ndcg:neural_ndcg",
    "neural_ndcg_transposed": "directrank.losses._neural_ndcg:neural_ndcg_transposed",
    "twin_precision": "directrank.losses._twin:twin_precision",
    "twin_ap": "directrank.losses._twin:twin_ap",
    "twin_ndcg": "directrank.losses._twin:twin_ndcg",
    "twin_nerr": "directrank.losses._twin:twin_nerr",
    "composed": "directrank.losses._composed:composed",
}

__all__ = [
    "REGISTRY",
    "approx_ap",
    "approx_ndcg",
    "approx_precision",
    "compose",
    "composed",
    "get",
    "lambda_family",
    "lambdarank",
    "listmle",
    "listnet",
    "modules_of",
    "neural_ndcg",
    "neural_ndcg_transposed",
    "ranknet",
    "rmse",
    "softrank",
    "twin_ap",
    "twin_ndcg",
    "twin_nerr",
    "twin_precision",
    "wassrank",
]


def get(name: str) -> Callable[..., Tensor]:
    """The loss ``name``; an unknown one is a ``ConfigError`` that lists the known ones."""
    return look_up(REGISTRY, name, "loss")


def modules_of(name: str) -> list[str]:
    """The modules of directrank that the value of the loss ``name`` depends on, sorted."""
    module, _ = target_of(REGISTRY, name, "loss")
    return list(imported_modules(module))


def __getattr__(name: str) -> Any:
    if name == "compose":
        return import_module("directrank.losses._composed").compose
    if name in REGISTRY:
        return get(name)
    raise AttributeError(f"module 'directrank.losses' has no attribute {name!r}")
