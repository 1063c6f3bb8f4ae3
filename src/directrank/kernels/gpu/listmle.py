"""ListMLE on a GPU: sums over the pairs of documents in place of a sort and of sums along it."""

from __future__ import annotations

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
    other_documents,
    own_documents,
    reach,
)
from directrank.kernels.gpu.pairs import LOW, are_ahead, with_exponentials
from directrank.lists.draws import Source, uniform
from directrank.lists.flat import Lists


def listmle(scores: Tensor, labels: Tensor, mask: Lists | None, *, generator: Source) -> Tensor:
    """See :func:`directrank.losses.listmle`."""
    lists = DeviceLists(scores, labels, mask)
    noise = lists.drawn(uniform, generator, torch.float32)
    given = lists.scores, lists.labels, noise
    rest, parts = lists.per_document(), lists.per_list(lists.tiles)
    lists.run(_likelihood, lists.tiles, *given, lists.tiles, rest, parts)
    gradient = lists.per_document() if lists.gradient_needed else None
    if gradient is not None:
        lists.run(_forces, lists.tiles, *given, rest, gradient)
    return lists.loss(parts.sum(1), gradient)


@triton.jit
def _likelihood(spans, mask, L, scores, labels, noise, tiles, rest, parts):
    """``log Σ exp(s)`` of each document and those after it, ``[N]``, and a tile's part of the loss,
    ``[B, tiles]``."""
    begin, n, _places = bounds(spans, mask, L)
    i, real = own_documents(mask, begin, n)
    s = tl.load(scores + begin + i, mask=real, other=0.0)
    y = tl.load(labels + begin + i, mask=real, other=0.0)
    top, sums = tl.full([TILE], LOW, s.dtype), tl.zeros([TILE], s.dtype)
    for first in range(0, reach(n), STEP):
        j, other = other_documents(mask, begin, first, n)
        _j, ahead = are_ahead(mask, labels, noise, begin, n, first, i, y)
        s_j = tl.load(scores + begin + j, mask=other, other=LOW)
        top, sums = with_exponentials(top, sums, tl.where(ahead, LOW, s_j))
    logs = (top + tl.log(sums))[:, None]
    tl.store(rest + begin + i, logs, mask=real)
    add_up(parts, tiles, tl.where(real, logs - s, 0.0))


@triton.jit
def _forces(spans, mask, L, scores, labels, noise, rest, gradient):
    """``Σ exp(s_i - rest_j) - 1`` over the documents j up to i, ``[N]``."""
    begin, n, places = bounds(spans, mask, L)
    i, real = own_documents(mask, begin, n)
    s = tl.load(scores + begin + i, mask=real, other=0.0)
    y = tl.load(labels + begin + i, mask=real, other=0.0)
    push = tl.full([TILE], -1.0, s.dtype)
    for first in range(0, reach(n), STEP):
        j, other = other_documents(mask, begin, first, n)
        _j, ahead = are_ahead(mask, labels, noise, begin, n, first, i, y)
        r_j = tl.load(rest + begin + j, mask=other, other=0.0)
        push += tl.sum(tl.where(ahead | (other & (i == j)), tl.exp(s - r_j), 0.0), 1)
    tl.store(gradient + begin + i, tl.where(real, push[:, None], 0.0), mask=i < places)
