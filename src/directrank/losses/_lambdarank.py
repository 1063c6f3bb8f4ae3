"""LambdaRank (Burges2006): RankNet's forces, each weighted by the NDCG that a swap would change."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import softplus

from directrank.kernels.compiled import array, over_lists, usable
from directrank.lists.inputs import checked, one_of
from directrank.losses._gradient import with_gradient
from directrank.metrics.conventions import Judgements, discount, discount_sums
from directrank.relaxations._pairs import FAR, Packing, pairs_of, walk
from directrank.relaxations.sorting import descending_order, inverse

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
        gain: ``exp2`` (2^y - 1), ``linear`` (y) or ``burges2006`` (0, 3, 7, 15, 31).

    Returns:
        The loss per query, ``[B]``; 0 where there is no pair.
    """
    one_of(cutoff, CUTOFFS, "cut-off rule")
    scores, labels, mask = checked(scores, labels, mask)
    forces = _compiled_forces if usable(scores) else _forces
    value, gradient = forces(scores.detach(), labels, mask, k, cutoff, sigma, gain)
    return with_gradient(scores, value, gradient)


@torch.no_grad()
def _forces(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor,
    k: int | None,
    cutoff: str,
    sigma: float,
    gain: str,
) -> tuple[Tensor, Tensor]:
    """The loss ``[B]`` and its gradient ``[B, L]``."""
    judgements = Judgements(labels, mask)
    gains = judgements.gains(gain)
    weight = partial(discount, "log2")
    both = k is not None and cutoff == "both"
    best = judgements.ideal.weigh(gains, weight, k if both else None)
    ranks = inverse(descending_order(scores, mask)) + 1
    packing = Packing.by_label(labels, mask & (ranks <= k) if both else mask)
    s = packing.pack(sigma * scores).masked_fill_(~packing.real, -FAR)
    # Padding gets the gain of no pair's winner; as a loser it is infinitely far behind.
    g = packing.pack(gains).masked_fill_(~packing.real, -FAR)
    d = packing.pack(weight(ranks.to(s.dtype)))
    low = packing.pack(ranks > k) if k is not None and not both else None
    value = s.new_zeros(len(s))
    gradient = torch.zeros_like(s)
    for chunk, rows, (block, change, swap) in walk(packing, s, 3):
        lists, columns = chunk.lists, slice(chunk.columns)
        torch.sub(g[lists, rows, None], g[lists, None, columns], out=change).clamp_min_(0)
        torch.sub(d[lists, rows, None], d[lists, None, columns], out=swap).abs_()
        change.mul_(swap)
        if low is not None:
            change.masked_fill_(low[lists, rows, None] & low[lists, None, columns], 0.0)
        torch.sub(s[lists, None, columns], s[lists, rows, None], out=block)
        softplus(block, threshold=40, out=swap)
        value[lists] += swap.mul_(change).sum((1, 2))
        change.mul_(block.sigmoid_())
        gradient[lists, columns] += change.sum(1)
        gradient[lists, rows] -= change.sum(2)
    best = best.masked_fill(best <= 0, float("inf"))  # without an ideal there is no force
    return (
        packing.unpack_lists(value) / best,
        packing.unpack(gradient) * (sigma / best).unsqueeze(1),
    )


def _compiled_forces(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor,
    k: int | None,
    cutoff: str,
    sigma: float,
    gain: str,
) -> tuple[Tensor, Tensor]:
    """:func:`_forces` on a CPU."""
    from directrank.kernels import pairs as _pair_kernels

    B, L = scores.shape
    both = cutoff == "both"
    gains = Judgements(labels, mask).gains(gain)
    value = scores.new_empty(B)
    gradient = torch.empty_like(scores, memory_format=torch.contiguous_format)
    over_lists(
        _pair_kernels.lambdarank,
        pairs_of(scores),
        B,
        *(array(tensor) for tensor in (scores, labels, gains, mask)),
        float(sigma),
        math.inf if k is None else float(k),
        both,
        np.diff(discount_sums("log2", L, None)),
        discount_sums("log2", L, k if both else None),
        value.numpy(),
        gradient.numpy(),
    )
    return value, gradient
