"""Smooth rank indicators: SmoothI (Thonet et al., 2022)."""

from __future__ import annotations

import torch
from torch import Tensor

from directrank.relaxations.protocol import checks_options
from directrank.relaxations.soft_sorting import SoftSorting

#: The steepness of the softmax, how far below 0 a used document's factor lies, and whether the
#: product of the factors is constant in the gradient.
ALPHA, DELTA, STOP_GRADIENT = 1.0, 0.1, True


@checks_options
def smooth_i(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor,
    generator: torch.Generator | None = None,
    *,
    alpha: float | Tensor = ALPHA,
    delta: float = DELTA,
    stop_gradient: bool = STOP_GRADIENT,
) -> SoftSorting:
    """The document at each rank by a softmax, from which those at earlier ranks are removed.

    Precision is the authors'. The NDCG of their released code has the gain ``2^y`` of a rank's mean
    label y, without the -1, so that a document of label 0 gains 1. Ours has the rank's mean gain
    ``2^y - 1``, as with every relaxation; not even at exact ranks do the two agree.

    Args:
        scores: ``[B, L]``, 0 at masked positions.
        labels: not used; every relaxation is given them.
        mask: bool ``[B, L]``.
        generator: not used.
        alpha: steepness of the softmax; a tensor ``[B, 1]`` sets it per list.
        delta: see :func:`rank_indicators`.
        stop_gradient: see :func:`rank_indicators`.
    """
    return SoftSorting(lambda k: rank_indicators(scores, mask, alpha, delta, stop_gradient, k))


def rank_indicators(
    scores: Tensor,
    mask: Tensor,
    alpha: float | Tensor,
    delta: float,
    stop_gradient: bool,
    ranks: int | None = None,
) -> Tensor:
    """``I^r_j = softmax_j(alpha S_j Π_{l<r} (1 - I^l_j - delta))`` with ``S = s - min(s)``.

    Args:
        scores: ``[B, L]``, 0 at masked positions.
        mask: bool ``[B, L]``.
        alpha: steepness.
        delta: how far below 0 the factor of a document that has been used lies, so that it falls
            behind all others.
        stop_gradient: treat the product as constant in the gradient, as the paper does, because
            long products lose the signal.
        ranks: return only this many ranks; None returns all.

    Returns:
        ``[B, r, j]``, of document j at rank r (from 0); the sum over documents is 1. It is 0 at
        masked documents and at ranks beyond the list.
    """
    lengths = mask.sum(1, keepdim=True)
    heights = _above_least(scores, mask)
    left = torch.ones_like(heights)
    indicators = []
    for rank in range(scores.shape[1] if ranks is None else min(ranks, scores.shape[1])):
        logits = alpha * heights * left
        shares = logits.masked_fill(~mask, torch.finfo(scores.dtype).min).softmax(1)
        shares = shares.masked_fill(~mask | (rank >= lengths), 0.0)
        indicators.append(shares)
        left = left * (1 - (shares.detach() if stop_gradient else shares) - delta)
    return torch.stack(indicators, 1) if indicators else scores.unsqueeze(1)[:, :0]


def _above_least(scores: Tensor, mask: Tensor) -> Tensor:
    """Scores minus the least of their list, ``[B, L]``; 0 at masked positions."""
    if scores.shape[1] == 0:
        return scores
    least = scores.masked_fill(~mask, torch.inf).amin(1, keepdim=True)
    return (scores - least).masked_fill(~mask, 0.0)
