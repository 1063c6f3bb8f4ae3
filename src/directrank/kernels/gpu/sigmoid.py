"""Metrics at ranks that are sums of sigmoids, on a GPU."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from directrank.kernels.gpu.lists import (
    STEP,
    TILE,
    DeviceLists,
    add_up,
    bounds,
    of_list,
    other_documents,
    own_documents,
    reach,
)
from directrank.kernels.gpu.pairs import (
    add_dcg,
    discount_at,
    sigmoid,
    sigmoid_sums,
)
from directrank.kernels.gpu.ranks import loss_of_ranks, through_ranks
from directrank.lists.conventions import DISCOUNTS, gains
from directrank.lists.flat import Lists
from directrank.lists.gradient import once_differentiable
from directrank.lists.inputs import one_of


def ndcg(
    scores: Tensor,
    labels: Tensor,
    mask: Lists | None,
    *,
    k: int | None,
    gain: str,
    discount: str,
    alpha: float | Tensor,
    beta: float,
) -> Tensor:
    """Minus NDCG at sigmoid ranks; see :func:`directrank.losses.approx_ndcg`."""
    one_of(discount, DISCOUNTS, "discount")
    lists = DeviceLists(scores, labels, mask)
    values = gains(lists.labels, gain)
    best, dcg = lists.per_list(lists.tiles), lists.per_list(lists.tiles)
    slopes = lists.per_document()
    lists.run(_dcg, lists.tiles, lists.scores, values, *lists.hyper_parameter(alpha), k,
              float(beta), lists.tiles, best, dcg, slopes, LETOR=discount == "letor")  # fmt: skip
    return loss_of_ranks(lists, alpha, best, dcg, slopes)


def precision(
    scores: Tensor,
    labels: Tensor,
    mask: Lists | None,
    *,
    k: int | None,
    min_label: float,
    alpha: float | Tensor,
    beta: float,
) -> Tensor:
    """Minus precision at sigmoid ranks; see :func:`directrank.losses.approx_precision`."""
    if k is None:
        return NotImplemented
    lists = DeviceLists(scores, labels, mask)
    best, number = lists.per_list(lists.tiles), lists.per_list(lists.tiles)
    slopes = lists.per_document()
    lists.run(_count, lists.tiles, lists.scores, lists.labels, *lists.hyper_parameter(alpha), k,
              float(beta), float(min_label), lists.tiles, best, number, slopes)  # fmt: skip
    return loss_of_ranks(lists, alpha, best, number, slopes)


def average_precision(
    scores: Tensor,
    labels: Tensor,
    mask: Lists | None,
    *,
    k: int | None,
    denominator: str,
    min_label: float,
    alpha: float | Tensor,
    beta: float,
) -> Tensor:
    """Minus average precision at sigmoid ranks; see :func:`directrank.losses.approx_ap`."""
    if denominator != "R":
        return NotImplemented
    lists = DeviceLists(scores, labels, mask)
    best, sums = lists.per_list(lists.tiles), lists.per_list(lists.tiles)
    ranks, slopes = lists.per_document(), lists.per_document()
    lists.run(_ranks, lists.tiles, lists.scores, *lists.hyper_parameter(alpha), ranks)
    lists.run(_precisions, lists.tiles, ranks, lists.labels, k, float(beta), float(min_label),
              lists.tiles, best, sums, slopes)  # fmt: skip
    return loss_of_ranks(lists, alpha, best, sums, slopes)


def soft_counts(values: Tensor, front: Tensor, mask: Tensor) -> Tensor:
    """See :func:`directrank.relaxations.real_valued.soft_counts`."""
    return _SoftCounts.apply(values, front, mask)


class _SoftCounts(torch.autograd.Function):
    """Ranks without the 1, with their gradient."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, front: Tensor, mask: Tensor) -> Tensor:
        lists = DeviceLists(values.detach(), values.detach(), mask)
        ctx.lists, ctx.front = lists, front
        ctx.save_for_backward(values)
        counts = lists.per_document()
        lists.run(_ranks, lists.tiles, lists.scores, 1.0, None, counts)
        return counts - 1

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, None, None]:
        outer = grad_output.masked_fill(~ctx.front, 0.0)
        return through_ranks(ctx.lists, 1.0, outer), None, None


@triton.jit
def _dcg(
    spans, mask, L, scores, gains, alpha: tl.float64, alphas, k, beta: tl.float64, tiles, best,
    dcg, slopes, LETOR: tl.constexpr,
):  # fmt: skip
    """A tile's part of the ideal DCG and of the DCG at sigmoid ranks, ``[B, tiles]``, and the
    derivative of the latter by each rank, ``[N]``."""
    begin, n, places = bounds(spans, mask, L)
    i, real = own_documents(mask, begin, n)
    s = tl.load(scores + begin + i, mask=real, other=0.0)
    g = tl.load(gains + begin + i, mask=real, other=0.0)
    dtype = s.dtype
    rank = 1.0 + sigmoid_sums(mask, scores, begin, n, i, s, of_list(alpha, alphas, dtype))
    weight, slope = discount_at(rank, k, tl.full((), beta, dtype), LETOR)
    add_dcg(mask, gains, begin, n, places, i, real, g, weight, slope, k, tiles, best, dcg, slopes,
            LETOR)  # fmt: skip


@triton.jit
def _count(
    spans, mask, L, scores, labels, alpha: tl.float64, alphas, k, beta: tl.float64,
    min_label: tl.float64, tiles, best, number, slopes,
):  # fmt: skip
    """A tile's part of k and of the number of relevant documents within it, ``[B, tiles]``, and the
    derivative of the latter by each rank, ``[N]``."""
    begin, n, places = bounds(spans, mask, L)
    i, real = own_documents(mask, begin, n)
    s = tl.load(scores + begin + i, mask=real, other=0.0)
    y = tl.load(labels + begin + i, mask=real, other=0.0)
    dtype = s.dtype
    steep = tl.full((), beta, dtype)
    chosen = real & (y >= tl.full((), min_label, dtype))
    rank = 1.0 + sigmoid_sums(mask, scores, begin, n, i, s, of_list(alpha, alphas, dtype))
    within = sigmoid(steep * (k + 0.5 - rank))
    add_up(best, tiles, tl.where(i == 0, k, 0))
    add_up(number, tiles, tl.where(chosen, within, 0.0))
    slope = tl.where(chosen, -steep * within * (1.0 - within), 0.0)
    tl.store(slopes + begin + i, slope, mask=i < places)


@triton.jit
def _ranks(spans, mask, L, scores, alpha: tl.float64, alphas, ranks):
    """Sigmoid ranks ``[N]``."""
    begin, n, places = bounds(spans, mask, L)
    i, real = own_documents(mask, begin, n)
    s = tl.load(scores + begin + i, mask=real, other=0.0)
    sums = sigmoid_sums(mask, scores, begin, n, i, s, of_list(alpha, alphas, s.dtype))
    tl.store(ranks + begin + i, 1.0 + sums, mask=i < places)


@triton.jit
def _relevance_per_rank(rank, chosen, k, beta):
    """``1 / r`` within the smooth cut-off and its derivative, 0 for documents not chosen."""
    weight = 1.0 / rank
    slope = -weight * weight
    if k is not None:
        within = sigmoid(beta * (k + 0.5 - rank))
        slope = within * (slope - beta * (1.0 - within) * weight)
        weight *= within
    return tl.where(chosen, weight, 0.0), tl.where(chosen, slope, 0.0)


@triton.jit
def _precisions(
    spans, mask, L, ranks, labels, k, beta: tl.float64, min_label: tl.float64, tiles, best, sums,
    slopes,
):  # fmt: skip
    """A tile's part of the number of relevant documents and of the sum of their precisions,
    ``[B, tiles]``, and the derivative of the latter by each rank, ``[N]``."""
    begin, n, places = bounds(spans, mask, L)
    i, real = own_documents(mask, begin, n)
    rank = tl.load(ranks + begin + i, mask=real, other=1.0)
    y = tl.load(labels + begin + i, mask=real, other=0.0)
    dtype = rank.dtype
    steep, least = tl.full((), beta, dtype), tl.full((), min_label, dtype)
    chosen = real & (y >= least)
    weight, slope = _relevance_per_rank(rank, chosen, k, steep)
    retrieved, moved = tl.zeros([TILE], dtype), tl.zeros([TILE], dtype)
    for first in range(0, reach(n), STEP):
        j, other = other_documents(mask, begin, first, n)
        rank_j = tl.load(ranks + begin + j, mask=other, other=1.0)
        y_j = tl.load(labels + begin + j, mask=other, other=0.0)
        chosen_j = other & (y_j >= least)
        weight_j, _ = _relevance_per_rank(rank_j, chosen_j, k, steep)
        before = sigmoid(steep * (rank - rank_j))
        both = chosen & chosen_j & (i != j)
        retrieved += tl.sum(tl.where(both, before, 0.0), 1)
        change = (weight - weight_j) * (before * (1.0 - before))
        moved += tl.sum(tl.where(both, change, 0.0), 1)
    found = 1.0 + retrieved[:, None]
    add_up(best, tiles, chosen.to(dtype))
    add_up(sums, tiles, weight * found)
    tl.store(slopes + begin + i, slope * found + steep * moved[:, None], mask=i < places)
