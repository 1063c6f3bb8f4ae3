"""SoftRank (Taylor et al., 2008): expected NDCG under Gaussian scores."""

from __future__ import annotations

from functools import lru_cache, partial

import numpy as np
import torch
from torch import Tensor

from directrank.kernels.compiled import array, over_lists, usable
from directrank.lists.conventions import discount
from directrank.lists.inputs import checked
from directrank.losses._gradient import with_gradient
from directrank.metrics._ndcg import ndcg_of
from directrank.metrics.conventions import Judgements
from directrank.relaxations._pairs import FAR, Packing, pairs_of, walk
from directrank.relaxations.distribution import RankDistribution
from directrank.relaxations.rank_binomial import rank_binomial, win_density, win_probability


def softrank(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor | None = None,
    *,
    sigma: float = 1.0,
    k: int | None = None,
) -> Tensor:
    """Minus ``(1/maxDCG) Σ_j G(y_j) Σ_r p_j(r) D(r)``, p the rank-binomial distribution, per query.

    Without a cut-off the cubic recursion is not needed. The rank of document j, less one, is a sum
    of independent contests, so that ``E[z^r] = Π_i (1 - p_ij (1 - z))`` for any z; and the discount
    is a sum of few powers, ``D(r) = Σ_m w_m z_m^r``, to 1e-8 in float32 and 1e-12 in float64.

    Args:
        scores: ``[B, L]``, the means of the Gaussians.
        labels: ``[B, L]``.
        mask: bool ``[B, L]``, True for a real document; None where all are real.
        sigma: their standard deviation.
        k: cut-off (through the recursion, over k ranks); None takes the whole list.

    Returns:
        The loss per query, ``[B]``; 0 for a query without gain.
    """
    scores, labels, mask = checked(scores, labels, mask)
    judgements = Judgements(labels, mask)
    if k is not None:
        ranking = RankDistribution(rank_binomial(scores, mask, sigma, k))
        return -ndcg_of(ranking, judgements, k)[0]
    gains = judgements.gains("exp2")
    best = judgements.ideal.weigh(gains, partial(discount, "log2"), None)
    weights = gains / best.masked_fill(best <= 0, float("inf")).unsqueeze(1)
    work = _compiled if usable(scores) else _expected_discounts
    value, gradient = work(scores.detach(), weights, mask, sigma)
    return with_gradient(scores, -value, -gradient)


@torch.no_grad()
def _expected_discounts(
    scores: Tensor, weights: Tensor, mask: Tensor, sigma: float
) -> tuple[Tensor, Tensor]:
    """``Σ_j weights_j E[D(r_j)]`` per list, ``[B]``, and its gradient, ``[B, L]``."""
    packing = Packing(weights != 0, mask)
    s = packing.pack(scores).masked_fill_(~packing.real, -FAR)
    w = packing.pack(weights)
    value = s.new_zeros(len(s))
    gradient = torch.zeros_like(s)
    terms = list(zip(*powers_of_discount(scores.shape[1], scores.dtype), strict=True))
    for chunk, rows, (behind, factor, slope) in walk(packing, s, 3):
        lists, columns = chunk.lists, slice(chunk.columns)
        difference = torch.sub(s[lists, None, columns], s[lists, rows, None])
        behind.copy_(win_probability(difference, sigma))
        behind.diagonal(rows.start, 1, 2).zero_()  # no contest with itself
        slope.zero_()
        weight = w[lists, rows]
        total = torch.zeros_like(weight)
        for z, amount in terms:
            torch.mul(behind, z - 1, out=factor).add_(1)
            power = amount * factor.prod(2)
            total += power
            scaled = ((z - 1) * power * weight).unsqueeze(2)
            slope.addcdiv_(scaled.expand_as(factor), factor)
        value[lists] += (weight * total).sum(1)
        slope.mul_(win_density(difference, sigma))
        slope.diagonal(rows.start, 1, 2).zero_()
        gradient[lists, columns] += slope.sum(1)
        gradient[lists, rows] -= slope.sum(2)
    return packing.unpack_lists(value), packing.unpack(gradient)


def _compiled(scores: Tensor, weights: Tensor, mask: Tensor, sigma: float) -> tuple[Tensor, Tensor]:
    """:func:`_expected_discounts` on a CPU."""
    from directrank.kernels import softrank as _softrank_kernel

    bases, amounts = powers_of_discount(scores.shape[1], scores.dtype)
    value = scores.new_empty(len(scores))
    gradient = torch.empty_like(scores, memory_format=torch.contiguous_format)
    over_lists(
        _softrank_kernel.softrank,
        pairs_of(scores) * len(bases) // 2,
        len(scores),
        *(array(tensor) for tensor in (scores, weights, mask)),
        float(sigma),
        *(array(scores.new_tensor(values)) for values in ([1 - z for z in bases], amounts)),
        value.numpy(),
        gradient.numpy(),
    )
    return value, gradient


@lru_cache(maxsize=64)
def powers_of_discount(length: int, dtype: torch.dtype) -> tuple[list[float], list[float]]:
    """Bases ``z_m`` and weights ``w_m`` with ``1/log2(2 + r) ≈ Σ_m w_m z_m^r``, ``0 ≤ r < length``.

    Least squares of the relative error over a geometric grid of decay rates; the fewest terms that
    reach 1e-8 (float32) or, before rounding, 1e-13 (float64).
    """
    goal = 1e-13 if dtype == torch.float64 else 1e-8
    size = 1 << max(4, (length - 1).bit_length())
    ranks = np.arange(size)
    wanted = 1 / np.log2(2 + ranks)
    picked = np.unique(np.concatenate([ranks[:64], np.geomspace(1, size - 1, 400).round()]))
    picked = picked.astype(int)
    for terms in range(8, 49, 4):
        rates = np.geomspace(0.2 / size, 8, terms)
        powers = np.exp(-np.outer(ranks, rates))
        relative = powers[picked] / wanted[picked, None]
        amounts = np.linalg.lstsq(relative, np.ones(len(picked)), rcond=1e-15)[0]
        if np.abs(powers @ amounts - wanted).max() < goal:
            break
    return np.exp(-rates).tolist(), amounts.tolist()
