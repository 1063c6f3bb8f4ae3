"""Ranking losses per query: ``name(scores, labels, mask, …) -> Tensor [B]``, to be minimised.

Each loss has its own file and is loaded on first use, so that changing one does not affect the
others. It is a formula, or a metric under a relaxation (:func:`compose`).
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from directrank.losses._needs import Needs
from directrank.system.registry import look_up

if TYPE_CHECKING:
    from torch import Tensor

    from directrank.losses._approx_ap import approx_ap
    from directrank.losses._approx_ndcg import approx_ndcg
    from directrank.losses._approx_precision import approx_precision
    from directrank.losses._blackbox_ndcg import blackbox_ndcg
    from directrank.losses._compose import compose
    from directrank.losses._composed import composed
    from directrank.losses._fast_soft_ndcg import fast_soft_ndcg
    from directrank.losses._gumbel_approx_ndcg import gumbel_approx_ndcg
    from directrank.losses._k_song import k_song
    from directrank.losses._lambda_family import lambda_family
    from directrank.losses._lambda_loss import lambda_loss
    from directrank.losses._lambdarank import lambdarank
    from directrank.losses._lapsum_ndcg import lapsum_ndcg
    from directrank.losses._listmle import listmle
    from directrank.losses._listnet import listnet
    from directrank.losses._neural_ndcg import neural_ndcg, neural_ndcg_transposed
    from directrank.losses._pirank import pirank
    from directrank.losses._pl_rank import pl_rank
    from directrank.losses._ranknet import ranknet
    from directrank.losses._rmse import rmse
    from directrank.losses._smooth_ndcg import smooth_ndcg
    from directrank.losses._softrank import softrank
    from directrank.losses._stochastic_rank import stochastic_rank
    from directrank.losses._twin import twin_ap, twin_ndcg, twin_nerr, twin_precision
    from directrank.losses._wassrank import wassrank
    from directrank.losses._xe_ndcg import xe_ndcg
    from directrank.losses._yeti_loss import yeti_loss

#: name → module:function
REGISTRY: dict[str, str] = {
    "rmse": "directrank.losses._rmse:rmse",
    "ranknet": "directrank.losses._ranknet:ranknet",
    "lambda_family": "directrank.losses._lambda_family:lambda_family",
    "lambda_loss": "directrank.losses._lambda_loss:lambda_loss",
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
    "smooth_ndcg": "directrank.losses._smooth_ndcg:smooth_ndcg",
    "fast_soft_ndcg": "directrank.losses._fast_soft_ndcg:fast_soft_ndcg",
    "lapsum_ndcg": "directrank.losses._lapsum_ndcg:lapsum_ndcg",
    "blackbox_ndcg": "directrank.losses._blackbox_ndcg:blackbox_ndcg",
    "pirank": "directrank.losses._pirank:pirank",
    "gumbel_approx_ndcg": "directrank.losses._gumbel_approx_ndcg:gumbel_approx_ndcg",
    "xe_ndcg": "directrank.losses._xe_ndcg:xe_ndcg",
    "pl_rank": "directrank.losses._pl_rank:pl_rank",
    "k_song": "directrank.losses._k_song:k_song",
    "yeti_loss": "directrank.losses._yeti_loss:yeti_loss",
    "stochastic_rank": "directrank.losses._stochastic_rank:stochastic_rank",
    "composed": "directrank.losses._composed:composed",
}

__all__ = [
    "REGISTRY",
    "approx_ap",
    "approx_ndcg",
    "approx_precision",
    "blackbox_ndcg",
    "compose",
    "composed",
    "fast_soft_ndcg",
    "get",
    "gumbel_approx_ndcg",
    "k_song",
    "lambda_family",
    "lambda_loss",
    "lambdarank",
    "lapsum_ndcg",
    "listmle",
    "listnet",
    "needs_of",
    "neural_ndcg",
    "neural_ndcg_transposed",
    "pirank",
    "pl_rank",
    "ranknet",
    "rmse",
    "smooth_ndcg",
    "softrank",
    "stochastic_rank",
    "twin_ap",
    "twin_ndcg",
    "twin_nerr",
    "twin_precision",
    "wassrank",
    "xe_ndcg",
    "yeti_loss",
]


def get(name: str) -> Callable[..., Tensor]:
    """The loss ``name``; raises ``ConfigError`` with the known ones if it is unknown."""
    return look_up(REGISTRY, name, "loss")


def needs_of(name: str) -> Needs:
    """The needs that the loss ``name`` declares to learners."""
    return getattr(get(name), "needs", Needs())


def __getattr__(name: str) -> Any:
    if name == "compose":
        return import_module("directrank.losses._compose").compose
    if name in REGISTRY:
        return get(name)
    raise AttributeError(f"module 'directrank.losses' has no attribute {name!r}")
