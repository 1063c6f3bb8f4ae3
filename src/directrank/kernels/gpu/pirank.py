"""NDCG under the first rows of NeuralSort's matrix on a GPU, which is never stored.

Its kernels alternate between documents and rows: the distances of documents, the softmax of each
row, and twice the derivatives by documents.
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
    inverse_of,
    number_of,
    of_list,
    other_documents,
    own_documents,
    reach,
    total,
)
from directrank.kernels.gpu.pairs import discount as discount_of
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
    straight_through: bool,
) -> Tensor:
    """Minus NDCG under NeuralSort's rows; see :func:`directrank.losses.pirank`."""
    one_of(discount, DISCOUNTS, "discount")
    lists = DeviceLists(scores, labels, mask)
    values, temperature = gains(lists.labels, gain), lists.hyper_parameter(tau)
    letor, powers = discount == "letor", {"TILES": triton.next_power_of_2(lists.tiles)}
    best, exact = lists.per_list(lists.tiles), lists.per_list(lists.tiles)
    distances = lists.per_document()
    lists.run(_distances, lists.tiles, lists.scores, values, *temperature, k, lists.tiles, best,
              exact, distances, LETOR=letor)  # fmt: skip
    soft, rows = lists.per_list(lists.tiles), [lists.per_document() for _ in range(3)]
    lists.run(_rows, lists.tiles, lists.scores, values, distances, *temperature, k, lists.tiles,
              soft, *rows, LETOR=letor)  # fmt: skip
    value, push, of_distances, gradient = lists.per_list(), None, None, None
    if lists.gradient_needed:
        push, of_distances, gradient = (lists.per_document() for _ in range(3))
    programs = 1 if gradient is None else lists.tiles
    lists.run(_shares, programs, lists.scores, values, distances, *temperature, k, lists.tiles,
              best, exact, soft, *rows, value, push, of_distances, **powers,
              STRAIGHT=bool(straight_through))  # fmt: skip
    if gradient is not None:
        lists.run(_through_distances, lists.tiles, lists.scores, *temperature, push, of_distances,
                  gradient)  # fmt: skip
    return lists.loss(value, gradient)


@triton.jit
def _distances(
    spans, mask, L, scores, gains, tau: tl.float64, taus, k, tiles, best, exact, distances,
    LETOR: tl.constexpr,
):  # fmt: skip
    """``Σ_j |s_i - s_j| / tau``, ``[N]``, and a tile's part of the largest DCG@k and of that of the
    sorted list, ``[B, tiles]``."""
    begin, n, places = bounds(spans, mask, L)
    i, real = own_documents(mask, begin, n)
    s = tl.load(scores + begin + i, mask=real, other=0.0)
    g = tl.load(gains + begin + i, mask=real, other=0.0)
    temperature = of_list(tau, taus, s.dtype)
    v = s / temperature
    sums = tl.zeros([TILE], s.dtype)
    for first in range(0, reach(n), STEP):
        j, other = other_documents(mask, begin, first, n)
        v_j = tl.load(scores + begin + j, mask=other, other=0.0) / temperature
        sums += tl.sum(tl.where(other, tl.abs(v - v_j), 0.0), 1)
    tl.store(distances + begin + i, sums[:, None], mask=i < places)
    rank = falling_places(mask, scores, None, begin, n, i, s)
    ideal = falling_places(mask, gains, None, begin, n, i, g)
    add_up(exact, tiles, tl.where(real, gained(g, rank, k, LETOR), 0.0))
    add_up(best, tiles, tl.where(real, gained(g, ideal, k, LETOR), 0.0))


@triton.jit
def _number_of_rows(mask, begin, n, k):
    """The number of documents, and of the rows up to the cut-off."""
    documents = number_of(mask, begin, n)
    rows = documents
    if k is not None:
        rows = tl.minimum(rows, k)
    return documents, rows


@triton.jit
def _rows(
    spans, mask, L, scores, gains, distances, tau: tl.float64, taus, k, tiles, soft, tops,
    weights, means, LETOR: tl.constexpr,
):  # fmt: skip
    """The largest logit of each row, its discount over the sum of exponentials, and its mean gain,
    all ``[N]`` by rank, and a tile's part of the DCG, ``[B, tiles]``."""
    begin, n, _ = bounds(spans, mask, L)
    documents, rows = _number_of_rows(mask, begin, n, k)
    row = (tl.program_id(1) * TILE + tl.arange(0, TILE))[:, None]
    dtype = scores.dtype.element_ty
    temperature = of_list(tau, taus, dtype)
    slope = (documents - 1 - 2 * row).to(dtype)
    top = tl.full([TILE, 1], float("-inf"), dtype)
    sums, met = tl.zeros([TILE, 1], dtype), tl.zeros([TILE, 1], dtype)
    for first in range(0, tl.where(tl.program_id(1) * TILE < rows, n, 0), STEP):
        j, other = other_documents(mask, begin, first, n)
        v = tl.load(scores + begin + j, mask=other, other=0.0) / temperature
        far = tl.load(distances + begin + j, mask=other, other=0.0)
        g = tl.load(gains + begin + j, mask=other, other=0.0)
        logits = tl.where(other, slope * v - far, float("-inf"))
        higher = tl.maximum(top, tl.max(logits, 1)[:, None])
        finite = tl.where(higher == float("-inf"), 0.0, higher)  # no document so far
        shrunk = tl.exp(top - finite)
        shares = tl.exp(logits - finite)
        sums = sums * shrunk + tl.sum(shares, 1)[:, None]
        met = met * shrunk + tl.sum(shares * g, 1)[:, None]
        top = higher
    inside = row < rows
    divisor = tl.where(inside, sums, 1.0)
    theta = discount_of(1.0 + row.to(dtype), LETOR)
    mean = met / divisor
    tl.store(tops + begin + row, top, mask=inside)
    tl.store(weights + begin + row, theta / divisor, mask=inside)
    tl.store(means + begin + row, mean, mask=inside)
    add_up(soft, tiles, tl.where(inside, theta * mean, 0.0))


@triton.jit
def _shares(
    spans, mask, L, scores, gains, distances, tau: tl.float64, taus, k, tiles, best, exact, soft,
    tops, weights, means, value, push, of_distances, STRAIGHT: tl.constexpr, TILES: tl.constexpr,
):  # fmt: skip
    """The loss ``[B]``, and its derivatives by ``s / tau``, at constant distances, and by
    distances, ``[N]``."""
    begin, n, places = bounds(spans, mask, L)
    scale = -inverse_of(best, tiles, TILES)
    if tl.program_id(1) == 0:
        dcg = total(soft, tiles, TILES)
        if STRAIGHT:
            dcg = total(exact, tiles, TILES) + (dcg - dcg)  # NaN stays NaN
        tl.store(value + tl.program_id(0), scale * dcg)
    if push is not None:
        i, real = own_documents(mask, begin, n)
        documents, rows = _number_of_rows(mask, begin, n, k)
        s = tl.load(scores + begin + i, mask=real, other=0.0)
        g = tl.load(gains + begin + i, mask=real, other=0.0)
        far = tl.load(distances + begin + i, mask=real, other=0.0)
        dtype = s.dtype
        v = s / of_list(tau, taus, dtype)
        pushed, sums = tl.zeros([TILE], dtype), tl.zeros([TILE], dtype)
        for first in range(0, tl.where(reach(n) > 0, rows, 0), STEP):
            row = (first + tl.arange(0, STEP))[None, :]
            inside = row < rows
            top = tl.load(tops + begin + row, mask=inside, other=0.0)
            weight = tl.load(weights + begin + row, mask=inside, other=0.0)
            mean = tl.load(means + begin + row, mask=inside, other=0.0)
            slope = (documents - 1 - 2 * row).to(dtype)
            logits = tl.where(real & inside, slope * v - far - top, 0.0)
            force = weight * tl.exp(logits) * (g - mean)
            pushed += tl.sum(slope * force, 1)
            sums += tl.sum(force, 1)
        tl.store(push + begin + i, tl.where(real, scale * pushed[:, None], 0.0), mask=i < places)
        lost = tl.where(real, -scale * sums[:, None], 0.0)
        tl.store(of_distances + begin + i, lost, mask=i < places)


@triton.jit
def _through_distances(
    spans, mask, L, scores, tau: tl.float64, taus, push, of_distances, gradient
):  # fmt: skip
    """The gradient ``[N]``: ``push`` and that of ``Σ_i of_distances_i distances_i``.

    The latter is ``Σ_j (w_i + w_j) sign(s_i - s_j)``; ties do not affect each other.
    """
    begin, n, places = bounds(spans, mask, L)
    i, real = own_documents(mask, begin, n)
    s = tl.load(scores + begin + i, mask=real, other=0.0)
    w = tl.load(of_distances + begin + i, mask=real, other=0.0)
    temperature = of_list(tau, taus, s.dtype)
    v = s / temperature
    sums = tl.zeros([TILE], s.dtype)
    for first in range(0, reach(n), STEP):
        j, other = other_documents(mask, begin, first, n)
        v_j = tl.load(scores + begin + j, mask=other, other=0.0) / temperature
        w_j = tl.load(of_distances + begin + j, mask=other, other=0.0)
        both = w + w_j
        force = tl.where(v > v_j, both, tl.where(v < v_j, -both, 0.0))
        sums += tl.sum(tl.where(other, force, 0.0), 1)
    own = tl.load(push + begin + i, mask=real, other=0.0)
    pushed = tl.where(real, (own + sums[:, None]) / temperature, 0.0)
    tl.store(gradient + begin + i, pushed, mask=i < places)
