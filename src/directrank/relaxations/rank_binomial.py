"""The rank-binomial distribution of SoftRank (Taylor et al., 2008)."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def rank_binomial(scores: Tensor, mask: Tensor, sigma: float, ranks: int | None = None) -> Tensor:
    """Distribution of each document's rank when scores are Gaussian, ``N(s_i, sigma²)``.

    The other documents are added one at a time; document i beats j with probability
    ``Φ((s_i - s_j) / (√2 sigma))``, contests taken as independent.

    Args:
        scores: ``[B, L]``, 0 at masked positions.
        mask: bool ``[B, L]``.
        sigma: standard deviation of a score.
        ranks: only the first so many ranks; None takes all.

    Returns:
        ``[B, j, r]``, the probability of document j at rank r (from 0); 0 for masked documents.
    """
    B, L = scores.shape
    beats = win_probability(scores.unsqueeze(2) - scores.unsqueeze(1), sigma)  # i beats j
    itself = torch.eye(L, dtype=torch.bool, device=scores.device)
    beats = beats.masked_fill(itself | ~mask.unsqueeze(2), 0.0)
    R = L if ranks is None else min(ranks, L)
    first = (torch.arange(R, device=scores.device) == 0).to(scores.dtype)
    distribution = mask.unsqueeze(2) * first
    for i in range(L):
        win = beats[:, i].unsqueeze(2)
        pushed = torch.cat([distribution.new_zeros(B, L, min(R, 1)), distribution[:, :, :-1]], 2)
        distribution = distribution + win * (pushed - distribution)
    return distribution


def win_probability(difference: Tensor, sigma: float) -> Tensor:
    """``Φ(difference / (√2 sigma))``."""
    return 0.5 * torch.erfc(-difference / (2 * sigma))


def win_density(difference: Tensor, sigma: float) -> Tensor:
    """The derivative of :func:`win_probability` by the difference."""
    return torch.exp(-((difference / (2 * sigma)) ** 2)) / (2 * sigma * math.sqrt(math.pi))
