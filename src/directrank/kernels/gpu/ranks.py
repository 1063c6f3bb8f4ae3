"""From the derivatives of a metric by ranks to a loss with its gradient, on a GPU."""

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
from directrank.kernels.gpu.pairs import sigmoid


def loss_of_ranks(
    lists: DeviceLists,
    steepness: float | Tensor,
    best: Tensor,
    sums: Tensor,
    slopes: Tensor,
    labels: Tensor | None = None,
    kind: int = 1,
) -> Tensor:
    """Minus a metric ``[B]`` at sigmoid or twin-sigmoid ranks, with its gradient.

    Args:
        lists: scores and places of documents.
        steepness: of the sigmoids in the derivative of ranks; a tensor ``[B, 1]`` sets it per list.
        best, sums: parts ``[B, tiles]`` of two sums, of which the metric is the quotient; it is 0
            where the divisor is.
        slopes: the derivative of a list's sum by the rank of each document, ``[B, L]``.
        labels: ``[B, L]``, for the types 2 and 3.
        kind: the type of :class:`directrank.relaxations.twin.TwinRanking`; the first is that of
            sigmoid ranks.
    """
    value = lists.per_list()
    gradient = lists.per_document() if lists.gradient_needed else None
    _run(lists, steepness, best, sums, slopes, labels, kind, value, gradient)
    return lists.loss(value, gradient)


def through_ranks(
    lists: DeviceLists,
    steepness: float,
    slopes: Tensor,
    labels: Tensor | None = None,
    kind: int = 1,
) -> Tensor:
    """``Σ_i slopes_i dr_i/ds``, ``[B, L]``; arguments as for :func:`loss_of_ranks`."""
    gradient = lists.per_document()
    _run(lists, steepness, None, None, slopes.contiguous(), labels, kind, None, gradient)
    return gradient


def _run(
    lists: DeviceLists,
    steepness: float | Tensor,
    best: Tensor | None,
    sums: Tensor | None,
    slopes: Tensor,
    labels: Tensor | None,
    kind: int,
    value: Tensor | None,
    gradient: Tensor | None,
) -> None:
    programs = 1 if gradient is None else lists.tiles
    lists.run(_quotient, programs, lists.scores, labels, *lists.hyper_parameter(steepness),
              lists.tiles, best, sums, slopes, value, gradient, KIND=kind,
              TILES=triton.next_power_of_2(lists.tiles))  # fmt: skip


@triton.jit
def _quotient(
    spans, mask, L, scores, labels, alpha: tl.float64, alphas, tiles, best, sums, slopes, value,
    gradient, KIND: tl.constexpr, TILES: tl.constexpr,
):  # fmt: skip
    """Minus a metric ``[B]``, and where needed its gradient ``[N]``; without ``best``, the gradient
    of the ranks weighted by ``slopes``."""
    begin, n, places = bounds(spans, mask, L)
    scale = quotient(tiles, best, sums, value, TILES)
    if gradient is not None:
        i, real = own_documents(mask, begin, n)
        s = tl.load(scores + begin + i, mask=real, other=0.0)
        w = tl.load(slopes + begin + i, mask=real, other=0.0)
        steepness = of_list(alpha, alphas, s.dtype)
        push = _push(mask, scores, labels, slopes, begin, n, i, s, w, steepness, KIND)
        pushed = tl.where(real, scale * (steepness * push), 0.0)
        tl.store(gradient + begin + i, pushed, mask=i < places)


@triton.jit
def _push(mask, scores, labels, slopes, begin, n, i, s, w, steepness, KIND: tl.constexpr):
    """What the derivatives w by ranks do to the scores of a tile, ``[TILE, 1]``, in units of the
    steepness: ``Σ_j (w_j g_ji - w_i g_ij)``, g the derivatives of a type."""
    push = tl.zeros([TILE], s.dtype)
    y = s
    if KIND != 1:
        y = tl.load(labels + begin + i, mask=i < n, other=0.0)
    for first in range(0, reach(n), STEP):
        j, other = other_documents(mask, begin, first, n)
        s_j = tl.load(scores + begin + j, mask=other, other=0.0)
        w_j = tl.load(slopes + begin + j, mask=other, other=0.0)
        lead = steepness * (s - s_j)
        if KIND == 1:  # g_ij = g_ji
            above = sigmoid(lead)
            force = (w_j - w) * (above * (1.0 - above))
        else:  # g_ij = -g_ji, and 0 for equal labels
            y_j = tl.load(labels + begin + j, mask=other, other=0.0)
            if KIND == 2:
                above = sigmoid(lead)
                size = above * (1.0 - above)
            else:
                size = 2.0 * sigmoid(tl.where(y > y_j, -lead, lead))
            both = w_j + w
            force = size * tl.where(y > y_j, -both, tl.where(y < y_j, both, 0.0))
        push += tl.sum(tl.where(other, force, 0.0), 1)
    return push[:, None]
