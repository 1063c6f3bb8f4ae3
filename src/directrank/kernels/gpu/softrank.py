"""SoftRank's expected NDCG on a GPU, with the discount as a sum of powers, as on a CPU."""

from __future__ import annotations

from functools import lru_cache

import torch
import triton
import triton.language as tl
from torch import Tensor

from directrank.kernels.gpu.lists import TILE, DeviceLists, are_real, bounds, quotient
from directrank.kernels.gpu.pairs import discount, precede
from directrank.kernels.softrank import powers_of_discount
from directrank.lists.conventions import gains
from directrank.lists.flat import Lists

#: Powers of the discount that are processed together, and the documents of a step.
TERMS, OTHERS = tl.constexpr(4), tl.constexpr(32)

ROOT_OF_PI = tl.constexpr(1.7724538509055159)


def ndcg(
    scores: Tensor,
    labels: Tensor,
    mask: Lists | None,
    *,
    k: int | None,
    gain: str,
    discount: str,
    sigma: float,
) -> Tensor:
    """Minus NDCG under the rank-binomial distribution; see :func:`directrank.losses.softrank`.

    It supports no cut-off, and only the discount ``log2``.
    """
    if k is not None or discount != "log2":
        return NotImplemented
    lists = DeviceLists(scores, labels, mask)
    size = triton.next_power_of_2(max(lists.shape[1], 1))
    shares, amounts = _powers(size, lists.scores.dtype, lists.scores.device)
    values, width = gains(lists.labels, gain), 1 / (2 * sigma)
    products = lists.scores.new_empty((len(shares), lists.scores.numel()))
    best, dcg = lists.per_list(lists.tiles), lists.per_list(lists.tiles)
    value = lists.per_list()
    given = (lists.scores, values, shares, amounts, len(shares), width, lists.tiles,
             products.shape[1], products, best, dcg)  # fmt: skip
    lists.run(_expected, lists.tiles, *given)
    gradient = lists.per_document() if lists.gradient_needed else None
    programs = 1 if gradient is None else lists.tiles
    lists.run(_quotient, programs, *given, value, gradient,
              TILES=triton.next_power_of_2(lists.tiles), num_warps=8)  # fmt: skip
    return lists.loss(value, gradient)


@lru_cache(maxsize=64)
def _powers(length: int, dtype: torch.dtype, device: torch.device) -> tuple[Tensor, Tensor]:
    """``1 - z_m`` and ``w_m`` of :func:`powers_of_discount`, kept because copies are slow."""
    bases, amounts = powers_of_discount(length, dtype)
    shares = torch.tensor([1 - z for z in bases], dtype=torch.float64)
    return shares.to(device, dtype), torch.tensor(amounts, dtype=dtype, device=device)


@triton.jit
def _expected(
    spans, mask, L, scores, gains, shares, amounts, terms, width: tl.float64, tiles,
    documents: tl.int64, products, best, dcg,
):  # fmt: skip
    """A tile's part of the ideal and of the expected DCG, ``[B, tiles]``, and for each document
    ``Π_i (1 - shares_m p_ij)``, ``[terms, N]``, where i beats j with the probability p_ij."""
    begin, n, _ = bounds(spans, mask, L)
    tile = tl.program_id(1)
    j = (tile * TILE + tl.arange(0, TILE))[None, :, None]
    real = are_real(mask, begin, j, n)
    s = tl.load(scores + begin + j, mask=real, other=0.0)
    g = tl.load(gains + begin + j, mask=real, other=0.0)
    dtype = s.dtype
    inverse = tl.full((), width, dtype)
    end = tl.where(tile * TILE < n, n, 0)
    before = tl.zeros([1, TILE, OTHERS], tl.int32)
    for first in range(0, end, OTHERS):
        i = (first + tl.arange(0, OTHERS))[None, None, :]
        other = are_real(mask, begin, i, n)
        g_i = tl.load(gains + begin + i, mask=other, other=0.0)
        before += (other & precede(g, j, g_i, i)).to(tl.int32)
    place = tl.sum(before, 2)[:, :, None]

    last = (tl.arange(0, OTHERS) == OTHERS - 1)[None, None, :]
    expected = tl.zeros([1, TILE, 1], dtype)
    for start in range(0, terms, TERMS):
        m = start + tl.arange(0, TERMS)[:, None, None]
        share, amount = tl.load(shares + m), tl.load(amounts + m)
        product = tl.full([TERMS, TILE, OTHERS], 1.0, dtype)
        for first in range(0, end, OTHERS):
            i = (first + tl.arange(0, OTHERS))[None, None, :]
            other = are_real(mask, begin, i, n)
            s_i = tl.load(scores + begin + i, mask=other, other=0.0)
            wins = 0.5 + 0.5 * tl.erf(inverse * (s_i - s))
            product *= 1.0 - share * tl.where(other & (i != j), wins, 0.0)
        whole = tl.sum(tl.where(last, tl.cumprod(product, 2), 0.0), 2)[:, :, None]
        tl.store(products + m * documents + begin + j, whole, mask=j < n)
        expected += tl.sum(amount * whole, 0)[None, :, :]
    top = tl.where(real, g * discount((1 + place).to(dtype), False), 0.0)
    part = tl.program_id(0) * tiles + tile
    tl.store(best + part, tl.sum(tl.sum(tl.sum(top, 2), 1), 0))
    tl.store(dcg + part, tl.sum(tl.sum(tl.sum(g * expected, 2), 1), 0))


@triton.jit
def _quotient(
    spans, mask, L, scores, gains, shares, amounts, terms, width: tl.float64, tiles,
    documents: tl.int64, products, best, dcg, value, gradient, TILES: tl.constexpr,
):  # fmt: skip
    """Minus the expected NDCG ``[B]``, and where needed its gradient ``[N]``."""
    begin, n, places = bounds(spans, mask, L)
    tile = tl.program_id(1)
    scale = quotient(tiles, best, dcg, value, TILES)
    if gradient is not None:
        i = (tile * TILE + tl.arange(0, TILE))[None, :, None]
        real = are_real(mask, begin, i, n)
        s = tl.load(scores + begin + i, mask=real, other=0.0)
        g = tl.load(gains + begin + i, mask=real, other=0.0)
        dtype = s.dtype
        inverse = tl.full((), width, dtype)
        push = tl.zeros([1, TILE, OTHERS], dtype)
        for first in range(0, tl.where(tile * TILE < n, n, 0), OTHERS):
            j = (first + tl.arange(0, OTHERS))[None, None, :]
            other = are_real(mask, begin, j, n)
            s_j = tl.load(scores + begin + j, mask=other, other=0.0)
            g_j = tl.load(gains + begin + j, mask=other, other=0.0)
            apart = inverse * (s - s_j)
            wins = 0.5 + 0.5 * tl.erf(apart)
            density = tl.where(other & (i != j), tl.exp(-apart * apart), 0.0)
            force = tl.zeros([1, TILE, OTHERS], dtype)
            for start in range(0, terms, TERMS):
                m = start + tl.arange(0, TERMS)[:, None, None]
                share = tl.load(shares + m)
                at = products + m * documents + begin
                own = g * tl.load(at + i, mask=i < n, other=0.0)
                theirs = g_j * tl.load(at + j, mask=j < n, other=0.0)
                lost = own / (1.0 - share * (1.0 - wins)) - theirs / (1.0 - share * wins)
                force += tl.sum(tl.load(amounts + m) * share * lost, 0)[None, :, :]
            push += density * force
        push *= inverse / ROOT_OF_PI
        result = tl.where(real, scale * tl.sum(push, 2)[:, :, None], 0.0)
        tl.store(gradient + begin + i, result, mask=i < places)
