"""NDCG at exact ranks with blackbox gradients on a GPU: places are counted twice."""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

from directrank.kernels.gpu.lists import (
    STEP,
    TILE,
    DeviceLists,
    bounds,
    of_list,
    other_documents,
    own_documents,
    quotient,
    reach,
)
from directrank.kernels.gpu.pairs import add_dcg, discount_at, falling_places, precede
from directrank.lists.conventions import DISCOUNTS, gains
from directrank.lists.flat import Lists
from directrank.lists.inputs import one_of


def ndcg(
    scores: Tensor,
    labels: Tensor,
    mask: Lists | None,
    *,
    k: int | None,
    gain: str,
    discount: str,
    lam: float | Tensor,
    margin: float,
) -> Tensor:
    """Minus NDCG at exact ranks; see :func:`directrank.losses.blackbox_ndcg`."""
    one_of(discount, DISCOUNTS, "discount")
    lists = DeviceLists(scores, labels, mask)
    shifted = lists.scores
    if margin:
        shifted = shifted + margin * (0.5 - (lists.labels > 0).to(shifted.dtype))
    best, dcg = lists.per_list(lists.tiles), lists.per_list(lists.tiles)
    ranks, slopes, value = lists.per_document(), lists.per_document(), lists.per_list()
    lists.run(_dcg, lists.tiles, shifted, gains(lists.labels, gain), k, lists.tiles, best, dcg,
              ranks, slopes, LETOR=discount == "letor")  # fmt: skip
    gradient = lists.per_document() if lists.gradient_needed else None
    lists.run(_steps, 1 if gradient is None else lists.tiles, shifted, *lists.hyper_parameter(lam),
              lists.tiles, best, dcg, ranks, slopes, value, gradient,
              TILES=triton.next_power_of_2(lists.tiles))  # fmt: skip
    return lists.loss(value, gradient)


@triton.jit
def _dcg(spans, mask, L, scores, gains, k, tiles, best, dcg, ranks, slopes, LETOR: tl.constexpr):
    """A tile's part of the ideal DCG and of the DCG, ``[B, tiles]``, the ranks, ``[N]``, and the
    derivative of the DCG by them, ``[N]``."""
    begin, n, places = bounds(spans, mask, L)
    i, real = own_documents(mask, begin, n)
    s = tl.load(scores + begin + i, mask=real, other=0.0)
    g = tl.load(gains + begin + i, mask=real, other=0.0)
    place = falling_places(mask, scores, None, begin, n, i, s)
    rank = place.to(s.dtype) + (s - s)  # NaN stays NaN
    weight, slope = discount_at(rank, None, 0.0, LETOR)
    if k is not None:
        within = (place <= k).to(s.dtype)
        weight *= within
        slope *= within
    tl.store(ranks + begin + i, rank, mask=i < places)
    add_dcg(mask, gains, begin, n, places, i, real, g, weight, slope, k, tiles, best, dcg, slopes,
            LETOR)  # fmt: skip


@triton.jit
def _steps(
    spans, mask, L, scores, lam: tl.float64, lams, tiles, best, dcg, ranks, slopes, value,
    gradient, TILES: tl.constexpr,
):  # fmt: skip
    """Minus NDCG ``[B]``, and where needed the places by which a document falls when scores move
    by ``lam`` times the derivative by its rank, over ``lam``, ``[N]``."""
    begin, n, places = bounds(spans, mask, L)
    scale = quotient(tiles, best, dcg, value, TILES)
    if gradient is not None:
        i, real = own_documents(mask, begin, n)
        s = tl.load(scores + begin + i, mask=real, other=0.0)
        distance = of_list(lam, lams, s.dtype)
        moved = s + distance * (scale * tl.load(slopes + begin + i, mask=real, other=0.0))
        place = tl.full([TILE], 1, tl.int32)
        for first in range(0, reach(n), STEP):
            j, other = other_documents(mask, begin, first, n)
            w_j = tl.load(slopes + begin + j, mask=other, other=0.0)
            s_j = tl.load(scores + begin + j, mask=other, other=0.0)
            ahead = other & precede(moved, i, s_j + distance * (scale * w_j), j)
            place += tl.sum(ahead.to(tl.int32), 1)
        rank = tl.load(ranks + begin + i, mask=real, other=0.0)
        step = (place[:, None].to(s.dtype) - rank) / distance
        tl.store(gradient + begin + i, tl.where(real, step, 0.0), mask=i < places)
