"""Losses in code that shares nothing with the library's, one formula each.

Compositions are written out, without a metric or a relaxation; other losses go list by list.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor


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


def neural_ndcg(
    scores, labels, mask, k=None, tau=1.0, iterations=30, tolerance=1e-6, first="columns"
):
    """One list at a time, unpadded, with autograd through every step."""
    values = []
    for s, y, m in zip(scores, labels, mask, strict=True):
        s, y = s[m], y[m]
        gains, n = 2**y - 1, len(s)
        best = _ideal_dcg(gains[None], k)[0] if n else torch.zeros(())
        if best <= 0:
            values.append(scores.sum() * 0)
            continue
        rank = torch.arange(1, n + 1, dtype=s.dtype)
        apart = (s[:, None] - s[None]).abs().sum(1)
        P = torch.softmax(((n + 1 - 2 * rank)[:, None] * s[None] - apart[None]) / tau, 1)
        sides = (0, 1) if first == "columns" else (1, 0)
        for _ in range(iterations):
            if max((P.sum(0) - 1).abs().max(), (P.sum(1) - 1).abs().max()) <= tolerance:
                break
            for side in sides:
                P = P / P.sum(side, keepdim=True)
        discount = 1 / torch.log2(1 + rank) * (rank <= (k or n))
        values.append(-(discount @ P @ gains) / best)
    return torch.stack(values)


def neural_ndcg_transposed(scores, labels, mask, **options):
    return neural_ndcg(scores, labels, mask, first="rows", **options)


def softrank(scores, labels, mask, sigma=1.0, k=None):
    """The recursion, one list at a time."""
    values = []
    for s, y, m in zip(scores, labels, mask, strict=True):
        s, y = s[m], y[m]
        gains, n = 2**y - 1, len(s)
        best = _ideal_dcg(gains[None], k)[0] if n else torch.zeros(())
        if best <= 0:
            values.append(scores.sum() * 0)
            continue
        total = 0
        for j in range(n):
            p = torch.zeros(n, dtype=s.dtype)
            p[0] = 1
            for i in range(n):
                if i != j:
                    win = torch.special.ndtr((s[i] - s[j]) / (math.sqrt(2) * sigma))
                    p = p * (1 - win) + torch.cat([p.new_zeros(1), p[:-1]]) * win
            ranks = torch.arange(n, dtype=s.dtype)
            total = total + gains[j] * (p / torch.log2(2 + ranks) * (ranks < (k or n))).sum()
        values.append(-total / best)
    return torch.stack(values)


def wassrank(scores, labels, mask, gradient="autograd", lam=0.1, iterations=10, gap=10.0):
    """With the cost and kernel of every pair of documents, in log space."""
    values = []
    for s, y, m in zip(scores, labels, mask, strict=True):
        s, y = s[m], y[m]
        if len(s) == 0:
            values.append(scores.sum() * 0)
            continue
        height = torch.where(y >= 1, 4.0**y - 1, -gap)
        cost = (height[:, None] - height[None]).abs()
        cost = torch.where(cost < 1, math.e, cost).fill_diagonal_(0.0)
        log_mu, log_nu = s.log_softmax(0), y.log_softmax(0)
        log_u = torch.zeros_like(s)
        for _ in range(iterations):
            log_v = log_nu - torch.logsumexp(log_u[:, None] - cost / lam, 0)
            log_u = log_mu - torch.logsumexp(log_v[None] - cost / lam, 1)
        plan = torch.exp(log_u[:, None] - cost / lam + log_v[None])
        value = (plan * cost).sum()
        if gradient == "dual":
            surrogate = lam * (log_u - log_u.mean()).detach() @ s.softmax(0)
            value = value.detach() + surrogate - surrogate.detach()
        values.append(value)
    return torch.stack(values)


def twin_ranks(scores, labels, mask, gradient="type3", alpha_b=1.0):
    """Exact ranks (scores without ties) with the gradient of the type, from its closed form."""
    z = _pairs(scores)
    b = torch.sigmoid(alpha_b * z).detach()
    u = torch.sign(_pairs(labels))
    g = {
        "type1": alpha_b * b * (1 - b),
        "type2": u * alpha_b * b * (1 - b),
        "type3": torch.where(u > 0, 2 * alpha_b * (1 - b), 0)
        + torch.where(u < 0, -2 * alpha_b * b, 0),
    }[gradient]
    surrogate = -(g * z * mask.unsqueeze(1)).sum(2)
    return _ranks(scores.detach(), mask) + surrogate - surrogate.detach()


def _twin_sorted(scores, labels, mask, gradient, alpha_b):
    ranks = twin_ranks(scores, labels, mask, gradient, alpha_b)
    order = _ranks(scores.detach(), mask).argsort(1)
    return ranks.gather(1, order), (labels * mask).gather(1, order), mask.sum(1)


def twin_precision(scores, labels, mask, k=None, gradient="type3", alpha_b=1.0):
    rank, y, n = _twin_sorted(scores, labels, mask, gradient, alpha_b)
    place = torch.arange(1, rank.shape[1] + 1)
    top = place <= (k or rank.shape[1])
    return -((y > 0) * top * place / rank).sum(1) / (k or n.clamp_min(1))


def twin_ap(scores, labels, mask, gradient="type3", alpha_b=1.0):
    rank, y, _ = _twin_sorted(scores, labels, mask, gradient, alpha_b)
    place = torch.arange(1, rank.shape[1] + 1)
    relevant = (y > 0).to(rank.dtype)
    precision = (relevant * place / rank).cumsum(1) / place
    return -_divide((relevant * precision).sum(1), relevant.sum(1))


def twin_ndcg(scores, labels, mask, k=None, gradient="type3", alpha_b=1.0):
    rank, y, _ = _twin_sorted(scores, labels, mask, gradient, alpha_b)
    top = torch.arange(1, rank.shape[1] + 1) <= (k or rank.shape[1])
    gains = 2**y - 1
    return -_divide((gains * top / torch.log2(1 + rank)).sum(1), _ideal_dcg(gains, k))


def twin_nerr(scores, labels, mask, k=10, gradient="type3", alpha_b=1.0):
    rank, y, _ = _twin_sorted(scores, labels, mask, gradient, alpha_b)

    def err(y, rank):
        stop = (2**y - 1) / 2 ** y.amax(1, keepdim=True)
        passed = torch.cat([torch.ones_like(y[:, :1]), (1 - stop[:, :-1]).cumprod(1)], 1)
        return (stop * passed / rank)[:, :k].sum(1)

    places = torch.arange(1, rank.shape[1] + 1, dtype=rank.dtype)
    return -_divide(err(y, rank), err(y.sort(1, descending=True).values, places))
