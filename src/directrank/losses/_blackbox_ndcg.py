"""NDCG at exact ranks, differentiated as a black box (Rolínek et al., 2020)."""

from __future__ import annotations

from functools import partial

from torch import Tensor

from directrank.lists.calls import ranking_loss
from directrank.lists.conventions import GAIN
from directrank.losses._compose import compose
from directrank.losses._needs import needs
from directrank.metrics._ndcg import ndcg_of
from directrank.relaxations.blackbox import LAM, MARGIN, blackbox


@ranking_loss
@needs(per_list=("lam",), flat=True)
def blackbox_ndcg(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor | None = None,
    *,
    k: int | None = None,
    lam: float | Tensor = LAM,
    margin: float = MARGIN,
    gain: str = GAIN,
) -> Tensor:
    """Minus NDCG at exact ranks r, per query.

    Ranks have no slope, so that of an interpolation is used: the gradient is ``(r(s + lam g) -
    r(s)) / lam``, where g is the gradient with respect to the ranks.

    Args:
        scores: ``[B, L]``.
        labels: ``[B, L]``.
        mask: bool ``[B, L]``, True for a real document; None if all are real.
        k: cut-off; None takes the whole list. No document beyond it is pulled up.
        lam: the distance of interpolation, by which scores move ``lam g``; a tensor ``[B, 1]`` sets
            it per query.
        margin: the lead that a relevant document needs to be ranked before another; it affects the
            value, too.
        gain: ``exp2`` (2^y - 1) or ``linear`` (y).

    Returns:
        The loss per query, ``[B]``; 0 for a query without gain.

    >>> import torch
    >>> from directrank import losses
    >>> scores = torch.tensor([[0.5, 0.1, 0.2], [1.0, 2.0, 3.0]])
    >>> labels = torch.tensor([[2.0, 0.0, 1.0], [0.0, 0.0, 1.0]])
    >>> losses.blackbox_ndcg(scores, labels)
    tensor([-1., -1.])
    """
    metric = partial(ndcg_of, k=k, gain=gain)
    return compose(metric, partial(blackbox, lam=lam, margin=margin))(scores, labels, mask)
