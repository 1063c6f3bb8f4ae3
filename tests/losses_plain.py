"""Losses written down as their formulas read, one [B, L, L] tensor after the other.

The library's versions are tested against these, and measured against them.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.functional import softplus


def _pairs(values: Tensor) -> Tensor:
    """``values_i - values_j``, ``[B, i, j]``."""
    return values.unsqueeze(2) - values.unsqueeze(1)


def _ranks(scores: Tensor, mask: Tensor) -> Tensor:
    order = scores.masked_fill(~mask, -math.inf).argsort(dim=1, descending=True, stable=True)
    return order.argsort(1) + 1


def _ideal_dcg(gains: Tensor, k: int | None = None) -> Tensor:
    best = gains.sort(1, descending=True).values[:, :k]
    return (best / torch.log2(torch.arange(2, best.shape[1] + 2, dtype=gains.dtype))).sum(1)


def _divide(value: Tensor, by: Tensor) -> Tensor:
    return torch.where(by > 0, value / by.clamp_min(1e-30), 0.0)


def ranknet(scores, labels, mask, k=None, sigma=1.0, reduction="sum"):
    if k is not None:
        mask = mask & (_ranks(scores.detach(), mask) <= k)
    pairs = (_pairs(labels) > 0) & mask.unsqueeze(2) & mask.unsqueeze(1)
    value = softplus(-sigma * _pairs(scores), threshold=50).masked_fill(~pairs, 0.0).sum((1, 2))
    return value / pairs.sum((1, 2)).clamp_min(1) if reduction == "mean" else value


def lambdarank(scores, labels, mask, k=None, cutoff="both", sigma=1.0):
    gains = (2**labels - 1) * mask
    ranks = _ranks(scores.detach(), mask)
    pairs = (_pairs(labels) > 0) & mask.unsqueeze(2) & mask.unsqueeze(1)
    if k is not None:
        top = ranks <= k
        rule = torch.logical_and if cutoff == "both" else torch.logical_or
        pairs = pairs & rule(top.unsqueeze(2), top.unsqueeze(1))
    change = (_pairs(gains) * _pairs(1 / torch.log2(1 + ranks.to(scores.dtype)))).abs()
    logs = softplus(-sigma * _pairs(scores), threshold=50)
    best = _ideal_dcg(gains, k if cutoff == "both" else None)
    return _divide((change * logs).masked_fill(~pairs, 0.0).sum((1, 2)), best)


def _soft_ranks(scores, mask, alpha):
    above = torch.sigmoid(-alpha * _pairs(scores)) * mask.unsqueeze(1)
    return 1 + above.masked_fill(torch.eye(scores.shape[1], dtype=torch.bool), 0.0).sum(2)


def approx_ndcg(scores, labels, mask, alpha=10.0, k=None, beta=10.0):
    gains = (2**labels - 1) * mask
    ranks = _soft_ranks(scores, mask, alpha)
    top = 1.0 if k is None else torch.sigmoid(beta * (k + 0.5 - ranks))
    return -_divide((gains * top / torch.log2(1 + ranks)).sum(1), _ideal_dcg(gains, k))


def approx_precision(scores, labels, mask, k, alpha=10.0, beta=10.0):
    ranks = _soft_ranks(scores, mask, alpha)
    return -(((labels > 0) & mask) * torch.sigmoid(beta * (k + 0.5 - ranks))).sum(1) / k


def approx_ap(scores, labels, mask, alpha=10.0, beta=10.0):
    relevant = ((labels > 0) & mask).to(scores.dtype)
    ranks = _soft_ranks(scores, mask, alpha)
    ahead = torch.sigmoid(beta * _pairs(ranks)) * relevant.unsqueeze(1)
    ahead = ahead.masked_fill(torch.eye(scores.shape[1], dtype=torch.bool), 0.0).sum(2)
    return -_divide((relevant * (1 + ahead) / ranks).sum(1), relevant.sum(1))


def listmle(scores, labels, mask, order):
    lowest = torch.finfo(scores.dtype).min
    ordered = scores.masked_fill(~mask, lowest).gather(1, order)
    rest = ordered.flip(1).logcumsumexp(1).flip(1)
    return (rest - ordered).masked_fill(~mask.gather(1, order), 0.0).sum(1)
