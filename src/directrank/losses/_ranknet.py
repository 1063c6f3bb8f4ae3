"""RankNet's pairwise logistic loss (Burges et al., 2005; Burges2006 eq. 8)."""

from __future__ import annotations

import torch
from torch import Tensor

from directrank.kernels.compiled import array, over_lists, usable
from directrank.lists.inputs import checked, one_of
from directrank.losses._gradient import with_gradient
from directrank.relaxations._pairs import FAR, Packing, pairs_of, walk
from directrank.relaxations.sorting import descending_order, inverse

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
    sums = _compiled_sums if usable(scores) else _pair_sums
    value, gradient, pairs = sums(scores.detach(), labels, mask, sigma)
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
    # A pair's bound is +FAR/2 or more if it counts and -FAR/2 or less if not; padding wins nothing.
    level = FAR * _levels(y)
    wins = (level - FAR / 2).masked_fill(~packing.real, -float("inf"))
    value = s.new_zeros(len(s))
    gradient = torch.zeros_like(s)
    one = s.new_ones(())
    for chunk, rows, (x, bound) in walk(packing, s, 2):
        lists, columns = chunk.lists, slice(chunk.columns)
        torch.sub(s[lists, None, columns], s[lists, rows, None], out=x)
        torch.sub(wins[lists, rows, None], level[lists, None, columns], out=bound)
        torch.minimum(x, bound, out=x)
        value[lists] += torch.clamp_min(x, 0, out=bound).sum((1, 2))
        x.sigmoid_()
        gradient[lists, columns] += x.sum(1)
        gradient[lists, rows] -= x.sum(2)
        # log(1 + exp(-|x|)) is minus the log of what lies in [1/2, 1]: a hundred share one log.
        torch.sub(one, x, out=bound)
        torch.maximum(x, bound, out=bound)
        for part in bound.split(100, dim=1):
            value[lists] -= part.prod(1).log_().sum(1)
    not_below = torch.searchsorted(-y, -y, right=True)
    pairs = (packing.real.sum(1, keepdim=True) - not_below).clamp_min(0).sum(1)
    return (
        packing.unpack_lists(value),
        packing.unpack(gradient * sigma),
        packing.unpack_lists(pairs.to(s.dtype)),
    )


def _compiled_sums(
    scores: Tensor, labels: Tensor, mask: Tensor, sigma: float
) -> tuple[Tensor, Tensor, Tensor]:
    """:func:`_pair_sums` on a CPU."""
    from directrank.kernels import pairs as _pair_kernels

    value, pairs = scores.new_empty(2, len(scores))
    gradient = torch.empty_like(scores, memory_format=torch.contiguous_format)
    arrays = [array(tensor) for tensor in (scores, labels, mask)]
    found = [tensor.numpy() for tensor in (value, gradient, pairs)]
    over_lists(_pair_kernels.ranknet, pairs_of(scores), len(scores), *arrays, float(sigma), *found)
    return value, gradient, pairs


def _levels(descending: Tensor) -> Tensor:
    """Falling values as small integers that fall with them, equal where they are; ``[B, L]``."""
    steps = torch.zeros_like(descending)
    steps[:, 1:] = (descending[:, 1:] != descending[:, :-1]).to(steps.dtype)
    return -steps.cumsum(1)
