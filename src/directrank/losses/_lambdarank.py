"""LambdaRank (Burges2006): RankNet's forces, each weighted by the NDCG that a swap would change."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import softplus

from directrank.metrics._conventions import Judgements, discount, ratio
from directrank.relaxations._inputs import checked, one_of
from directrank.relaxations._sorting import descending_order, inverse

CUTOFFS = ("both", "either")


def lambdarank(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor | None = None,
    *,
    k: int | None = None,
    cutoff: str = "both",
    sigma: float = 1.0,
    gain: str = "exp2",
) -> Tensor:
    """``Σ |ΔNDCG_ij| log(1 + exp(-sigma (s_i - s_j)))`` over pairs with ``y_i > y_j``, per query.

    The weights, from the current ranks, are constants of the gradient, which is therefore
    LambdaRank's: ``-dC/ds_i = Σ_j sigma |ΔNDCG_ij| / (1 + exp(sigma (s_i - s_j)))``.

    Args:
        scores: ``[B, L]``.
        labels: ``[B, L]``.
        mask: bool ``[B, L]``, True for a real document; None where all are real.
        k: truncation; None is Burges2006, all pairs with different labels.
        cutoff: ``both`` documents of a pair among the first k, and NDCG normalised at k
            (Pobrotyn2021's LambdaRank@k); or ``either``, and NDCG normalised over the whole list
            (LightGBM's ``lambdarank_truncation_level``).
        sigma: steepness.
        gain: ``exp2`` (2^y - 1) or ``linear`` (y).

    Returns:
        The loss per query, ``[B]``; 0 where there is no pair.
    """
    one_of(cutoff, CUTOFFS, "cut-off rule")
    scores, labels, mask = checked(scores, labels, mask)
    judgements = Judgements(labels, mask)
    gains = judgements.gains(gain)
    ranks = inverse(descending_order(scores.detach(), mask)) + 1
    discounts = discount("log2", ranks.to(scores.dtype))
    best = judgements.ideal.weigh(
        gains, lambda r: discount("log2", r), k if cutoff == "both" else None
    )
    pairs = labels.unsqueeze(2) > labels.unsqueeze(1)
    pairs = pairs & mask.unsqueeze(2) & mask.unsqueeze(1)
    if k is not None:
        top = ranks <= k
        pairs = pairs & (
            top.unsqueeze(2) & top.unsqueeze(1)
            if cutoff == "both"
            else top.unsqueeze(2) | top.unsqueeze(1)
        )
    change = (gains.unsqueeze(2) - gains.unsqueeze(1)) * (
        discounts.unsqueeze(2) - discounts.unsqueeze(1)
    )
    logs = softplus(-sigma * (scores.unsqueeze(2) - scores.unsqueeze(1)))
    return ratio((change.abs() * logs).masked_fill(~pairs, 0.0).sum((1, 2)), best)
