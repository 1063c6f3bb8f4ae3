"""The hinge loss over pairs on a GPU."""

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
    other_documents,
    own_documents,
    reach,
)
from directrank.lists.flat import Lists


def pairwise_hinge(scores: Tensor, labels: Tensor, mask: Lists | None, *, margin: float) -> Tensor:
    """See :func:`directrank.losses.pairwise_hinge`."""
    lists = DeviceLists(scores, labels, mask)
    costs = lists.per_list(lists.tiles)
    gradient = lists.per_document() if lists.gradient_needed else None
    lists.run(_costs, lists.tiles, lists.scores, lists.labels, float(margin), lists.tiles, costs,
              gradient, num_warps=8)  # fmt: skip
    return lists.loss(costs.sum(1), gradient)


@triton.jit
def _costs(
    spans, mask, L, scores, labels, margin: tl.float64, tiles, costs, gradient,
):  # fmt: skip
    """A tile's part ``[B, tiles]`` of ``Σ max(0, margin - (s_i - s_j))`` over the pairs with
    ``y_i > y_j``, and the gradient ``[N]``."""
    begin, n, places = bounds(spans, mask, L)
    i, real = own_documents(mask, begin, n)
    s = tl.load(scores + begin + i, mask=real, other=0.0)
    y = tl.load(labels + begin + i, mask=real, other=0.0)
    dtype = s.dtype
    least = tl.full((), margin, dtype)
    cost, push = tl.zeros([TILE], dtype), tl.zeros([TILE], dtype)
    for first in range(0, reach(n), STEP):
        j, other = other_documents(mask, begin, first, n)
        s_j = tl.load(scores + begin + j, mask=other, other=0.0)
        y_j = tl.load(labels + begin + j, mask=other, other=0.0)
        both = real & other
        ahead, behind = both & (y > y_j), both & (y < y_j)
        short = least - (s - s_j)
        # Written so that NaN stays NaN.
        cost += tl.sum(tl.where(ahead, tl.where(short < 0, 0.0, short), 0.0), 1)
        if gradient is not None:
            pushed = tl.where(behind & (least - (s_j - s) >= 0), 1.0, 0.0)
            pushed -= tl.where(ahead & (short >= 0), 1.0, 0.0)
            push += tl.sum(pushed.to(dtype), 1)
    add_up(costs, tiles, cost[:, None])
    if gradient is not None:
        tl.store(gradient + begin + i, tl.where(real, push[:, None], 0.0), mask=i < places)
