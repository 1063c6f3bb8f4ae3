"""YetiLoss on a GPU: one pass over the pairs of documents for each drawn order."""

from __future__ import annotations

from collections.abc import Callable

import triton
import triton.language as tl
from torch import Tensor

from directrank.kernels.gpu.drawn_orders import drawn_places
from directrank.kernels.gpu.ideal import discount_of_place, ideal_dcg
from directrank.kernels.gpu.lists import (
    STEP,
    TILE,
    DeviceLists,
    add_up,
    bounds,
    other_documents,
    own_documents,
    reach,
    total,
)
from directrank.lists.conventions import gains
from directrank.lists.draws import Source
from directrank.lists.flat import Lists

#: Warps of a program; with Triton's default of 4, variables would be spilled to memory.
WARPS = 8


def mean_cost(
    scores: Tensor,
    labels: Tensor,
    mask: Lists | None,
    k: int | None,
    neighbours: int,
    samples: int,
    gain: str,
    generator: Source,
    noise: Callable[[Tensor], Tensor],
) -> Tensor:
    """See :func:`directrank.losses._yeti_loss.mean_cost`."""
    lists = DeviceLists(scores, labels, mask)
    values, tiles = gains(lists.labels, gain), lists.tiles
    best = ideal_dcg(lists, values, k, letor=False)
    places = drawn_places(lists, generator, samples, noise)
    parts = lists.per_list(tiles)
    gradient = lists.per_document() if lists.gradient_needed else None
    lists.run(_costs, tiles, lists.scores, values, places, k, neighbours, samples, tiles,
              lists.scores.numel(), best, parts, gradient,
              TILES=triton.next_power_of_2(tiles), num_warps=WARPS)  # fmt: skip
    return lists.loss(parts.sum(1), gradient)


@triton.jit
def _costs(
    spans, mask, L, scores, gains, places, k, neighbours, samples, tiles, N, best, parts,
    gradient, TILES: tl.constexpr,
):  # fmt: skip
    """A tile's part of the mean cost, ``[B, tiles]``, and the gradient ``[N]`` where needed."""
    begin, n, listed = bounds(spans, mask, L)
    highest = total(best, tiles, TILES)
    scale = tl.where(highest > 0, 1.0 / (highest * samples), 0.0)
    i, real = own_documents(mask, begin, n)
    s = tl.load(scores + begin + i, mask=real, other=0.0)
    g = tl.load(gains + begin + i, mask=real, other=0.0)
    cost, push = tl.zeros([TILE], s.dtype), tl.zeros([TILE], s.dtype)
    for sample in range(samples):
        own = begin + tl.full((), sample, tl.int64) * N
        place = tl.load(places + own + i, mask=real, other=1)
        theta = discount_of_place(place, k, s.dtype, False)
        for first in range(0, reach(n), STEP):
            j, other = other_documents(mask, begin, first, n)
            place_j = tl.load(places + own + j, mask=other, other=1)
            s_j = tl.load(scores + begin + j, mask=other, other=0.0)
            g_j = tl.load(gains + begin + j, mask=other, other=0.0)
            near = real & other & (tl.abs(place_j - place) <= neighbours)
            change = (g - g_j) * tl.abs(theta - discount_of_place(place_j, k, s.dtype, False))
            # The lead of the better document; documents of equal gains have no weight.
            lead = tl.where(g > g_j, s - s_j, s_j - s)
            e = tl.exp(-tl.abs(lead))
            softplus = tl.maximum(-lead, 0.0) + tl.log(1.0 + e)
            # A pair's cost is counted with the document that comes first.
            counted = near & (place_j > place)
            cost += tl.sum(tl.where(counted, tl.abs(change) * softplus, 0.0), 1)
            push -= tl.sum(tl.where(near, change * tl.where(lead > 0, e, 1.0) / (1.0 + e), 0.0), 1)
    add_up(parts, tiles, scale * cost[:, None])
    if gradient is not None:
        push = tl.where(real, scale * push[:, None], 0.0)
        tl.store(gradient + begin + i, push, mask=i < listed)
