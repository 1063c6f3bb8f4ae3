"""StochasticRank on a GPU."""

from __future__ import annotations

import math

import torch
import triton
import triton.language as tl
from torch import Tensor

from directrank.kernels.gpu.lists import (
    STEP,
    TILE,
    DeviceLists,
    add_up,
    are_real,
    bounds,
    not_finite,
    number_of,
    other_documents,
    own_documents,
    reach,
    total,
)
from directrank.kernels.gpu.pairs import discount, falling_places, gained
from directrank.lists.conventions import gains
from directrank.lists.draws import Source, normal
from directrank.lists.flat import Lists

ROOT_OF_2_PI = tl.constexpr(math.sqrt(2 * math.pi))


def smoothed_ndcg(
    scores: Tensor,
    labels: Tensor,
    mask: Lists | None,
    nu: float,
    *,
    k: int | None,
    sigma: float,
    mu: float,
    samples: int,
    gain: str,
    generator: Source,
) -> Tensor:
    """See :func:`directrank.losses._stochastic_rank.smoothed_ndcg`."""
    lists = DeviceLists(scores, labels, mask)
    values, means, moments = gains(lists.labels, gain), lists.per_document(), lists.per_list(2)
    tiny = torch.finfo(means.dtype).tiny
    lists.run(_means, 1, lists.scores, lists.labels, float(sigma * mu), nu, tiny, means, moments)
    noise = torch.stack([lists.drawn(normal, generator) for _ in range(samples)])
    drawn = torch.add(means, noise, alpha=sigma)
    ranks = torch.empty_like(drawn, dtype=torch.int32)
    best, dcg = lists.per_list(lists.tiles), lists.per_list(lists.tiles)
    stride = means.numel()
    lists.run(_ranks, lists.tiles, values, drawn, samples, stride, k, lists.tiles, best, dcg,
              ranks)  # fmt: skip
    value, shifts, stretches, by_means, gradient = lists.per_list(), None, None, None, None
    powers = {"TILES": triton.next_power_of_2(lists.tiles)}
    if lists.gradient_needed:
        shifts, stretches = lists.per_list(lists.tiles), lists.per_list(lists.tiles)
        by_means, gradient = lists.per_document(), lists.per_document()
        lists.run(_by_means, lists.tiles, lists.scores, values, means, moments, drawn, ranks,
                  samples, stride, float(sigma), k, lists.tiles, shifts, stretches,
                  by_means)  # fmt: skip
    programs = 1 if gradient is None else lists.tiles
    lists.run(_loss, programs, lists.scores, moments, samples, nu, tiny, lists.tiles, best, dcg,
              shifts, stretches, by_means, value, gradient, **powers)  # fmt: skip
    return lists.loss(value, gradient)


@triton.jit
def _means(
    spans, mask, L, scores, labels, back: tl.float64, nu: tl.float64, tiny: tl.float64, means,
    moments,
):  # fmt: skip
    """Scores in standard deviations from their mean, moved ``back`` for each grade of the label,
    ``[N]``, and the mean and the standard deviation, ``[B, 2]``."""
    begin, n, places = bounds(spans, mask, L)
    dtype = scores.dtype.element_ty
    number = tl.maximum(number_of(mask, begin, n), 1).to(dtype)
    sums = tl.zeros([STEP], dtype)
    for first in range(0, n, STEP):
        j = first + tl.arange(0, STEP)
        sums += tl.load(scores + begin + j, mask=are_real(mask, begin, j, n), other=0.0)
    mean = tl.sum(sums, 0) / number
    squares = tl.zeros([STEP], dtype)
    for first in range(0, n, STEP):
        j = first + tl.arange(0, STEP)
        real = are_real(mask, begin, j, n)
        apart = tl.load(scores + begin + j, mask=real, other=0.0) - mean
        squares += tl.where(real, apart * apart, 0.0)
    deviation = tl.sqrt(tl.maximum(tl.sum(squares, 0) / number, tl.full((), tiny, dtype)))
    unit = deviation + tl.full((), nu, dtype)
    for first in range(0, places, STEP):
        j = first + tl.arange(0, STEP)
        real = are_real(mask, begin, j, n)
        apart = tl.load(scores + begin + j, mask=real, other=0.0) - mean
        y = tl.load(labels + begin + j, mask=real, other=0.0)
        moved = apart / unit - tl.full((), back, dtype) * y
        tl.store(means + begin + j, tl.where(real, moved, 0.0), mask=j < places)
    tl.store(moments + 2 * tl.program_id(0), mean)
    tl.store(moments + 2 * tl.program_id(0) + 1, deviation)


@triton.jit
def _ranks(
    spans, mask, L, gains, drawn, samples, stride, k, tiles, best, dcg, ranks
):  # fmt: skip
    """The ranks of each draw, ``[S, N]``, and a tile's part of the largest DCG@k and of the sum of
    those drawn, ``[B, tiles]``."""
    begin, n, places = bounds(spans, mask, L)
    i, real = own_documents(mask, begin, n)
    g = tl.load(gains + begin + i, mask=real, other=0.0)
    sums = tl.zeros([TILE, 1], g.dtype)
    for sample in range(samples):
        here = begin + tl.full((), sample, tl.int64) * stride
        x = tl.load(drawn + here + i, mask=real, other=0.0)
        # The mask is of the lists, so the place of the draw moves its values alone.
        rank = falling_places(mask, drawn + (here - begin), None, begin, n, i, x)
        tl.store(ranks + here + i, rank, mask=i < places)
        sums += gained(g, rank, k, False) + not_finite(real, x)
    ideal = falling_places(mask, gains, None, begin, n, i, g)
    add_up(best, tiles, tl.where(real, gained(g, ideal, k, False), 0.0))
    add_up(dcg, tiles, tl.where(real, sums, 0.0))


@triton.jit
def _step(rank, k, dtype: tl.constexpr):
    """The difference between the weights of a rank and of the next one."""
    weight, following = discount(rank.to(dtype), False), discount(1.0 + rank.to(dtype), False)
    if k is not None:
        weight = tl.where(rank <= k, weight, 0.0)
        following = tl.where(rank < k, following, 0.0)
    return weight - following


@triton.jit
def _by_means(
    spans, mask, L, scores, gains, means, moments, drawn, ranks, samples, stride,
    sigma: tl.float64, k, tiles, shifts, stretches, by_means,
):  # fmt: skip
    """The estimated derivative of the sum of DCGs by each mean, ``[N]``, and a tile's part of their
    sum and of that of their products with the centred scores, ``[B, tiles]``."""
    begin, n, places = bounds(spans, mask, L)
    i, real = own_documents(mask, begin, n)
    g = tl.load(gains + begin + i, mask=real, other=0.0)
    m = tl.load(means + begin + i, mask=real, other=0.0)
    dtype = m.dtype
    deviation = tl.full((), sigma, dtype)
    sums = tl.zeros([TILE], dtype)
    for sample in range(samples):
        here = begin + tl.full((), sample, tl.int64) * stride
        rank = tl.load(ranks + here + i, mask=real, other=1)
        for first in range(0, reach(n), STEP):
            j, other = other_documents(mask, begin, first, n)
            g_j = tl.load(gains + begin + j, mask=other, other=0.0)
            x_j = tl.load(drawn + here + j, mask=other, other=0.0)
            rank_j = tl.load(ranks + here + j, mask=other, other=1)
            # Without document i, those ahead of it keep their rank, and others lose one.
            behind = _step(tl.maximum(rank_j - 1, 1), k, dtype)
            jump = tl.where(rank_j < rank, _step(rank_j, k, dtype), behind)
            apart = (x_j - m) / deviation
            change = (g - g_j) * jump * tl.exp(-0.5 * apart * apart)
            sums += tl.sum(tl.where(real & other & (i != j), change, 0.0), 1)
    derivative = sums[:, None] / (ROOT_OF_2_PI * deviation)
    tl.store(by_means + begin + i, derivative, mask=i < places)
    mean = tl.load(moments + 2 * tl.program_id(0))
    s = tl.load(scores + begin + i, mask=real, other=0.0)
    add_up(shifts, tiles, derivative)
    add_up(stretches, tiles, tl.where(real, derivative * (s - mean), 0.0))


@triton.jit
def _loss(
    spans, mask, L, scores, moments, samples, nu: tl.float64, tiny: tl.float64, tiles, best, dcg,
    shifts, stretches, by_means, value, gradient, TILES: tl.constexpr,
):  # fmt: skip
    """The loss ``[B]``, and where needed its gradient ``[N]`` by way of mean and deviation."""
    begin, n, places = bounds(spans, mask, L)
    highest = total(best, tiles, TILES)
    scale = tl.where(highest > 0, -1.0 / (samples * tl.where(highest > 0, highest, 1.0)), 0.0)
    if tl.program_id(1) == 0:
        tl.store(value + tl.program_id(0), scale * total(dcg, tiles, TILES))
    if gradient is not None:
        i, real = own_documents(mask, begin, n)
        s = tl.load(scores + begin + i, mask=real, other=0.0)
        q = tl.load(by_means + begin + i, mask=real, other=0.0)
        mean = tl.load(moments + 2 * tl.program_id(0))
        deviation = tl.load(moments + 2 * tl.program_id(0) + 1)
        number = tl.maximum(number_of(mask, begin, n), 1).to(s.dtype)
        unit = deviation + tl.full((), nu, s.dtype)
        stretch = total(stretches, tiles, TILES) / (unit * number * deviation)
        varies = deviation * deviation > tl.full((), tiny, s.dtype)
        pull = tl.where(varies, (s - mean) * stretch, 0.0)
        pushed = scale * (q - total(shifts, tiles, TILES) / number - pull) / unit
        tl.store(gradient + begin + i, tl.where(real, pushed, 0.0), mask=i < places)
