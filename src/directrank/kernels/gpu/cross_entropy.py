"""Cross entropies of the scores' softmax on a GPU: ListNet and XE-NDCG.

A program computes a list, in three passes.
"""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

from directrank.kernels.gpu.lists import DeviceLists, are_real, bounds
from directrank.kernels.gpu.pairs import LOW
from directrank.lists.conventions import powers
from directrank.lists.draws import Source, uniform
from directrank.lists.flat import Lists

#: Documents that a program reads at a time.
BLOCK = tl.constexpr(256)


def listnet(
    scores: Tensor,
    labels: Tensor,
    mask: Lists | None,
    *,
    document_weights: Tensor | None,
) -> Tensor:
    """See :func:`directrank.losses.listnet`."""
    lists = DeviceLists(scores, labels, mask)
    return _loss(lists, lists.labels, None, document_weights)


def xe_ndcg(
    scores: Tensor,
    labels: Tensor,
    mask: Lists | None,
    *,
    document_weights: Tensor | None,
    generator: Source,
) -> Tensor:
    """See :func:`directrank.losses.xe_ndcg`."""
    lists = DeviceLists(scores, labels, mask)
    gamma = lists.drawn(uniform, generator)
    return _loss(lists, powers(lists.labels), gamma, document_weights)


def _loss(
    lists: DeviceLists, targets: Tensor, gamma: Tensor | None, weights: Tensor | None
) -> Tensor:
    if weights is not None:
        weights = weights.detach().to(lists.scores).contiguous()
    value = lists.per_list()
    gradient = lists.per_document() if lists.gradient_needed else None
    lists.run(_cross_entropy, 1, lists.scores, targets, gamma, weights, value, gradient)
    return lists.loss(value, gradient)


@triton.jit
def _cross_entropy(spans, mask, L, scores, targets, gamma, weights, value, gradient):
    """``-Σ_i t_i w_i log softmax(s)_i / Σ_i t_i``, ``[B]``, and its gradient ``[N]``.

    The target t is ``targets - gamma``, or without gamma the exponential of ``targets``.
    """
    begin, n, places = bounds(spans, mask, L)
    dtype = scores.dtype.element_ty
    top, top_target = tl.full((), LOW, dtype), tl.full((), LOW, dtype)
    for first in range(0, n, BLOCK):
        i = first + tl.arange(0, BLOCK)
        real = are_real(mask, begin, i, n)
        top = tl.maximum(top, tl.max(tl.load(scores + begin + i, mask=real, other=LOW), 0))
        if gamma is None:
            high = tl.max(tl.load(targets + begin + i, mask=real, other=LOW), 0)
            top_target = tl.maximum(top_target, high)
    zero = tl.full((), 0.0, dtype)
    exponentials, total, weighted, met = zero, zero, zero, zero
    for first in range(0, n, BLOCK):
        i = first + tl.arange(0, BLOCK)
        real = are_real(mask, begin, i, n)
        x = tl.load(scores + begin + i, mask=real, other=0.0) - top
        target = _target(targets, gamma, top_target, begin + i, real)
        total += tl.sum(target, 0)
        if weights is not None:
            target *= tl.load(weights + begin + i, mask=real, other=0.0)
        exponentials += tl.sum(tl.where(real, tl.exp(x), 0.0), 0)
        weighted += tl.sum(target, 0)
        met += tl.sum(tl.where(real, target * x, 0.0), 0)
    some = total > 0
    scale = tl.where(some, 1.0 / total, 0.0)
    loss = tl.log(exponentials) * weighted - met
    tl.store(value + tl.program_id(0), tl.where(some, scale * loss, 0.0))
    if gradient is not None:
        chance = tl.where(some, weighted / exponentials, 0.0)
        for first in range(0, places, BLOCK):
            i = first + tl.arange(0, BLOCK)
            real = are_real(mask, begin, i, n)
            x = tl.load(scores + begin + i, mask=real, other=0.0) - top
            target = _target(targets, gamma, top_target, begin + i, real)
            if weights is not None:
                target *= tl.load(weights + begin + i, mask=real, other=0.0)
            slope = scale * (chance * tl.exp(x) - target)
            tl.store(gradient + begin + i, tl.where(real, slope, 0.0), mask=i < places)


@triton.jit
def _target(targets, gamma, top, places, real):
    """The target at some places, 0 where there is no document."""
    given = tl.load(targets + places, mask=real, other=0.0)
    if gamma is None:
        target = tl.where(real, tl.exp(given - top), 0.0)
    else:
        target = given - tl.load(gamma + places, mask=real, other=0.0)
    return target
