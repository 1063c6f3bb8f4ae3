"""NDCG under SmoothI's rank indicators (Thonet et al., 2022)."""

from __future__ import annotations

from functools import partial

from torch import Tensor

from directrank.lists.calls import ranking_loss
from directrank.lists.conventions import GAIN
from directrank.losses._compose import compose
from directrank.losses._needs import needs
from directrank.metrics._ndcg import ndcg_of
from directrank.relaxations.smooth_i import ALPHA, DELTA, STOP_GRADIENT, smooth_i


@ranking_loss
@needs(per_list=("alpha",))
def smooth_ndcg(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor | None = None,
    *,
    k: int | None = None,
    alpha: float | Tensor = ALPHA,
    delta: float = DELTA,
    stop_gradient: bool = STOP_GRADIENT,
    gain: str = GAIN,
) -> Tensor:
    """``-(1/maxDCG@k) Σ_{r≤k} D(r) Σ_j I^r_j G(y_j)``, I SmoothI's indicators, per query.

    ``I^r_j = softmax_j(alpha S_j Π_{l<r} (1 - I^l_j - delta))`` with ``S = s - min(s)``: a softmax
    that skips the documents of earlier ranks. The total of a document over ranks may differ from
    one, so the loss may fall below -1. See :func:`directrank.relaxations.smooth_i.smooth_i` for
    what differs from the authors' NDCG.

    Args:
        scores: ``[B, L]``.
        labels: ``[B, L]``.
        mask: bool ``[B, L]``, True for a real document; None if all are real.
        k: cut-off, which makes it cheaper; None takes the whole list.
        alpha: steepness of the softmax; a tensor ``[B, 1]`` sets it per query.
        delta: how far below 0 the factor of a document that has been used lies.
        stop_gradient: treat the product as constant in the gradient, as the paper does.
        gain: ``exp2`` (2^y - 1) or ``linear`` (y).

    Returns:
        The loss per query, ``[B]``; 0 for a query without gain.

    >>> import torch
    >>> from directrank import losses
    >>> scores = torch.tensor([[0.5, 0.1, 0.2], [1.0, 2.0, 3.0]])
    >>> labels = torch.tensor([[2.0, 0.0, 1.0], [0.0, 0.0, 1.0]])
    >>> losses.smooth_ndcg(scores, labels)
    tensor([-0.8678, -1.0649])
    """
    metric = partial(ndcg_of, k=k, gain=gain)
    indicators = partial(smooth_i, alpha=alpha, delta=delta, stop_gradient=stop_gradient)
    return compose(metric, indicators)(scores, labels, mask)
