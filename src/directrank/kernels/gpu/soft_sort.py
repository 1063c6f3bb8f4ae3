"""NDCG under SoftSort's matrix on a GPU, which is never stored.

The row of a rank is a softmax around the score of the document there, so that a program computes
the rows of a tile of documents.
"""

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
    of_list,
    other_documents,
    own_documents,
    quotient,
    reach,
)
from directrank.kernels.gpu.pairs import falling_places, gained
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
    tau: float | Tensor,
) -> Tensor:
    """Minus NDCG under SoftSort; see :func:`directrank.losses.soft_sort_ndcg`."""
    one_of(discount, DISCOUNTS, "discount")
    lists = DeviceLists(scores, labels, mask)
    values, temperature = gains(lists.labels, gain), lists.hyper_parameter(tau)
    best, dcg = lists.per_list(lists.tiles), lists.per_list(lists.tiles)
    means, weights, value = lists.per_document(), lists.per_document(), lists.per_list()
    lists.run(_rows, lists.tiles, lists.scores, values, *temperature, k, lists.tiles, best, dcg,
              means, weights, LETOR=discount == "letor")  # fmt: skip
    gradient = lists.per_document() if lists.gradient_needed else None
    lists.run(_forces, 1 if gradient is None else lists.tiles, lists.scores, values, *temperature,
              lists.tiles, best, dcg, means, weights, value, gradient,
              TILES=triton.next_power_of_2(lists.tiles))  # fmt: skip
    return lists.loss(value, gradient)


@triton.jit
def _nearness(mask, scores, gains, begin, first, n, v, temperature):
    """The places ``j`` from ``first`` on, whether they hold real documents, and their gains,
    ``[1, STEP]``; their scores over tau minus those of the tile's documents, and the exponentials
    of the distances, ``[TILE, STEP]``."""
    j, other = other_documents(mask, begin, first, n)
    lead = tl.load(scores + begin + j, mask=other, other=0.0) / temperature - v
    g = tl.load(gains + begin + j, mask=other, other=0.0)
    return j, other, g, lead, tl.where(other, tl.exp(-tl.abs(lead)), 0.0)


@triton.jit
def _rows(
    spans, mask, L, scores, gains, tau: tl.float64, taus, k, tiles, best, dcg, means, weights,
    LETOR: tl.constexpr,
):  # fmt: skip
    """The mean gain of each document's row, and its discount over the sum of exponentials, 0 behind
    rank k, ``[N]``; a tile's part of the ideal DCG and of the DCG, ``[B, tiles]``."""
    begin, n, places = bounds(spans, mask, L)
    i, real = own_documents(mask, begin, n)
    s = tl.load(scores + begin + i, mask=real, other=0.0)
    g = tl.load(gains + begin + i, mask=real, other=0.0)
    temperature = of_list(tau, taus, s.dtype)
    v = s / temperature
    sums, met = tl.zeros([TILE], s.dtype), tl.zeros([TILE], s.dtype)
    for first in range(0, reach(n), STEP):
        _, _, g_j, _, near = _nearness(mask, scores, gains, begin, first, n, v, temperature)
        sums += tl.sum(near, 1)
        met += tl.sum(near * g_j, 1)
    divisor = tl.where(real, sums[:, None], 1.0)
    mean = tl.where(real, met[:, None], 0.0) / divisor
    rank = falling_places(mask, scores, None, begin, n, i, s)
    weight = tl.where(real, gained(1.0 / divisor, rank, k, LETOR), 0.0)
    tl.store(means + begin + i, mean, mask=i < places)
    tl.store(weights + begin + i, weight, mask=i < places)
    add_up(dcg, tiles, weight * divisor * mean)
    ideal = falling_places(mask, gains, None, begin, n, i, g)
    add_up(best, tiles, tl.where(real, gained(g, ideal, k, LETOR), 0.0))


@triton.jit
def _forces(
    spans, mask, L, scores, gains, tau: tl.float64, taus, tiles, best, dcg, means, weights, value,
    gradient, TILES: tl.constexpr,
):  # fmt: skip
    """Minus NDCG ``[B]``, and where needed its gradient ``[N]``.

    A document's score is the middle of its own row and an entry of all others. Documents with equal
    scores do not move each other.
    """
    begin, n, places = bounds(spans, mask, L)
    scale = quotient(tiles, best, dcg, value, TILES)
    if gradient is not None:
        i, real = own_documents(mask, begin, n)
        s = tl.load(scores + begin + i, mask=real, other=0.0)
        g = tl.load(gains + begin + i, mask=real, other=0.0)
        mean = tl.load(means + begin + i, mask=real, other=0.0)
        weight = tl.load(weights + begin + i, mask=real, other=0.0)
        temperature = of_list(tau, taus, s.dtype)
        v = s / temperature
        sums = tl.zeros([TILE], s.dtype)
        for first in range(0, reach(n), STEP):
            j, other, g_j, lead, near = _nearness(
                mask, scores, gains, begin, first, n, v, temperature
            )
            mean_j = tl.load(means + begin + j, mask=other, other=0.0)
            weight_j = tl.load(weights + begin + j, mask=other, other=0.0)
            force = near * (weight * (g_j - mean) + weight_j * (g - mean_j))
            sums += tl.sum(tl.where(lead > 0, force, tl.where(lead < 0, -force, 0.0)), 1)
        pushed = tl.where(real, scale * sums[:, None] / temperature, 0.0)
        tl.store(gradient + begin + i, pushed, mask=i < places)
