"""The rank-binomial distribution of SoftRank (Taylor et al., 2008)."""

from __future__ import annotations

import torch
from torch import Tensor

from directrank.lists.pairs import differences, itself
from directrank.relaxations.distribution import RankDistribution
from directrank.relaxations.protocol import checks_options

#: The standard deviation of a score.
SIGMA = 1.0


@checks_options
def rank_binomial(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor,
    generator: torch.Generator | None = None,
    *,
    sigma: float = SIGMA,
) -> RankDistribution:
    """The distribution of each document's rank when scores are Gaussian.

    Args:
        scores: ``[B, L]``, the means; 0 at masked positions.
        labels: not used; every relaxation is given them.
        mask: bool ``[B, L]``.
        generator: not used.
        sigma: standard deviation of a score.
    """
    return RankDistribution(lambda k: rank_probabilities(scores, mask, sigma, k))


def rank_probabilities(
    scores: Tensor, mask: Tensor, sigma: float, ranks: int | None = None
) -> Tensor:
    """Distribution of each document's rank when scores are Gaussian, ``N(s_i, sigma²)``.

    The other documents are added one at a time; document i beats j with probability ``Φ((s_i - s_j)
    / (√2 sigma))``, and contests are treated as independent.

    Args:
        scores: ``[B, L]``, 0 at masked positions.
        mask: bool ``[B, L]``.
        sigma: standard deviation of a score.
        ranks: return only this many ranks; None returns all.

    Returns:
        ``[B, j, r]``, the probability of document j at rank r (from 0); 0 for masked documents.
    """
    B, L = scores.shape
    beats = 0.5 * torch.erfc(-differences(scores) / (2 * sigma))  # i beats j
    beats = beats.masked_fill(itself(L, scores.device) | ~mask.unsqueeze(2), 0.0)
    if L == 0:
        return beats  # no probabilities, but with a graph
    R = L if ranks is None else min(ranks, L)
    first = (torch.arange(R, device=scores.device) == 0).to(scores.dtype)
    distribution = mask.unsqueeze(2) * first
    for i in range(L):
        win = beats[:, i].unsqueeze(2)
        pushed = torch.cat([distribution.new_zeros(B, L, min(R, 1)), distribution[:, :, :-1]], 2)
        distribution = distribution + win * (pushed - distribution)
    return distribution
