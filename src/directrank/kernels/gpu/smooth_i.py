"""NDCG under SmoothI's rank indicators on a GPU: a program goes through the ranks of a list."""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

from directrank.kernels.gpu.lists import DeviceLists, are_real, bounds, of_list
from directrank.kernels.gpu.pairs import discount, precede
from directrank.lists.conventions import DISCOUNTS, gains
from directrank.lists.flat import Lists
from directrank.lists.inputs import one_of

#: Lists with more documents than this are left to the formula.
LONGEST = 16384

#: Documents with which all others are compared at a time.
OTHERS = tl.constexpr(4)


def ndcg(
    scores: Tensor,
    labels: Tensor,
    mask: Lists | None,
    *,
    k: int | None,
    gain: str,
    discount: str,
    alpha: float | Tensor,
    delta: float,
    stop_gradient: bool,
) -> Tensor:
    """Minus NDCG under rank indicators; see :func:`directrank.losses.smooth_ndcg`.

    It is used only if the gradient treats the product of factors as a constant, for lists of up to
    16384 documents.
    """
    one_of(discount, DISCOUNTS, "discount")
    lists = DeviceLists(scores, labels, mask)
    L = lists.shape[1]
    if not stop_gradient or L > LONGEST:
        return NotImplemented
    value = lists.per_list()
    gradient = lists.per_document() if lists.gradient_needed else None
    width = max(triton.next_power_of_2(L), 32)
    # Sums within a warp are fast, so that lists of usual length get only one.
    warps = min(max(width // 256, 1), 32)
    lists.run(_ndcg, 1, lists.scores, gains(lists.labels, gain), L if k is None else min(k, L),
              *lists.hyper_parameter(alpha), float(delta), value, gradient,
              LETOR=discount == "letor", WIDTH=width, num_warps=warps)  # fmt: skip
    return lists.loss(value, gradient)


@triton.jit
def _ndcg(
    spans, mask, L, scores, gains, ranks, alpha: tl.float64, alphas, delta: tl.float64, value,
    gradient, LETOR: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """Minus ``Σ_r D(r) Σ_j I^r_j gains_j`` over the ideal DCG ``[B]``; its gradient ``[N]``."""
    begin, n, places = bounds(spans, mask, L)
    j = tl.arange(0, WIDTH)
    real = are_real(mask, begin, j, n)
    own = tl.load(scores + begin + j, mask=real, other=0.0)
    g = tl.load(gains + begin + j, mask=real, other=0.0)
    dtype = own.dtype

    before = tl.zeros([WIDTH, OTHERS], tl.int32)
    for first in range(0, n, OTHERS):
        i = first + tl.arange(0, OTHERS)[None, :]
        other = are_real(mask, begin, i, n)
        g_i = tl.load(gains + begin + i, mask=other, other=0.0)
        before += (other & precede(g[:, None], j[:, None], g_i, i)).to(tl.int32)
    place = tl.sum(before, 1)
    ideal = g * discount((1 + place).to(dtype), LETOR)
    best = tl.sum(tl.where(real & (place < ranks), ideal, 0.0), 0)
    scale = tl.where(best > 0, -1.0 / best, 0.0)

    documents = tl.where(best > 0, tl.sum(real.to(tl.int32), 0), 0)
    steepness = of_list(alpha, alphas, dtype)
    keeps = tl.full((), 1.0 - delta, dtype)
    lowest = tl.min(tl.where(real, own, float("inf")), 0)
    heights = tl.where(real, steepness * (own - lowest), 0.0)
    left = tl.full([WIDTH], 1.0, dtype)
    push = tl.zeros([WIDTH], dtype)
    total = tl.zeros([], dtype)
    for r in range(0, tl.minimum(documents, ranks)):
        logits = tl.where(real, heights * left, -float("inf"))
        shares = tl.exp(logits - tl.max(logits, 0))
        shares /= tl.sum(shares, 0)
        met = tl.sum(shares * g, 0)
        theta = discount(1.0 + tl.full((), r, dtype), LETOR)
        total += theta * met
        push += theta * steepness * shares * (g - met) * left
        left *= keeps - shares
    tl.store(value + tl.program_id(0), scale * total)

    if gradient is not None:
        # The lowest score, above which heights are measured, is shared by ties.
        lows = real & (own == lowest)
        share = tl.sum(push, 0) / tl.maximum(tl.sum(lows.to(dtype), 0), 1.0)
        push = tl.where(documents > 0, push - tl.where(lows, share, 0.0), 0.0)
        tl.store(gradient + begin + j, tl.where(real, scale * push, 0.0), mask=j < places)
