"""Real-valued ranks that take a pass or two over a sorted list, on a CPU."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from directrank.kernels.batch import Batch
from directrank.kernels.compiling import compiled, inlined
from directrank.kernels.numbers import exp

#: A logarithm of nothing that stays finite in either type.
LOW = -1e37

#: Work of a document, in pairs.
WORK = 20


def laplace_ranks(values: Tensor, order: Tensor, mask: Tensor) -> Tensor:
    """See :func:`directrank.relaxations.lapsum.laplace_ranks`."""
    return _LaplaceRanks.apply(values, order, mask)


def projected_ranks(values: Tensor, order: Tensor, mask: Tensor, regularisation: str) -> Tensor:
    """See :func:`directrank.relaxations.fast_soft_rank.projected_ranks`."""
    return _ProjectedRanks.apply(values, order, mask, regularisation == "entropic")


class _LaplaceRanks(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, order: Tensor, mask: Tensor) -> Tensor:
        ctx.batch, ctx.order = _sorted(values, order, mask)
        ctx.values = ctx.batch.flat(values)
        ranks = ctx.batch.zeros()
        ctx.batch.run(_laplace, WORK * values.numel(), ctx.values, ctx.order, ranks)
        return ctx.batch.padded(ranks).masked_fill_(~mask, 1.0)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, None, None]:
        batch, gradient = ctx.batch, ctx.batch.zeros()
        outer = batch.flat(grad_output.contiguous())
        work = WORK * grad_output.numel()
        batch.run(_laplace_gradient, work, ctx.values, ctx.order, outer, gradient)
        return batch.padded(gradient), None, None


class _ProjectedRanks(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, order: Tensor, mask: Tensor, entropic: bool) -> Tensor:
        ctx.batch, ctx.order = _sorted(values, order, mask)
        ctx.entropic, ctx.ranks = entropic, ctx.batch.zeros()
        ctx.ends = np.empty(len(ctx.ranks), np.int64)
        arrays = ctx.batch.flat(values), ctx.order, entropic, ctx.ends, ctx.ranks
        ctx.batch.run(_project, WORK * values.numel(), *arrays)
        return ctx.batch.padded(ctx.ranks.copy()).masked_fill_(~mask, 1.0)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, None, None, None]:
        batch, gradient = ctx.batch, ctx.batch.zeros()
        outer = batch.flat(grad_output.contiguous())
        arrays = ctx.order, ctx.entropic, ctx.ends, ctx.ranks, outer, gradient
        batch.run(_project_gradient, WORK * grad_output.numel(), *arrays)
        return batch.padded(gradient), None, None, None


def _sorted(values: Tensor, order: Tensor, mask: Tensor) -> tuple[Batch, np.ndarray]:
    """The lists of a batch, and the ``order`` of each as positions from its first document on."""
    batch = Batch.of_valid(values.detach(), values.detach(), mask)
    if batch.has_holes:
        order = (mask.cumsum(1) - 1).gather(1, order)
    return batch, batch.leading(order)


@inlined
def _decays(values, place, n, decays):
    """``exp(v_p - v_{p-1})`` between neighbours of a sorted list; 0 at its first place."""
    decays[0] = LOW
    for p in range(1, n):
        decays[p] = values[place[p]] - values[place[p - 1]]
    for p in range(n):
        decays[p] = exp(decays[p])


@compiled
def _laplace(begin, end, starts, lengths, values, order, ranks):
    """Laplace ranks; ``order`` counts from each list's first document, all arrays ``[N]``."""
    decays = np.empty(lengths[begin:end].max() + 1, values.dtype)
    for b in range(begin, end):
        first, n = starts[b], lengths[b]
        place, own = order[first : first + n], ranks[first : first + n]
        _decays(values[first : first + n], place, n, decays)
        ahead, behind = 0.0, 0.0
        for p in range(n):
            ahead = decays[p] * (1 + ahead)
            own[place[p]] = p + 1 - ahead / 2
        for p in range(n - 2, -1, -1):
            behind = decays[p + 1] * (1 + behind)
            own[place[p]] += behind / 2


@compiled
def _laplace_gradient(begin, end, starts, lengths, values, order, outer, gradient):
    """The gradient by ``values`` of ``Σ_i outer_i ranks_i``.

    ``dr_i/dv_j = exp(-|v_i - v_j|) / 2``, and the sum of these over j is taken from its own.
    """
    decays = np.empty(lengths[begin:end].max() + 1, values.dtype)
    for b in range(begin, end):
        first, n = starts[b], lengths[b]
        place, given = order[first : first + n], outer[first : first + n]
        own = gradient[first : first + n]
        _decays(values[first : first + n], place, n, decays)
        near, pushed = 0.0, 0.0
        for p in range(n):
            here = given[place[p]]
            before = given[place[p - 1]] if p > 0 else 0.0
            near = decays[p] * (1 + near)
            pushed = decays[p] * (before + pushed)
            own[place[p]] = (pushed - near * here) / 2
        near, pushed = 0.0, 0.0
        for p in range(n - 2, -1, -1):
            here, before = given[place[p]], given[place[p + 1]]
            near = decays[p + 1] * (1 + near)
            pushed = decays[p + 1] * (before + pushed)
            own[place[p]] += (pushed - near * here) / 2


@inlined
def _log_of_sum(x, y):
    """``log(exp(x) + exp(y))``."""
    high, low = max(x, y), min(x, y)
    return high + math.log1p(math.exp(low - high))


@inlined
def _pool(values, place, n, entropic, ends, room):
    """Pool adjacent violators; ``ends[p]`` becomes where the block of the place p ends.

    Blocks lie on a stack, each with its end, and the sums over its values and places, or their
    logarithms, of which its level is the quotient.
    """
    end, of_values, of_places, level = room[0], room[1], room[2], room[3]
    top = -1
    for p in range(n):
        top += 1
        own = -float(values[place[p]])
        end[top] = p + 1
        if entropic:
            of_values[top], of_places[top] = own, math.log(p + 1.0)
            level[top] = own - of_places[top]
        else:
            of_values[top], of_places[top] = own - (p + 1.0), 1.0
            level[top] = of_values[top]
        while top > 0 and level[top - 1] >= level[top]:
            top -= 1
            end[top] = p + 1
            if entropic:
                of_values[top] = _log_of_sum(of_values[top], of_values[top + 1])
                of_places[top] = _log_of_sum(of_places[top], of_places[top + 1])
                level[top] = of_values[top] - of_places[top]
            else:
                of_values[top] += of_values[top + 1]
                of_places[top] += of_places[top + 1]
                level[top] = of_values[top] / of_places[top]
    begin = 0
    for block in range(top + 1):
        ends[begin : int(end[block])] = int(end[block])
        begin = int(end[block])


@compiled
def _project(begin, end, starts, lengths, values, order, entropic, ends, ranks):
    """Projected ranks, and where the block of each place ends; all arrays ``[N]``.

    ``order`` and ``ends`` count from each list's first document.
    """
    room = np.empty((4, lengths[begin:end].max() + 1), np.float64)
    for b in range(begin, end):
        first, n = starts[b], lengths[b]
        place, own = order[first : first + n], ranks[first : first + n]
        v, last = values[first : first + n], ends[first : first + n]
        _pool(v, place, n, entropic, last, room)
        start = 0
        while start < n:
            stop = last[start]
            count = stop - start
            middle, least = (start + 1 + stop) / 2, float(v[place[stop - 1]])
            total = 0.0
            for p in range(start, stop):
                apart = v[place[p]] - least
                total += math.exp(-apart) if entropic else apart
            for p in range(start, stop):
                apart = v[place[p]] - least
                if entropic:
                    own[place[p]] = math.exp(-apart) * (count * middle / total)
                else:
                    own[place[p]] = middle + (total / count - apart)
            start = stop


@compiled
def _project_gradient(begin, end, starts, lengths, order, entropic, ends, ranks, outer, gradient):
    """The gradient by the values of ``Σ_i outer_i ranks_i``: blocks lose their (weighted) mean."""
    for b in range(begin, end):
        first, n = starts[b], lengths[b]
        place, last = order[first : first + n], ends[first : first + n]
        given, own = outer[first : first + n], gradient[first : first + n]
        r = ranks[first : first + n]
        start = 0
        while start < n:
            stop = last[start]
            total = 0.0
            for p in range(start, stop):
                total += given[place[p]] * (r[place[p]] if entropic else 1.0)
            if entropic:
                mean = total / ((stop - start) * (start + 1 + stop) / 2)
            else:
                mean = total / (stop - start)
            for p in range(start, stop):
                lost = mean - given[place[p]]
                own[place[p]] = lost * r[place[p]] if entropic else lost
            start = stop
