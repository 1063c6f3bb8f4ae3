"""RankNet's pairwise logistic loss (Burges et al., 2005; Burges2006 eq. 8)."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import softplus

from directrank.losses._gradient import with_gradient
from directrank.relaxations._inputs import checked, one_of
from directrank.relaxations._pairs import FAR, Blocks, Packing, walk
from directrank.relaxations._sorting import descending_order, inverse

REDUCTIONS = ("sum", "mean")


def ranknet(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor | None = None,
    *,
    k: int | None = None,
    sigma: float = 1.0,
    reduction: str = "sum",
) -> Tensor:
    """``Σ log(1 + exp(-sigma (s_i - s_j)))`` over the pairs with ``y_i > y_j``, per query.

    Args:
        scores: ``[B, L]``.
        labels: ``[B, L]``.
        mask: bool ``[B, L]``, True for a real document; None where all are real.
        k: only pairs whose documents both are among the first k by current score (Pobrotyn2021's
            RankNet@k); None takes all pairs.
        sigma: steepness.
        reduction: ``sum`` over the pairs (Burges2006) or their ``mean`` (TF-Ranking, allRank).

    Returns:
        The loss per query, ``[B]``; 0 where there is no pair.
    """
    one_of(reduction, REDUCTIONS, "reduction")
    scores, labels, mask = checked(scores, labels, mask)
    if k is not None:
        mask = mask & (inverse(descending_order(scores.detach(), mask)) < k)
    value, gradient, pairs = _pair_sums(scores.detach(), labels, mask, sigma)
    if reduction == "mean":
        pairs = pairs.clamp_min(1)
        value, gradient = value / pairs, gradient / pairs.unsqueeze(1)
    return with_gradient(scores, value, gradient)


@torch.no_grad()
def _pair_sums(
    scores: Tensor, labels: Tensor, mask: Tensor, sigma: float
) -> tuple[Tensor, Tensor, Tensor]:
    """The loss ``[B]``, its gradient ``[B, L]`` and the number of pairs ``[B]``."""
    packing = Packing.by_label(labels, mask)
    s = packing.pack(sigma * scores).masked_fill_(~packing.real, -FAR)
    y = packing.pack(labels).masked_fill_(~packing.real, float("-inf"))
    value = s.new_zeros(len(s))
    gradient = torch.zeros_like(s)
    for chunk, rows, (block,) in walk(packing, Blocks(packing, 1, s)):
        lists, columns = chunk.lists, slice(chunk.columns)
        torch.sub(s[lists, None, columns], s[lists, rows, None], out=block)
        block.masked_fill_(y[lists, None, columns] >= y[lists, rows, None], -FAR)
        value[lists] += softplus(block, threshold=40).sum((1, 2))
        block.sigmoid_()
        gradient[lists, columns] += block.sum(1)
        gradient[lists, rows] -= block.sum(2)
    not_below = torch.searchsorted(-y, -y, right=True)
    pairs = (packing.real.sum(1, keepdim=True) - not_below).clamp_min(0).sum(1)
    return (
        packing.unpack_lists(value),
        packing.unpack(gradient * sigma),
        packing.unpack_lists(pairs.to(s.dtype)),
    )
