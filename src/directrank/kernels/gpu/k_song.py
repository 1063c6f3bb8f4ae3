"""K-SONG on a GPU: one pass over pairs for sums of squared hinges, and one for their gradient."""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

from directrank.kernels.gpu.lists import (
    STEP,
    TILE,
    DeviceLists,
    add_up,
    bounds,
    not_finite,
    number_of,
    other_documents,
    own_documents,
    reach,
    total,
)
from directrank.kernels.gpu.pairs import discount_at, falling_places, gained, sigmoid
from directrank.lists.conventions import gains
from directrank.lists.flat import Lists


def k_song(
    scores: Tensor,
    labels: Tensor,
    mask: Lists | None,
    *,
    k: int | None,
    margin: float,
    beta: float,
    gain: str,
) -> Tensor:
    """See :func:`directrank.losses.k_song`."""
    if margin <= 0:
        return NotImplemented
    lists = DeviceLists(scores, labels, mask)
    values, hinges = gains(lists.labels, gain), lists.per_document()
    best, value = lists.per_list(lists.tiles), lists.per_list(lists.tiles)
    ends = None if k is None else lists.per_list(lists.tiles)
    lists.run(_hinges, lists.tiles, lists.scores, values, k, float(margin), lists.tiles, best,
              ends, hinges)  # fmt: skip
    gradient = lists.per_document() if lists.gradient_needed else None
    lists.run(_dcg, lists.tiles, lists.scores, values, hinges, k, float(margin), float(beta),
              lists.tiles, best, ends, value, gradient,
              TILES=triton.next_power_of_2(lists.tiles))  # fmt: skip
    return lists.loss(value.sum(1), gradient)


@triton.jit
def _hinges(
    spans, mask, L, scores, gains, k, margin: tl.float64, tiles, best, ends, hinges
):  # fmt: skip
    """``Σ_j max(0, margin - (s_i - s_j))²``, ``[N]``, and a tile's part of the largest DCG@k and of
    the mean of the scores at ranks k and k + 1, ``[B, tiles]``."""
    begin, n, places = bounds(spans, mask, L)
    i, real = own_documents(mask, begin, n)
    s = tl.load(scores + begin + i, mask=real, other=0.0)
    g = tl.load(gains + begin + i, mask=real, other=0.0)
    room = tl.full((), margin, s.dtype)
    sums = tl.zeros([TILE], s.dtype)
    for first in range(0, reach(n), STEP):
        j, other = other_documents(mask, begin, first, n)
        s_j = tl.load(scores + begin + j, mask=other, other=0.0)
        short = tl.maximum(room - (s - s_j), 0.0)
        sums += tl.sum(tl.where(other, short * short, 0.0), 1)
    # The sum of a document includes the square of the margin, so only places without one hold 1.
    tl.store(hinges + begin + i, tl.where(real, sums[:, None], 1.0), mask=i < places)
    ideal = falling_places(mask, gains, None, begin, n, i, g)
    add_up(best, tiles, tl.where(real, gained(g, ideal, k, False), 0.0))
    if k is not None:
        rank = falling_places(mask, scores, None, begin, n, i, s)
        at_end = real & ((rank == k) | (rank == k + 1))
        add_up(ends, tiles, tl.where(at_end, 0.5 * s, 0.0))


@triton.jit
def _dcg(
    spans, mask, L, scores, gains, hinges, k, margin: tl.float64, beta: tl.float64, tiles, best,
    ends, value, gradient, TILES: tl.constexpr,
):  # fmt: skip
    """A tile's part of the loss, ``[B, tiles]``, and where needed its gradient ``[N]``."""
    begin, n, places = bounds(spans, mask, L)
    i, real = own_documents(mask, begin, n)
    s = tl.load(scores + begin + i, mask=real, other=0.0)
    g = tl.load(gains + begin + i, mask=real, other=0.0)
    hinge = tl.load(hinges + begin + i, mask=real, other=1.0)
    room, steep = tl.full((), margin, s.dtype), tl.full((), beta, s.dtype)
    highest = total(best, tiles, TILES)
    scale = tl.where(highest > 0, -1.0 / tl.where(highest > 0, highest, 1.0), 0.0)
    threshold, is_cut = highest, False
    if k is not None:
        threshold, is_cut = total(ends, tiles, TILES), number_of(mask, begin, n) > k
        g *= tl.where(is_cut, sigmoid(steep * (s - threshold)), 1.0)
    weight, slope = discount_at(hinge, None, None, False)
    add_up(value, tiles, scale * (g * weight + not_finite(real, s)))
    if gradient is not None:
        slope *= g
        push = tl.zeros([TILE], s.dtype)
        for first in range(0, reach(n), STEP):
            j, other = other_documents(mask, begin, first, n)
            s_j = tl.load(scores + begin + j, mask=other, other=0.0)
            g_j = tl.load(gains + begin + j, mask=other, other=0.0)
            hinge_j = tl.load(hinges + begin + j, mask=other, other=1.0)
            if k is not None:
                g_j *= tl.where(is_cut, sigmoid(steep * (s_j - threshold)), 1.0)
            _, slope_j = discount_at(hinge_j, None, None, False)
            force = g_j * slope_j * tl.maximum(room - (s_j - s), 0.0)
            force -= slope * tl.maximum(room - (s - s_j), 0.0)
            push += tl.sum(tl.where(other & (i != j), force, 0.0), 1)
        pushed = tl.where(real, scale * (2.0 * push[:, None]), 0.0)
        tl.store(gradient + begin + i, pushed, mask=i < places)
