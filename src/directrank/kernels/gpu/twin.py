"""Metrics at exact ranks with a twin-sigmoid gradient, on a GPU.

Places are counted over pairs, ties by a drawn number, so nothing is sorted. As in
:class:`directrank.relaxations.placed.PlacedRanking`, values are those of the order, and the rank of
the document at place p enters as ``p / r``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from directrank.kernels.gpu.lists import (
    STEP,
    TILE,
    DeviceLists,
    add_up,
    are_real,
    bounds,
    not_finite,
    other_documents,
    own_documents,
    reach,
)
from directrank.kernels.gpu.pairs import are_ahead, discount_at, falling_places, gained
from directrank.kernels.gpu.ranks import loss_of_ranks, through_ranks
from directrank.lists.conventions import DISCOUNTS, gains
from directrank.lists.draws import Source, uniform
from directrank.lists.flat import Lists
from directrank.lists.gradient import once_differentiable
from directrank.lists.inputs import check_powers, check_scale, one_of

TYPES = {"type1": 1, "type2": 2, "type3": 3}


class _Parts:
    """Lists in an order of their documents, and what a metric's kernel computes of them.

    Attributes:
        lists: scores and labels.
        noise: a number per document, which orders ties; None if they share a rank.
        best, sums: parts ``[B, tiles]`` of two sums, of which the metric is the quotient.
        slopes: the derivative of a list's sum by the rank of each document, ``[B, L]``.
    """

    def __init__(self, lists: DeviceLists, noise: Tensor | None) -> None:
        self.lists = lists
        self.noise = noise
        self.best, self.sums = lists.per_list(lists.tiles), lists.per_list(lists.tiles)
        self.slopes = lists.per_document()

    def run(self, kernel: Any, *arguments: object, **constants: object) -> None:
        """Run a metric's kernel with its own arguments."""
        lists = self.lists
        lists.run(kernel, lists.tiles, lists.scores, self.noise, *arguments, lists.tiles,
                  self.best, self.sums, self.slopes, **constants)  # fmt: skip


def _at_exact_ranks(metric: Callable[..., Any]) -> Callable[..., Tensor]:
    """Make a kernel of a ``metric`` that computes :class:`_Parts` with options of its own."""

    @wraps(metric)
    def loss(
        scores: Tensor,
        labels: Tensor,
        mask: Lists | None,
        generator: Source,
        *,
        gradient: str,
        alpha_b: float,
        break_ties: bool,
        **options: Any,
    ) -> Tensor:
        one_of(gradient, tuple(TYPES), "gradient")
        lists = DeviceLists(scores, labels, mask)
        noise = lists.drawn(uniform, generator, torch.float32) if break_ties else None
        parts = _Parts(lists, noise)
        if metric(parts, **options) is NotImplemented:
            return NotImplemented
        kind = TYPES[gradient]
        return loss_of_ranks(
            lists, float(alpha_b), parts.best, parts.sums, parts.slopes, lists.labels, kind
        )

    return loss


@_at_exact_ranks
def ndcg(parts: _Parts, *, k: int | None, gain: str, discount: str) -> None:
    """Minus NDCG at exact ranks; see :func:`directrank.losses.twin_ndcg`."""
    one_of(discount, DISCOUNTS, "discount")
    parts.run(_dcg, gains(parts.lists.labels, gain), k, LETOR=discount == "letor")


@_at_exact_ranks
def precision(parts: _Parts, *, k: int | None, min_label: float) -> None:
    """Minus precision, places over ranks; see :func:`directrank.losses.twin_precision`."""
    parts.run(_count, parts.lists.labels, float(min_label), k)


@_at_exact_ranks
def average_precision(parts: _Parts, *, k: int | None, denominator: str, min_label: float) -> Any:
    """Minus average precision, places over ranks; see :func:`directrank.losses.twin_ap`."""
    if denominator != "R":
        return NotImplemented
    lists = parts.lists
    places = lists.per_document(torch.int32)
    lists.run(_places, lists.tiles, lists.scores, parts.noise, places)
    parts.run(_precisions, lists.labels, places, float(min_label), k)
    return None


@_at_exact_ranks
def nerr(parts: _Parts, *, k: int | None, max_label: float | None) -> None:
    """Minus normalised ERR at exact ranks; see :func:`directrank.losses.twin_nerr`."""
    if max_label is not None:
        check_scale(max_label)
        check_powers(parts.lists.labels.dtype)
    largest = None if max_label is None else float(max_label)
    parts.run(_cascades, parts.lists.labels, k, LARGEST=largest)


def twin_ranks(
    scores: Tensor, exact: Tensor, labels: Tensor, mask: Tensor, gradient: str, alpha_b: float
) -> Tensor:
    """See :func:`directrank.relaxations.twin.twin_ranks`."""
    lists = DeviceLists(scores, labels, mask)
    known = scores.detach()
    exact = exact + torch.where(mask, known - known, 0.0)  # ranks forget what is not finite
    return _TwinRanks.apply(scores, exact, lists, TYPES[gradient], float(alpha_b))


class _TwinRanks(torch.autograd.Function):
    """The exact ranks, with the gradient of the chosen type."""

    @staticmethod
    def forward(
        ctx: Any, scores: Tensor, exact: Tensor, lists: DeviceLists, kind: int, alpha: float
    ) -> Tensor:
        ctx.settings = lists, kind, alpha
        ctx.save_for_backward(scores)
        return exact

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        lists, kind, alpha = ctx.settings
        gradient = through_ranks(lists, alpha, grad_output, lists.labels, kind)
        return gradient, None, None, None, None


@triton.jit
def _exact_ranks(mask, scores, noise, begin, n, i, s, place):
    """The ranks of a tile's documents: their places, or without noise the mean place of ties."""
    rank = place.to(s.dtype)
    if noise is None:
        above, not_below = tl.zeros([TILE], tl.int32), tl.zeros([TILE], tl.int32)
        for first in range(0, reach(n), STEP):
            j, other = other_documents(mask, begin, first, n)
            s_j = tl.load(scores + begin + j, mask=other, other=0.0)
            above += tl.sum((other & (s_j > s)).to(tl.int32), 1)
            not_below += tl.sum((other & (s_j >= s)).to(tl.int32), 1)
        rank = 0.5 * (1 + above + not_below).to(s.dtype)[:, None]
    return rank


@triton.jit
def _ranked(mask, scores, noise, begin, n, i, s, k):
    """Places and ranks of a tile's documents, and whether they are within the cut-off."""
    place = falling_places(mask, scores, noise, begin, n, i, s)
    rank = _exact_ranks(mask, scores, noise, begin, n, i, s, place)
    within = are_real(mask, begin, i, n)
    if k is not None:
        within &= place <= k
    return place, rank, within


@triton.jit
def _dcg(
    spans, mask, L, scores, noise, gains, k, tiles, best, dcg, slopes, LETOR: tl.constexpr
):  # fmt: skip
    """A tile's part of the largest DCG and of the DCG, ``[B, tiles]``, and the derivative of the
    latter by each rank, ``[N]``."""
    begin, n, places = bounds(spans, mask, L)
    i, real = own_documents(mask, begin, n)
    s = tl.load(scores + begin + i, mask=real, other=0.0)
    g = tl.load(gains + begin + i, mask=real, other=0.0)
    _, rank, within = _ranked(mask, scores, noise, begin, n, i, s, k)
    weight, slope = discount_at(rank, None, None, LETOR)
    ideal = falling_places(mask, gains, None, begin, n, i, g)
    add_up(best, tiles, tl.where(real, gained(g, ideal, k, LETOR), 0.0))
    add_up(dcg, tiles, tl.where(within, g * weight, 0.0) + not_finite(real, s))
    tl.store(slopes + begin + i, tl.where(within, g * slope, 0.0), mask=i < places)


@triton.jit
def _count(
    spans, mask, L, scores, noise, labels, min_label: tl.float64, k, tiles, best, number, slopes
):  # fmt: skip
    """A tile's part of the cut-off and of the number of relevant documents within it, ``[B,
    tiles]``, and the derivative of the latter by each rank, ``[N]``."""
    begin, n, places = bounds(spans, mask, L)
    i, real = own_documents(mask, begin, n)
    s = tl.load(scores + begin + i, mask=real, other=0.0)
    y = tl.load(labels + begin + i, mask=real, other=0.0)
    place, rank, within = _ranked(mask, scores, noise, begin, n, i, s, k)
    chosen = within & (y >= tl.full((), min_label, s.dtype))
    share = tl.where(chosen, place.to(s.dtype) / rank, 0.0)
    add_up(number, tiles, share + not_finite(real, s))
    tl.store(slopes + begin + i, -share / rank, mask=i < places)
    if k is None:
        add_up(best, tiles, real.to(s.dtype))
    else:
        add_up(best, tiles, tl.where(i == 0, k, 0))


@triton.jit
def _places(spans, mask, L, scores, noise, places):
    """The places ``[N]`` by descending score, from 1."""
    begin, n, width = bounds(spans, mask, L)
    i, real = own_documents(mask, begin, n)
    s = tl.load(scores + begin + i, mask=real, other=0.0)
    place = falling_places(mask, scores, noise, begin, n, i, s)
    tl.store(places + begin + i, place, mask=i < width)


@triton.jit
def _precisions(
    spans, mask, L, scores, noise, labels, places, min_label: tl.float64, k, tiles, best, sums,
    slopes,
):  # fmt: skip
    """A tile's part of the number of relevant documents and of the sum of their precisions,
    ``[B, tiles]``, and the derivative of the latter by each rank, ``[N]``."""
    begin, n, width = bounds(spans, mask, L)
    i, real = own_documents(mask, begin, n)
    s = tl.load(scores + begin + i, mask=real, other=0.0)
    y = tl.load(labels + begin + i, mask=real, other=0.0)
    place = tl.load(places + begin + i, mask=real, other=1)
    dtype = s.dtype
    least = tl.full((), min_label, dtype)
    behind = tl.zeros([TILE], dtype)
    for first in range(0, reach(n), STEP):
        j, other = other_documents(mask, begin, first, n)
        y_j = tl.load(labels + begin + j, mask=other, other=0.0)
        place_j = tl.load(places + begin + j, mask=other, other=1)
        counted = other & (y_j >= least) & (place_j >= place)
        if k is not None:
            counted &= place_j <= k
        behind += tl.sum(tl.where(counted, 1.0 / place_j.to(dtype), 0.0), 1)
    rank = _exact_ranks(mask, scores, noise, begin, n, i, s, place)
    chosen = real & (y >= least)
    add_up(best, tiles, chosen.to(dtype))
    if k is not None:
        chosen &= place <= k
    share = tl.where(chosen, place.to(dtype) / rank * behind[:, None], 0.0)
    add_up(sums, tiles, share + not_finite(real, s))
    tl.store(slopes + begin + i, -share / rank, mask=i < width)


@triton.jit
def _stops(labels, top):
    """The probability that a document satisfies the user, by labels up to ``top``."""
    return tl.exp2(labels - top) - tl.exp2(-top)


@triton.jit
def _reached(mask, values, noise, labels, top, begin, n, i, own):
    """The probability that the documents before each of a tile do not satisfy, ``[TILE, 1]``."""
    logs = tl.zeros([TILE], own.dtype)
    for first in range(0, reach(n), STEP):
        j, ahead = are_ahead(mask, values, noise, begin, n, first, i, own)
        y_j = tl.load(labels + begin + j, mask=j < n, other=0.0)
        logs += tl.sum(tl.where(ahead, tl.log(1.0 - _stops(y_j, top)), 0.0), 1)
    return tl.exp(logs)[:, None]


@triton.jit
def _cascades(
    spans, mask, L, scores, noise, labels, k, tiles, best, sums, slopes, LARGEST: tl.constexpr
):  # fmt: skip
    """A tile's part of the largest ERR and of ERR, ``[B, tiles]``, and the derivative of the latter
    by each rank, ``[N]``."""
    begin, n, places = bounds(spans, mask, L)
    i, real = own_documents(mask, begin, n)
    s = tl.load(scores + begin + i, mask=real, other=0.0)
    y = tl.load(labels + begin + i, mask=real, other=0.0)
    top = tl.full((), 0.0, s.dtype)
    if LARGEST is None:
        for first in range(0, reach(n), STEP):
            j, other = other_documents(mask, begin, first, n)
            y_j = tl.load(labels + begin + j, mask=other, other=0.0)
            top = tl.maximum(top, tl.max(tl.max(y_j, 1), 0))
    else:
        top = tl.full((), LARGEST, s.dtype)
    stop = _stops(y, top)
    _, rank, within = _ranked(mask, scores, noise, begin, n, i, s, k)
    term = stop * _reached(mask, scores, noise, labels, top, begin, n, i, s) / rank
    term = tl.where(within, term, 0.0)
    add_up(sums, tiles, term + not_finite(real, s))
    tl.store(slopes + begin + i, -term / rank, mask=i < places)
    ideal, _, within = _ranked(mask, labels, None, begin, n, i, y, k)
    term = stop * _reached(mask, labels, None, labels, top, begin, n, i, y) / ideal.to(s.dtype)
    add_up(best, tiles, tl.where(within, term, 0.0))
