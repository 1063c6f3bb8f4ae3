"""Ranking losses per query: ``name(scores, labels, mask, …) -> Tensor [B]``, to be minimised.

A loss is a formula, or a metric under a relaxation (:func:`compose`). It is listed below, by the
import for type checkers, and loaded on first use, so that changing one does not affect the others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from directrank.losses._needs import Needs
from directrank.system.registry import listed, look_up

if TYPE_CHECKING:
    from torch import Tensor

    from directrank.losses._adr_mse import adr_mse as adr_mse
    from directrank.losses._compose import compose as compose
    from directrank.losses._compose import composed as composed
    from directrank.losses._compositions import approx_ap as approx_ap
    from directrank.losses._compositions import approx_ndcg as approx_ndcg
    from directrank.losses._compositions import approx_precision as approx_precision
    from directrank.losses._compositions import blackbox_ndcg as blackbox_ndcg
    from directrank.losses._compositions import diff_sort_ndcg as diff_sort_ndcg
    from directrank.losses._compositions import fast_soft_ndcg as fast_soft_ndcg
    from directrank.losses._compositions import gumbel_approx_ndcg as gumbel_approx_ndcg
    from directrank.losses._compositions import lapsum_ndcg as lapsum_ndcg
    from directrank.losses._compositions import neural_ndcg as neural_ndcg
    from directrank.losses._compositions import neural_ndcg_transposed as neural_ndcg_transposed
    from directrank.losses._compositions import pirank as pirank
    from directrank.losses._compositions import sinkhorn_ndcg as sinkhorn_ndcg
    from directrank.losses._compositions import smooth_ndcg as smooth_ndcg
    from directrank.losses._compositions import soft_sort_ndcg as soft_sort_ndcg
    from directrank.losses._compositions import softrank as softrank
    from directrank.losses._compositions import twin_ap as twin_ap
    from directrank.losses._compositions import twin_ndcg as twin_ndcg
    from directrank.losses._compositions import twin_nerr as twin_nerr
    from directrank.losses._compositions import twin_precision as twin_precision
    from directrank.losses._k_song import k_song as k_song
    from directrank.losses._lambda_family import lambda_family as lambda_family
    from directrank.losses._lambda_loss import lambda_loss as lambda_loss
    from directrank.losses._lambdarank import lambdarank as lambdarank
    from directrank.losses._listmle import listmle as listmle
    from directrank.losses._listnet import listnet as listnet
    from directrank.losses._logistic import ordinal as ordinal
    from directrank.losses._logistic import sigmoid_cross_entropy as sigmoid_cross_entropy
    from directrank.losses._newton import newton as newton
    from directrank.losses._pairwise_hinge import pairwise_hinge as pairwise_hinge
    from directrank.losses._pl_rank import pl_rank as pl_rank
    from directrank.losses._psl import psl as psl
    from directrank.losses._ranknet import ranknet as ranknet
    from directrank.losses._rmse import rmse as rmse
    from directrank.losses._sl_at_k import sl_at_k as sl_at_k
    from directrank.losses._softmax_cross_entropy import poly1 as poly1
    from directrank.losses._softmax_cross_entropy import (
        softmax_cross_entropy as softmax_cross_entropy,
    )
    from directrank.losses._stochastic_rank import stochastic_rank as stochastic_rank
    from directrank.losses._unique_softmax import unique_softmax as unique_softmax
    from directrank.losses._wassrank import wassrank as wassrank
    from directrank.losses._xe_ndcg import xe_ndcg as xe_ndcg
    from directrank.losses._yeti_loss import yeti_loss as yeti_loss

_LISTED = listed(__name__)

#: The module that declares the losses that are a metric under a relaxation.
COMPOSITIONS = f"{__name__}._compositions"

#: name → module:function
REGISTRY: dict[str, str] = {name: _LISTED[name] for name in sorted({*_LISTED} - {"compose"})}

__all__ = [*_LISTED, "REGISTRY", "get", "needs_of"]


def get(name: str) -> Callable[..., Tensor]:
    """The loss ``name``; raises ``ConfigError`` with the known ones if it is unknown."""
    return look_up(REGISTRY, name, "loss")


def needs_of(name: str) -> Needs:
    """The needs that the loss ``name`` declares to learners."""
    return getattr(get(name), "needs", Needs())


def __getattr__(name: str) -> Any:
    if name in _LISTED:
        return look_up(_LISTED, name, "loss")
    raise AttributeError(f"module '{__name__}' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
