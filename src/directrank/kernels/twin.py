"""Metrics at exact ranks with a twin-sigmoid gradient on a CPU.

One pass over a sorted list gives the value and the derivative of the loss by the rank of each
document, to the last bit as PyTorch derives it from :mod:`directrank.relaxations.placed`. Another
one takes these derivatives to the scores.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, wraps
from typing import Any

import numpy as np
import torch
from torch import Tensor

from directrank.kernels.batch import Batch, array
from directrank.kernels.compiling import compiled, compiled_as_written, inlined
from directrank.kernels.numbers import like, slope_of
from directrank.kernels.pairs import (
    bounded_power,
    fill_up,
    front_first,
    room_for,
    sigmoid_gradient,
    split_exponentials,
)
from directrank.lists.conventions import cascade, gains, stopping
from directrank.lists.draws import Source, uniform
from directrank.lists.flat import Lists
from directrank.lists.gradient import once_differentiable
from directrank.lists.inputs import checked, one_of

TYPES = {"type1": 1, "type2": 2, "type3": 3}

#: The work of sorting a document, in pairs.
SORTING = 20


def _at_exact_ranks(metric: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Make a kernel of a ``metric`` of :class:`_Sorted` lists with options of its own."""

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
        if not break_ties:
            return NotImplemented
        one_of(gradient, tuple(TYPES), "gradient")
        scores, labels, mask = checked(scores, labels, mask)
        batch = Batch.of_valid(scores, labels, mask)
        lists = _Sorted(labels, mask, batch, generator, TYPES[gradient], float(alpha_b))
        return metric(lists, **options)

    return loss


@_at_exact_ranks
def ndcg(lists: _Sorted, *, k: int | None, gain: str, discount: str) -> Tensor:
    """Minus NDCG at exact ranks; see :func:`directrank.losses.twin_ndcg`."""
    if discount != "log2":
        return NotImplemented
    values = gains(lists.labels, gain)
    weights, *slope = _log2_discounts(_rounded(values.shape[1]), values.dtype)
    top = lists.largest(values, k)
    best = (top * torch.from_numpy(weights[: top.shape[1]])).sum(1)
    return lists.loss(_weighed, k, slope, lists.batch.flat(values), weights, best.numpy())


@_at_exact_ranks
def precision(lists: _Sorted, *, k: int | None, min_label: float) -> Tensor:
    """Minus precision, places over ranks; see :func:`directrank.losses.twin_precision`."""
    ones, inverse = _inverse_places(_rounded(lists.labels.shape[1]), lists.labels.dtype)
    chosen = (lists.batch.flat(lists.labels) >= min_label).astype(ones.dtype)
    best = np.maximum(lists.batch.lengths, 1) if k is None else np.full(len(lists.labels), k)
    return lists.loss(_weighed, k, (inverse, ones), chosen, ones, best.astype(ones.dtype))


@_at_exact_ranks
def average_precision(
    lists: _Sorted, *, k: int | None, denominator: str, min_label: float
) -> Tensor:
    """Minus average precision, places over ranks; see :func:`directrank.losses.twin_ap`."""
    if denominator != "R":
        return NotImplemented
    ones, inverse = _inverse_places(_rounded(lists.labels.shape[1]), lists.labels.dtype)
    chosen = lists.batch.flat(lists.labels) >= min_label
    return lists.loss(_averaged, k, (inverse, ones), chosen, inverse, lists.batch.per_list())


@_at_exact_ranks
def nerr(lists: _Sorted, *, k: int | None, max_label: float | None) -> Tensor:
    """Minus normalised ERR at exact ranks; see :func:`directrank.losses.twin_nerr`."""
    stops = stopping(lists.labels, lists.mask, max_label)
    ones, _ = _inverse_places(_rounded(stops.shape[1]), stops.dtype)
    best = cascade(lists.largest(stops, k)).numpy()
    return lists.loss(_cascaded, k, (ones, ones), lists.batch.flat(stops), ones, best)


def order_with_noise(scores: Tensor, mask: Tensor, noise: Tensor) -> Tensor:
    """See :func:`directrank.relaxations.twin.order_with_noise`."""
    batch = Batch.of_valid(scores, noise, mask)
    if batch.has_holes:
        return NotImplemented
    B, L = batch.shape
    order = _order(batch, noise, np.tile(np.arange(L), B))  # padding stays in its place
    return torch.from_numpy(order.reshape(B, L))


def _order(batch: Batch, noise: Tensor, order: np.ndarray | None = None) -> np.ndarray:
    """Positions by descending score and then noise, from each list's first; ``order``, if given."""
    scores, drawn = batch.flat(batch.scores), batch.flat(noise)
    if order is None:
        order = np.empty(len(drawn), np.int64)
    batch.run(_sort, SORTING * batch.documents, scores, drawn, order)
    return order


def twin_ranks(
    scores: Tensor, exact: Tensor, labels: Tensor, mask: Tensor, gradient: str, alpha_b: float
) -> Tensor:
    """See :func:`directrank.relaxations.twin.twin_ranks`."""
    batch = Batch.of_valid(scores, labels, mask)
    return _TwinRanks.apply(batch.scores, exact, batch, TYPES[gradient], float(alpha_b))


class _TwinRanks(torch.autograd.Function):
    """The exact ranks, with the gradient of the chosen type."""

    @staticmethod
    def forward(ctx, scores: Tensor, exact: Tensor, batch: Batch, kind: int, alpha: float):
        ctx.settings = batch, kind, alpha
        ctx.save_for_backward(scores)
        return exact.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output: Tensor):
        batch, kind, alpha = ctx.settings
        return _gradient(batch, batch.flat(grad_output), kind, alpha), None, None, None, None


def _gradient(batch: Batch, outer: np.ndarray, kind: int, alpha: float) -> Tensor:
    """``Σ_i outer_i dr_i/ds``, ``[B, L]``, for ranks r and a flat ``outer``."""
    gradient = batch.zeros()
    scores, labels = batch.flat(batch.scores), batch.flat(batch.labels)
    batch.run(_twin_gradient, batch.pairs, scores, labels, outer, alpha, kind, gradient)
    return batch.padded(gradient)


@dataclass(frozen=True)
class _Sorted:
    """Lists that are sorted by their scores.

    Attributes:
        labels, mask: ``[B, L]``; labels are 0 where masked.
        batch: the scores, and where each list is in flat arrays.
        generator: the random stream for ties, from which nothing is drawn until the order is used.
        kind, alpha: the number of the type of the gradient, and its steepness.
    """

    labels: Tensor
    mask: Tensor
    batch: Batch
    generator: Source
    kind: int
    alpha: float

    @cached_property
    def order(self) -> np.ndarray:
        """Flat positions by descending score, ties in random order, from each list's first."""
        noise = uniform(self.batch.scores, self.mask, self.generator, torch.float32)
        return _order(self.batch, noise)

    def largest(self, values: Tensor, k: int | None) -> Tensor:
        """The k largest ``values [B, L]`` of each list, in their order; 0 behind the last."""
        B, L = values.shape
        top = np.zeros((B, L if k is None else min(k, L)), self.batch.per_list().dtype)
        self.batch.run(_largest, SORTING * self.batch.documents, self.batch.flat(values), top)
        return torch.from_numpy(top)

    def loss(
        self,
        kernel: Callable[..., None],
        k: int | None,
        slope: Sequence[np.ndarray],
        values: np.ndarray,
        weights: np.ndarray,
        best: np.ndarray,
    ) -> Tensor:
        """Minus the sum of each list that a ``kernel`` computes, divided by ``best [B]``.

        The derivative of the sum by a document's rank is minus its ``share``, which the kernel also
        gives, times ``slope[0] / slope[1]`` at its place, each at least ``[L]``. The other
        arguments are those of the kernel.
        """
        batch = self.batch
        result, share = batch.per_list(), batch.zeros()
        cut = batch.shape[1] if k is None else k
        given = self.order, cut, values, weights, best, result, share
        batch.run(kernel, batch.documents, *given)
        value = torch.from_numpy(result)
        if not batch.gradient_needed:
            return value
        return _Loss.apply(batch.scores, value, self, best, share, slope)


class _Loss(torch.autograd.Function):
    """The value of a loss with its gradient."""

    @staticmethod
    def forward(ctx, scores: Tensor, value: Tensor, *given: Any) -> Tensor:
        ctx.given = given
        ctx.save_for_backward(scores)
        return value

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output: Tensor):
        lists, best, share, slope = ctx.given
        outer = np.empty_like(share)
        given = lists.order, array(grad_output), best, share, *slope, outer
        lists.batch.run(_by_rank, lists.batch.documents, *given)
        gradient = _gradient(lists.batch, outer, lists.kind, lists.alpha)
        return gradient, None, None, None, None, None


def _rounded(length: int) -> int:
    """A power of two above ``length``, so that few tables serve lists of all lengths."""
    return 1 << length.bit_length()


@lru_cache(maxsize=64)
def _log2_discounts(length: int, dtype: torch.dtype) -> tuple[np.ndarray, ...]:
    """Discounts w of the places p = 1, 2, …, ``w²``, and ``(1 + p) log 2``: ``[length]``."""
    following = 1 + torch.arange(1, length + 1, dtype=dtype, device="cpu")
    weight = torch.log2(following).reciprocal()
    return weight.numpy(), (weight * weight).numpy(), (following * math.log(2)).numpy()


@lru_cache(maxsize=64)
def _inverse_places(length: int, dtype: torch.dtype) -> tuple[np.ndarray, np.ndarray]:
    """Ones, and the inverse of the places 1, 2, …: ``[length]``."""
    places = torch.arange(1, length + 1, dtype=dtype, device="cpu").numpy()
    return np.ones_like(places), 1 / places


@inlined
def sort_falling(values, noise, order, spare):
    """``order`` of descending ``values``, then of descending ``noise``, then of position.

    The first two are ``[n]``, the others at least; ``spare`` is working space. Neighbouring runs
    are merged, because numba's own sorts take twenty seconds to compile.
    """
    n = len(values)
    for i in range(n):
        order[i] = i
    width = 1
    while width < n:
        for begin in range(0, n - width, 2 * width):
            middle, end = begin + width, min(begin + 2 * width, n)
            for p in range(begin, middle):
                spare[p] = order[p]
            i, j, p = begin, middle, begin
            while i < middle and j < end:
                before, after = spare[i], order[j]
                equal = values[after] == values[before]
                if values[after] > values[before] or (equal and noise[after] > noise[before]):
                    order[p] = after
                    j += 1
                else:
                    order[p] = before
                    i += 1
                p += 1
            for left in range(i, middle):
                order[p + left - i] = spare[left]
        width *= 2


@compiled_as_written
def _sort(begin, end, starts, lengths, scores, noise, order):
    """``order [N]`` of each list by :func:`sort_falling`."""
    spare = np.empty(lengths[begin:end].max(), np.int64)
    for b in range(begin, end):
        first, last = starts[b], starts[b] + lengths[b]
        sort_falling(scores[first:last], noise[first:last], order[first:last], spare)


@compiled_as_written
def _largest(begin, end, starts, lengths, values, top):
    """The largest ``values`` of each list in descending order."""
    room = np.empty((2, lengths[begin:end].max()), np.int64)
    for b in range(begin, end):
        own = values[starts[b] : starts[b] + lengths[b]]
        sort_falling(own, own, room[0], room[1])
        for p in range(min(len(own), top.shape[1])):
            top[b, p] = own[room[0, p]]


@compiled_as_written
def _weighed(begin, end, starts, lengths, order, cut, values, weights, best, result, share):
    """``Σ_p values_p weights_p`` over places p to the ``cut``; the share is the value."""
    for b in range(begin, end):
        first, total = starts[b], 0.0
        for p in range(min(lengths[b], cut)):
            i = first + order[first + p]
            share[i] = values[i]
            total += values[i] * weights[p]
        if best[b] <= 0:
            best[b] = np.inf
        result[b] = -(total / best[b])


@compiled_as_written
def _averaged(begin, end, starts, lengths, order, cut, chosen, inverse, best, result, share):
    """``Σ_p chosen_p Σ_{q ≥ p} chosen_q / q`` to the ``cut``; the share is the inner sum.

    ``best`` becomes the number of chosen documents.
    """
    for b in range(begin, end):
        first, n, total, behind = starts[b], lengths[b], 0.0, 0.0
        for p in range(min(n, cut) - 1, -1, -1):
            i = first + order[first + p]
            if chosen[i]:
                behind += inverse[p]
                share[i] = behind
                total += share[i]
        number = np.sum(chosen[first:][:n])
        best[b] = number if number > 0 else np.inf
        result[b] = -(total / best[b])


@compiled_as_written
def _cascaded(begin, end, starts, lengths, order, cut, stops, ones, best, result, share):
    """``Σ_p stops_p / p · Π_{q < p} (1 - stops_q)`` to the ``cut``; shares are terms over p."""
    one = ones[0]
    for b in range(begin, end):
        first, total, reached = starts[b], 0.0, 1.0
        for p in range(min(lengths[b], cut)):
            i, place = first + order[first + p], stops.dtype.type(p + 1)
            term = stops[i] * stops.dtype.type(reached) / place
            share[i] = term / place
            total += term
            reached *= one - stops[i]
        if best[b] <= 0:
            best[b] = np.inf
        result[b] = -(total / best[b])


@compiled_as_written
def _by_rank(begin, end, starts, lengths, order, outer, best, share, above, below, by_rank):
    """The derivative of losses by ranks, ``by_rank [N]``, from that ``outer`` by their values."""
    for b in range(begin, end):
        first, factor = starts[b], outer[b] / best[b]
        for p in range(lengths[b]):
            i = first + order[first + p]
            by_rank[i] = factor * share[i] * above[p] / below[p]


@compiled
def _twin_gradient(begin, end, starts, lengths, scores, labels, outer, alpha, kind, gradient):
    """``Σ_i outer_i dr_i/ds`` for twin-sigmoid ranks r of type ``kind``; all arrays ``[N]``."""
    L = lengths[begin:end].max()
    place = np.empty(L + 1, np.int64)
    room = np.empty((5, room_for(L)), scores.dtype)
    mantissa, power, weights, push, y = room[0], room[1], room[2], room[3], room[4]
    for b in range(begin, end):
        first, n = starts[b], lengths[b]
        n_front = front_first(outer[first : first + n], place)
        split_exponentials(scores[first : first + n], place, n, alpha, mantissa, power)
        for i in range(n):
            weights[i] = alpha * outer[first + place[i]]
            y[i] = labels[first + place[i]]
        if kind == 1:
            sigmoid_gradient(mantissa, power, weights, n_front, n, push)
        else:
            # Documents that fill the list up are behind all others and below every label, where
            # both types vanish.
            whole = fill_up(n, mantissa, power, -1)
            y[n:] = -np.inf
            push[:] = 0
            for i in range(n_front):
                _twin_row(mantissa, power, y, i, whole, weights[i], kind, push)
        for i in range(n):
            gradient[first + place[i]] = push[i]


@inlined
def _twin_row(mantissa, power, y, i, n, weight, kind, push):
    """The contribution of document i to the gradient under type 2 or 3."""
    one, zero = like(mantissa[0], 1.0), like(mantissa[0], 0.0)
    inverse, own, label = one / mantissa[i], power[i], y[i]
    total = zero
    for j in range(n):
        e = inverse * mantissa[j] * bounded_power(power[j] - own)  # 1 / (1 + e) is Yu2020's b
        s = one / (one + e)
        if kind == 2:
            up, down = slope_of(e, s), slope_of(e, s)
        else:
            up, down = e * s + e * s, s + s
        force = weight * (up if label > y[j] else (-down if label < y[j] else zero))
        push[j] += force
        total += force
    push[i] -= total
