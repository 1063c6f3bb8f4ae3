"""Ranking losses per query: ``name(scores, labels, mask, …) -> Tensor [B]``, to be minimised.

Each loss is a file of its own and is loaded on first use, so that a change of one is no change of
the others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from torch import Tensor

from directrank.registry import look_up

if TYPE_CHECKING:
    from directrank.losses._approx_ndcg import approx_ndcg
    from directrank.losses._lambdarank import lambdarank
    from directrank.losses._listmle import listmle
    from directrank.losses._listnet import listnet
    from directrank.losses._ranknet import ranknet
    from directrank.losses._rmse import rmse

#: name → module:function
REGISTRY: dict[str, str] = {
    "rmse": "directrank.losses._rmse:rmse",
    "ranknet": "directrank.losses._ranknet:ranknet",
    "lambdarank": "directrank.losses._lambdarank:lambdarank",
    "listnet": "directrank.losses._listnet:listnet",
    "listmle": "directrank.losses._listmle:listmle",
    "approx_ndcg": "directrank.losses._approx_ndcg:approx_ndcg",
}

__all__ = [
    "REGISTRY",
    "approx_ndcg",
    "get",
    "lambdarank",
    "listmle",
    "listnet",
    "ranknet",
    "rmse",
]


def get(name: str) -> Callable[..., Tensor]:
    """The loss ``name``; an unknown one is a ``ConfigError`` that lists the known ones."""
    return look_up(REGISTRY, name, "loss")


def __getattr__(name: str) -> Any:
    if name in REGISTRY:
        return get(name)
    raise AttributeError(f"module 'directrank.losses' has no attribute {name!r}")
