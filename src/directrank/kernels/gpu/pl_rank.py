"""PL-Rank-3 on a GPU: sums over pairs of documents in place of sums along sorted lists."""

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
    are_real,
    bounds,
    not_finite,
    other_documents,
    own_documents,
    reach,
    total,
)
from directrank.lists.conventions import gains
from directrank.lists.draws import Source
from directrank.lists.flat import Lists


def mean_dcg(
    scores: Tensor,
    labels: Tensor,
    mask: Lists | None,
    k: int | None,
    samples: int,
    gain: str,
    generator: Source,
    noise: Callable[[Tensor], Tensor],
) -> Tensor:
    """See :func:`directrank.losses._pl_rank.mean_dcg`."""
    lists = DeviceLists(scores, labels, mask)
    values, tiles = gains(lists.labels, gain), lists.tiles
    best = ideal_dcg(lists, values, k, letor=False)
    rest, following = (lists.scores.new_empty(samples, *lists.scores.shape) for _ in range(2))
    places = drawn_places(lists, generator, samples, noise, rest)
    dcg, value = lists.per_list(samples * tiles), lists.per_list()
    N = lists.scores.numel()
    lists.run(
        _following, samples * tiles, lists.scores, values, places, k, tiles, N, following, dcg
    )
    gradient = lists.per_document() if lists.gradient_needed else None
    lists.run(_estimate, 1 if gradient is None else tiles, lists.scores, values, places, k,
              samples, tiles, N, best, dcg, rest, following, value, gradient,
              TILES=triton.next_power_of_2(tiles),
              PARTS=triton.next_power_of_2(samples * tiles))  # fmt: skip
    return lists.loss(value, gradient)


@triton.jit
def _following(spans, mask, L, scores, gains, places, k, tiles, N, following, dcg):
    """The DCG from each document's rank on, ``[S, N]``, and a tile's part of the whole DCG,
    ``[B, S · tiles]``."""
    begin, n, _ = bounds(spans, mask, L)
    tile = tl.program_id(1) % tiles
    own = (tl.program_id(1) // tiles).to(tl.int64) * N + begin
    i = (tile * TILE + tl.arange(0, TILE))[:, None]
    real = are_real(mask, begin, i, n)
    place = tl.load(places + own + i, mask=real, other=1)
    s = tl.load(scores + begin + i, mask=real, other=0.0)
    g = tl.load(gains + begin + i, mask=real, other=0.0)
    later = tl.zeros([TILE], g.dtype)
    for first in range(0, tl.where(tile * TILE < n, n, 0), STEP):
        j, other = other_documents(mask, begin, first, n)
        place_j = tl.load(places + own + j, mask=other, other=1)
        g_j = tl.load(gains + begin + j, mask=other, other=0.0)
        reward = g_j * discount_of_place(place_j, k, g.dtype, False)
        later += tl.sum(tl.where(other & (place_j >= place), reward, 0.0), 1)
    tl.store(following + own + i, later[:, None], mask=real)
    reward = tl.where(real, g * discount_of_place(place, k, g.dtype, False), 0.0)
    part = tl.program_id(0) * tl.num_programs(1) + tl.program_id(1)
    tl.store(dcg + part, tl.sum(tl.sum(reward + not_finite(real, s), 1), 0))


@triton.jit
def _estimate(
    spans, mask, L, scores, gains, places, k, samples, tiles, N, best, dcg, rest, following,
    value, gradient, TILES: tl.constexpr, PARTS: tl.constexpr,
):  # fmt: skip
    """Minus the mean NDCG ``[B]`` and, where needed, the estimate of its gradient ``[N]``."""
    begin, n, listed = bounds(spans, mask, L)
    highest = total(best, tiles, TILES)
    scale = tl.where(highest > 0, -1.0 / (highest * samples), 0.0)
    if tl.program_id(1) == 0:
        tl.store(value + tl.program_id(0), scale * total(dcg, samples * tiles, PARTS))
    if gradient is not None:
        i, real = own_documents(mask, begin, n)
        s = tl.load(scores + begin + i, mask=real, other=0.0)
        g = tl.load(gains + begin + i, mask=real, other=0.0)
        push = tl.zeros([TILE], s.dtype)
        for sample in range(samples):
            own = begin + tl.full((), sample, tl.int64) * N
            place = tl.load(places + own + i, mask=real, other=1)
            after = tl.load(following + own + i, mask=real, other=0.0)
            direct = after - g * discount_of_place(place, k, s.dtype, False)
            push += tl.sum(direct, 1)
            for first in range(0, reach(n), STEP):
                j, other = other_documents(mask, begin, first, n)
                place_j = tl.load(places + own + j, mask=other, other=1)
                r_j = tl.load(rest + own + j, mask=other, other=0.0)
                f_j = tl.load(following + own + j, mask=other, other=0.0)
                theta = discount_of_place(place_j, k, s.dtype, False)
                ahead = other & (place_j <= place)
                push += tl.sum(tl.where(ahead, tl.exp(s - r_j) * (theta * g - f_j), 0.0), 1)
        push = tl.where(real, scale * push[:, None], 0.0)
        tl.store(gradient + begin + i, push, mask=i < listed)
