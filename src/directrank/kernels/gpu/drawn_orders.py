"""Orders of lists by their scores with random noise, on a GPU."""

from __future__ import annotations

from collections.abc import Callable

import torch
import triton
import triton.language as tl
from torch import Tensor

from directrank.kernels.gpu.lists import STEP, TILE, DeviceLists, are_real, bounds, other_documents
from directrank.kernels.gpu.pairs import LOW, precede, with_exponentials
from directrank.lists.draws import Source, uniform


def drawn_places(
    lists: DeviceLists,
    source: Source,
    samples: int,
    noise: Callable[[Tensor], Tensor],
    rest: Tensor | None = None,
) -> Tensor:
    """The place of each document, from 1, in orders by ``scores + noise(u)``: int32 ``[S, …]``.

    See :func:`directrank.lists.orders.drawn_orders`, whose random numbers these are. Scores that
    are NaN come first, as when they are sorted. ``rest [S, …]``, if given, becomes ``log Σ exp(s)``
    of each document and those after it.
    """
    scores = lists.scores
    drawn = [lists.drawn(uniform, source) for _ in range(samples)]
    noisy = scores + noise(torch.stack(drawn).clamp_min_(torch.finfo(scores.dtype).tiny))
    places = torch.empty_like(noisy, dtype=torch.int32)
    lists.run(_places, samples * lists.tiles, scores, noisy, lists.tiles, scores.numel(), places,
              rest)  # fmt: skip
    return places


@triton.jit
def _places(spans, mask, L, scores, noisy, tiles, N, places, rest):
    """A tile's places and, if it is not None, ``rest``, in the order of a sample; ``[S, N]``."""
    begin, n, _ = bounds(spans, mask, L)
    tile = tl.program_id(1) % tiles
    own = (tl.program_id(1) // tiles).to(tl.int64) * N + begin
    i = (tile * TILE + tl.arange(0, TILE))[:, None]
    real = are_real(mask, begin, i, n)
    x = _without_nan(tl.load(noisy + own + i, mask=real, other=0.0))
    dtype = x.dtype
    place = tl.full([TILE], 1, tl.int32)
    top, sums = tl.full([TILE], LOW, dtype), tl.zeros([TILE], dtype)
    for first in range(0, tl.where(tile * TILE < n, n, 0), STEP):
        j, other = other_documents(mask, begin, first, n)
        x_j = _without_nan(tl.load(noisy + own + j, mask=other, other=0.0))
        before = precede(x, i, x_j, j)
        place += tl.sum((other & before).to(tl.int32), 1)
        if rest is not None:
            s_j = tl.load(scores + begin + j, mask=other, other=LOW)
            top, sums = with_exponentials(top, sums, tl.where(before, LOW, s_j))
    tl.store(places + own + i, place[:, None], mask=real)
    if rest is not None:
        tl.store(rest + own + i, (top + tl.log(sums))[:, None], mask=real)


@triton.jit
def _without_nan(values):
    """Values with infinity in place of NaN."""
    return tl.where(values == values, values, float("inf"))
