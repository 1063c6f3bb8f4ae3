"""The DCG of ideal orders on a GPU."""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

from directrank.kernels.gpu.lists import DeviceLists, add_up, bounds, own_documents
from directrank.kernels.gpu.pairs import discount, falling_places, gained


def ideal_dcg(lists: DeviceLists, gains: Tensor, k: int | None, letor: bool) -> Tensor:
    """Each tile's part of the largest DCG@k of any order, ``[B, tiles]``."""
    best = lists.per_list(lists.tiles)
    lists.run(_ideal_dcg, lists.tiles, gains, k, lists.tiles, best, LETOR=letor)
    return best


@triton.jit
def _ideal_dcg(spans, mask, L, gains, k, tiles, best, LETOR: tl.constexpr):
    """A tile's part of the ideal DCG, ``[B, tiles]``."""
    begin, n, _ = bounds(spans, mask, L)
    i, real = own_documents(mask, begin, n)
    g = tl.load(gains + begin + i, mask=real, other=0.0)
    place = falling_places(mask, gains, None, begin, n, i, g)
    add_up(best, tiles, tl.where(real, gained(g, place, k, LETOR), 0.0))


@triton.jit
def discount_of_place(place, k, dtype: tl.constexpr, LETOR: tl.constexpr):
    """The discount of a place, counted from 1; 0 behind place k, which may be None."""
    weight = discount(place.to(dtype), LETOR)
    if k is not None:
        weight = tl.where(place <= k, weight, 0.0)
    return weight
