"""Real-valued ranks that take a pass or two over a sorted list, on a CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from directrank.kernels.batch import Batch
from directrank.kernels.compiling import compiled
from directrank.kernels.soft_rank_parts import (
    laplace,
    laplace_gradient,
    neighbours,
    project,
    project_gradient,
)
from directrank.lists.flat import Lists
from directrank.lists.gradient import once_differentiable
from directrank.lists.sorting import descending_order

#: The work that a document takes, in pairs.
WORK = 12


def laplace_ranks(values: Tensor, order: Tensor, mask: Tensor) -> Tensor:
    """See :func:`directrank.relaxations.lapsum.laplace_ranks`."""
    return _LaplaceRanks.apply(values, order, mask)


def projected_ranks(values: Tensor, order: Tensor, mask: Tensor, regularisation: str) -> Tensor:
    """See :func:`directrank.relaxations.fast_soft_rank.projected_ranks`."""
    return _ProjectedRanks.apply(values, order, mask, regularisation == "entropic")


class _LaplaceRanks(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, order: Tensor, mask: Tensor) -> Tensor:
        ctx.batch = Batch.of_valid(values.detach(), values.detach(), mask)
        ctx.order = ctx.batch.places(order)
        ctx.values = ctx.batch.flat(values)
        ctx.save_for_backward(values)
        ranks = ctx.batch.zeros()
        ctx.batch.run(_laplace, WORK * ctx.batch.documents, ctx.values, ctx.order, ranks)
        return ctx.batch.padded(ranks).masked_fill_(~mask, 1.0)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, None, None]:
        batch, gradient = ctx.batch, ctx.batch.zeros()
        outer = batch.flat(grad_output.contiguous())
        work = WORK * batch.documents
        batch.run(_laplace_gradient, work, ctx.values, ctx.order, outer, gradient)
        return batch.padded(gradient), None, None


class _ProjectedRanks(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, order: Tensor, mask: Tensor, entropic: bool) -> Tensor:
        ctx.batch = Batch.of_valid(values.detach(), values.detach(), mask)
        ctx.order = ctx.batch.places(order)
        ctx.entropic, ctx.ranks = entropic, ctx.batch.zeros()
        ctx.save_for_backward(values)
        ctx.ends = np.empty(len(ctx.ranks), np.int64)
        arrays = ctx.batch.flat(values), ctx.order, entropic, ctx.ends, ctx.ranks
        ctx.batch.run(_project, WORK * ctx.batch.documents, *arrays)
        return ctx.batch.padded(ctx.ranks.copy()).masked_fill_(~mask, 1.0)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, None, None, None]:
        batch, gradient = ctx.batch, ctx.batch.zeros()
        outer = batch.flat(grad_output.contiguous())
        arrays = ctx.order, ctx.entropic, ctx.ends, ctx.ranks, outer, gradient
        batch.run(_project_gradient, WORK * batch.documents, *arrays)
        return batch.padded(gradient), None, None, None


def sorted_lists(batch: Batch, values: Tensor, mask: Lists | None) -> np.ndarray:
    """Flat positions of each list's documents by descending value, counted from its first."""
    everyone = torch.ones_like(values, dtype=torch.bool) if mask is None else mask
    return batch.places(descending_order(values, everyone))


@compiled
def _laplace(begin, end, starts, lengths, values, order, ranks):
    """Laplace ranks; ``order`` counts from each list's first document, all arrays ``[N]``."""
    decays = np.empty(lengths[begin:end].max() + 1, values.dtype)
    for b in range(begin, end):
        first, n = starts[b], lengths[b]
        last = first + n
        laplace(values[first:last], order[first:last], n, decays, ranks[first:last])


@compiled
def _laplace_gradient(begin, end, starts, lengths, values, order, outer, gradient):
    """The gradient of ``Σ_i outer_i ranks_i`` with respect to ``values``."""
    decays = np.empty(lengths[begin:end].max() + 1, values.dtype)
    for b in range(begin, end):
        first, n = starts[b], lengths[b]
        last = first + n
        place = order[first:last]
        neighbours(values[first:last], place, n, decays)
        laplace_gradient(place, n, decays, outer[first:last], gradient[first:last])


@compiled
def _project(begin, end, starts, lengths, values, order, entropic, ends, ranks):
    """Projected ranks, and the end of each place's block; all arrays ``[N]``.

    ``order`` and ``ends`` count from each list's first document.
    """
    room = np.empty((3, lengths[begin:end].max() + 1), np.float64)
    for b in range(begin, end):
        first, n = starts[b], lengths[b]
        last = first + n
        place, stops = order[first:last], ends[first:last]
        project(values[first:last], place, n, entropic, stops, room, ranks[first:last])


@compiled
def _project_gradient(begin, end, starts, lengths, order, entropic, ends, ranks, outer, gradient):
    """The gradient of ``Σ_i outer_i ranks_i`` with respect to the values."""
    for b in range(begin, end):
        first, n = starts[b], lengths[b]
        last = first + n
        place, stops = order[first:last], ends[first:last]
        given, own = outer[first:last], gradient[first:last]
        project_gradient(place, n, entropic, stops, ranks[first:last], given, own)
