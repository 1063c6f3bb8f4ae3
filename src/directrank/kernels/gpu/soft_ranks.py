"""Laplace and projected ranks on a GPU, and what they do to derivatives.

Sums along sorted lists are sums over pairs of documents. Isotonic regression is one, too: a block
of equal levels ends at each corner of the lower convex hull of cumulative sums, and a point is a
corner if the steepest line to a point before it is less steep than the flattest to one after it.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from directrank.kernels.gpu.lists import (
    STEP,
    TILE,
    DeviceLists,
    bounds,
    number_of,
    of_list,
    other_documents,
    own_documents,
    quotient,
    reach,
)
from directrank.kernels.gpu.pairs import LOW, precede, with_exponentials
from directrank.lists.gradient import once_differentiable

#: Warps of a program; with Triton's default of 4, some variables would be spilled to memory.
WARPS = {"num_warps": 8}


class LaplaceRanks:
    """``1 + Σ_{j≠i} F((s_j - s_i) / tau)``; see :func:`directrank.relaxations.lapsum.lapsum`.

    Args:
        lists: the scores s.
        tau: a tensor ``[B, 1]`` sets it per list.

    Attributes:
        ranks: in the shape of the scores, 1 at masked positions.
    """

    def __init__(self, lists: DeviceLists, tau: float | Tensor) -> None:
        self.lists, self.ranks = lists, lists.per_document()
        self._given = lists.scores, *lists.hyper_parameter(tau)
        lists.run(_laplace_ranks, lists.tiles, *self._given, self.ranks, **WARPS)

    def through(
        self,
        slopes: Tensor,
        gradient: Tensor | None,
        best: Tensor | None = None,
        sums: Tensor | None = None,
        value: Tensor | None = None,
    ) -> None:
        """From derivatives by ranks, the ``slopes``, to the ``gradient`` with respect to the
        scores, both in the shape of the scores.

        If ``best`` is given, ``value [B]`` becomes minus the quotient of two sums whose parts
        ``[B, tiles]`` are ``sums`` and ``best``, 0 where ``best`` is 0, and the slopes are those of
        ``sums``. The gradient may then be None.
        """
        lists = self.lists
        lists.run(_through_laplace, 1 if gradient is None else lists.tiles, *self._given,
                  lists.tiles, best, sums, slopes, value, gradient,
                  TILES=triton.next_power_of_2(lists.tiles), **WARPS)  # fmt: skip


class ProjectedRanks:
    """The projection of ``-scores / tau`` onto the permutahedron, as :class:`LaplaceRanks`.

    See :func:`directrank.relaxations.fast_soft_rank.fast_soft_rank`.
    """

    def __init__(self, lists: DeviceLists, tau: float | Tensor, regularisation: str) -> None:
        self.lists, self.ranks = lists, lists.per_document()
        self._entropic = regularisation == "entropic"
        self._tau = lists.hyper_parameter(tau)
        # Of cumulative sums only differences are used, which must be precise.
        sums = lists.per_document(torch.float64)
        places, ends, self._starts, self._stops = (
            lists.per_document(torch.int32) for _ in range(4)
        )
        given = lists.scores, *self._tau
        kind = {"ENTROPIC": self._entropic, **WARPS}
        lists.run(_sums_up_to, lists.tiles, *given, places, sums, **kind)
        lists.run(_ends, lists.tiles, places, sums, ends, **kind)
        lists.run(_projected_ranks, lists.tiles, *given, places, ends, self._starts, self._stops,
                  self.ranks, **kind)  # fmt: skip

    def through(
        self,
        slopes: Tensor,
        gradient: Tensor | None,
        best: Tensor | None = None,
        sums: Tensor | None = None,
        value: Tensor | None = None,
    ) -> None:
        """See :meth:`LaplaceRanks.through`."""
        lists = self.lists
        lists.run(_through_projection, 1 if gradient is None else lists.tiles, *self._tau,
                  self._starts, self._stops, self.ranks, lists.tiles, best, sums, slopes, value,
                  gradient, ENTROPIC=self._entropic,
                  TILES=triton.next_power_of_2(lists.tiles), **WARPS)  # fmt: skip


def laplace_ranks(values: Tensor, order: Tensor, mask: Tensor) -> Tensor:
    """See :func:`directrank.relaxations.lapsum.laplace_ranks`."""
    return _Ranks.apply(values, mask, None)


def projected_ranks(values: Tensor, order: Tensor, mask: Tensor, regularisation: str) -> Tensor:
    """See :func:`directrank.relaxations.fast_soft_rank.projected_ranks`."""
    return _Ranks.apply(values, mask, regularisation)


class _Ranks(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, mask: Tensor, regularisation: str | None) -> Tensor:
        ctx.save_for_backward(values)
        lists = DeviceLists(values.detach(), values.detach(), mask)
        if regularisation is None:
            ctx.relaxed = LaplaceRanks(lists, 1.0)
        else:
            ctx.relaxed = ProjectedRanks(lists, 1.0, regularisation)
        return ctx.relaxed.ranks.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, None, None]:
        gradient = torch.empty_like(ctx.relaxed.ranks)
        ctx.relaxed.through(grad_output.contiguous(), gradient)
        return gradient, None, None


@triton.jit
def _laplace_ranks(spans, mask, L, scores, tau: tl.float64, taus, ranks):
    """``1 + Σ_{j≠i} F((s_j - s_i) / tau)``, ``[N]``."""
    begin, n, places = bounds(spans, mask, L)
    i, real = own_documents(mask, begin, n)
    s = tl.load(scores + begin + i, mask=real, other=0.0)
    inverse = 1.0 / of_list(tau, taus, s.dtype)
    rank = tl.full([TILE], 1.0, s.dtype)
    for first in range(0, reach(n), STEP):
        j, other = other_documents(mask, begin, first, n)
        x = (tl.load(scores + begin + j, mask=other, other=0.0) - s) * inverse
        tail = 0.5 * tl.exp(-tl.abs(x))
        rank += tl.sum(tl.where(other & (i != j), tl.where(x < 0, tail, 1.0 - tail), 0.0), 1)
    tl.store(ranks + begin + i, tl.where(real, rank[:, None], 1.0), mask=i < places)


@triton.jit
def _through_laplace(
    spans, mask, L, scores, tau: tl.float64, taus, tiles, best, sums, slopes, value, gradient,
    TILES: tl.constexpr,
):  # fmt: skip
    """See :meth:`LaplaceRanks.through`."""
    begin, n, places = bounds(spans, mask, L)
    scale = quotient(tiles, best, sums, value, TILES)
    if gradient is not None:
        i, real = own_documents(mask, begin, n)
        s = tl.load(scores + begin + i, mask=real, other=0.0)
        w = tl.load(slopes + begin + i, mask=real, other=0.0)
        inverse = 1.0 / of_list(tau, taus, s.dtype)
        push = tl.zeros([TILE], s.dtype)
        for first in range(0, reach(n), STEP):
            j, other = other_documents(mask, begin, first, n)
            x = (tl.load(scores + begin + j, mask=other, other=0.0) - s) * inverse
            w_j = tl.load(slopes + begin + j, mask=other, other=0.0)
            push += tl.sum(tl.where(other, (w_j - w) * (0.5 * tl.exp(-tl.abs(x))), 0.0), 1)
        pushed = tl.where(real, scale * (inverse * push[:, None]), 0.0)
        tl.store(gradient + begin + i, pushed, mask=i < places)


@triton.jit
def _sums_up_to(
    spans, mask, L, scores, tau: tl.float64, taus, places, sums, ENTROPIC: tl.constexpr
):
    """The places by falling score, from 1, ``[N]``, and what isotonic regression of the values
    ``v = s / tau`` adds up to there: ``-v - place``, or ``log Σ exp(-v)``; float64 ``[N]``."""
    begin, n, _ = bounds(spans, mask, L)
    i, real = own_documents(mask, begin, n)
    s = tl.load(scores + begin + i, mask=real, other=0.0)
    inverse = 1.0 / of_list(tau, taus, s.dtype)
    before = tl.zeros([TILE], tl.int32)
    top, added = tl.full([TILE], LOW, tl.float64), tl.zeros([TILE], tl.float64)
    for first in range(0, reach(n), STEP):
        j, other = other_documents(mask, begin, first, n)
        s_j = tl.load(scores + begin + j, mask=other, other=0.0)
        ahead = other & precede(s, i, s_j, j)
        before += tl.sum(ahead.to(tl.int32), 1)
        v_j = (s_j * inverse).to(tl.float64)
        upto = ahead | (other & (i == j))
        if ENTROPIC:
            top, added = with_exponentials(top, added, tl.where(upto, -v_j, LOW))
        else:
            added -= tl.sum(tl.where(upto, v_j, 0.0), 1)
    place = (1 + before)[:, None]
    tl.store(places + begin + i, place, mask=real)
    accumulated = (top + tl.log(added) if ENTROPIC else added)[:, None]
    if not ENTROPIC:
        accumulated -= _triangle(place)
    tl.store(sums + begin + i, accumulated, mask=real)


@triton.jit
def _triangle(place):
    """``1 + … + place``, float64."""
    number = place.to(tl.float64)
    return 0.5 * number * (number + 1.0)


@triton.jit
def _level(low, begin, high, end, ENTROPIC: tl.constexpr):
    """The level of a block after the place ``begin`` up to the place ``end``, if ``low`` and
    ``high`` are the sums up to them."""
    if ENTROPIC:
        share = tl.log(1.0 - tl.exp(low - high))
        level = high + share - tl.log(_triangle(end) - _triangle(begin))
    else:
        level = (high - low) / (end - begin).to(tl.float64)
    return level


@triton.jit
def _ends(spans, mask, L, places, sums, ends, ENTROPIC: tl.constexpr):
    """Whether a block ends with a document, ``[N]``."""
    begin, n, _ = bounds(spans, mask, L)
    i, real = own_documents(mask, begin, n)
    place = tl.load(places + begin + i, mask=real, other=1)
    own = tl.load(sums + begin + i, mask=real, other=0.0)
    start = LOW if ENTROPIC else 0.0
    of_all = _level(tl.full([TILE, 1], start, tl.float64), place * 0, own, place, ENTROPIC)
    steepest = tl.max(of_all, 1)
    flattest = tl.full([TILE], float("inf"), tl.float64)
    for first in range(0, reach(n), STEP):
        j, other = other_documents(mask, begin, first, n)
        place_j = tl.load(places + begin + j, mask=other, other=1)
        sum_j = tl.load(sums + begin + j, mask=other, other=0.0)
        ahead = place_j < place
        low, high = tl.where(ahead, sum_j, own), tl.where(ahead, own, sum_j)
        level = _level(low, tl.minimum(place, place_j), high, tl.maximum(place, place_j), ENTROPIC)
        steepest = tl.maximum(steepest, tl.max(tl.where(other & ahead, level, float("-inf")), 1))
        behind = other & (place_j > place)
        flattest = tl.minimum(flattest, tl.min(tl.where(behind, level, float("inf")), 1))
    corner = (steepest < flattest)[:, None]
    tl.store(ends + begin + i, corner.to(tl.int32), mask=real)


@triton.jit
def _projected_ranks(
    spans, mask, L, scores, tau: tl.float64, taus, places, ends, starts, stops, ranks,
    ENTROPIC: tl.constexpr,
):  # fmt: skip
    """The ranks, ``[N]``, and the places before and at the end of each document's block."""
    begin, n, listed = bounds(spans, mask, L)
    i, real = own_documents(mask, begin, n)
    s = tl.load(scores + begin + i, mask=real, other=0.0)
    place = tl.load(places + begin + i, mask=real, other=1)
    inverse = 1.0 / of_list(tau, taus, s.dtype)
    start = tl.zeros([TILE], tl.int32)
    stop = tl.zeros([TILE], tl.int32) + number_of(mask, begin, n)
    for first in range(0, reach(n), STEP):
        j, other = other_documents(mask, begin, first, n)
        end = tl.load(ends + begin + j, mask=other, other=0) != 0
        place_j = tl.load(places + begin + j, mask=other, other=1)
        start = tl.maximum(start, tl.max(tl.where(end & (place_j < place), place_j, 0), 1))
        stop = tl.minimum(stop, tl.min(tl.where(end & (place_j >= place), place_j, n), 1))
    start_of, stop_of = start[:, None], stop[:, None]
    sums, unknown = tl.zeros([TILE], s.dtype), tl.zeros([TILE], s.dtype)
    for first in range(0, reach(n), STEP):
        j, other = other_documents(mask, begin, first, n)
        place_j = tl.load(places + begin + j, mask=other, other=1)
        s_j = tl.load(scores + begin + j, mask=other, other=0.0)
        unknown += tl.sum(s_j - s_j, 1)
        apart = (s_j - s) * inverse
        if ENTROPIC:
            apart = tl.exp(-apart)
        within = other & (place_j > start_of) & (place_j <= stop_of)
        sums += tl.sum(tl.where(within, apart, 0.0), 1)
    size, middle = _block(start_of, stop_of, s.dtype)
    sum_of = (sums + unknown)[:, None]  # one NaN makes all ranks NaN
    rank = middle * size / sum_of if ENTROPIC else middle + sum_of / size
    tl.store(starts + begin + i, start_of, mask=real)
    tl.store(stops + begin + i, stop_of, mask=real)
    tl.store(ranks + begin + i, tl.where(real, rank, 1.0), mask=i < listed)


@triton.jit
def _block(start, stop, dtype: tl.constexpr):
    """The number of places of a block, and their mean."""
    return (stop - start).to(dtype), 0.5 * (start + 1 + stop).to(dtype)


@triton.jit
def _through_projection(
    spans, mask, L, tau: tl.float64, taus, starts, stops, ranks, tiles, best, sums, slopes,
    value, gradient, ENTROPIC: tl.constexpr, TILES: tl.constexpr,
):  # fmt: skip
    """See :meth:`LaplaceRanks.through`; blocks lose their mean, or their mean by ranks."""
    begin, n, listed = bounds(spans, mask, L)
    scale = quotient(tiles, best, sums, value, TILES)
    if gradient is not None:
        i, real = own_documents(mask, begin, n)
        w = tl.load(slopes + begin + i, mask=real, other=0.0)
        rank = tl.load(ranks + begin + i, mask=real, other=1.0)
        start = tl.load(starts + begin + i, mask=real, other=0)
        size, middle = _block(start, tl.load(stops + begin + i, mask=real, other=1), w.dtype)
        added = tl.zeros([TILE], w.dtype)
        for first in range(0, reach(n), STEP):
            j, other = other_documents(mask, begin, first, n)
            within = other & (tl.load(starts + begin + j, mask=other, other=0) == start)
            w_j = tl.load(slopes + begin + j, mask=other, other=0.0)
            if ENTROPIC:
                w_j *= tl.load(ranks + begin + j, mask=other, other=0.0)
            added += tl.sum(tl.where(within, w_j, 0.0), 1)
        lost = added[:, None] / size
        push = rank * (lost / middle - w) if ENTROPIC else lost - w
        push = tl.where(real, scale * (push / of_list(tau, taus, w.dtype)), 0.0)
        tl.store(gradient + begin + i, push, mask=i < listed)
