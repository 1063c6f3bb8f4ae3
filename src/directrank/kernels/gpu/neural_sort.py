"""NeuralSort with Sinkhorn scaling, and metrics under it, on a GPU.

A program does all of a list: it computes P from the scores again in each round, some rows at a
time, which takes no longer than reading it would. What is stored of a round are its scalings, a
number per document and one per rank, of which P's adjoint is made: a sum of outer products. P is
without the softmax's sums of rows, because these are a scaling, too.

Documents are the first and last axis of a tile ``[FOLD, ROWS, LANES]`` and ranks the middle one:
the sum of a row is then one of a warp's threads, and those of columns need others only once in a
round. Values of documents are ``[FOLD, 1, LANES]``, and those of ranks ``[1, ROWS, 1]``.
"""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

from directrank.kernels.gpu.lists import DeviceLists, are_real, bounds
from directrank.kernels.gpu.pairs import discount, precede
from directrank.lists.conventions import DISCOUNTS, gains
from directrank.lists.flat import Lists
from directrank.lists.inputs import one_of

#: Lists with more documents than this are left to the formula.
LONGEST = 4096

#: Smaller sums count as empty, as in :func:`directrank.relaxations.neural_sort.sinkhorn`.
LEAST = tl.constexpr(1e-18)

LOG2E = tl.constexpr(1.4426950408889634)


def ndcg(
    scores: Tensor,
    labels: Tensor,
    mask: Lists | None,
    *,
    k: int | None,
    gain: str,
    discount: str,
    tau: float,
    iterations: int,
    tolerance: float,
    rows_first: bool,
) -> Tensor:
    """Minus NDCG under NeuralSort; see :func:`directrank.losses.neural_ndcg`.

    It supports lists of up to 4096 documents.
    """
    one_of(discount, DISCOUNTS, "discount")
    lists = DeviceLists(scores, labels, mask)
    L = lists.shape[1]
    ranks = L if k is None else min(k, L)
    values = gains(lists.labels, gain)
    settings = tau, iterations, tolerance, rows_first
    return _run(lists, values, None, ranks, "weigh", settings, LETOR=discount == "letor")


def sorted_expectation(
    scores: Tensor,
    weights: Tensor,
    mask: Tensor,
    discounts: Tensor,
    kind: str,
    tau: float,
    iterations: int,
    tolerance: float,
    rows_first: bool,
) -> Tensor:
    """See :func:`directrank.relaxations.neural_sort.sorted_expectation`.

    It supports lists of up to 4096 documents.
    """
    lists = DeviceLists(scores, weights, mask)
    values = discounts.to(lists.scores.dtype).contiguous()
    settings = tau, iterations, tolerance, rows_first
    return _run(lists, lists.labels, values, len(discounts), kind, settings, LETOR=False)


def _run(
    lists: DeviceLists,
    weights: Tensor,
    discounts: Tensor | None,
    ranks: int,
    kind: str,
    settings: tuple[float, int, float, bool],
    LETOR: bool,
) -> Tensor:
    """An expectation; without ``discounts``, minus NDCG with the gains ``weights``."""
    if lists.shape[1] > LONGEST:
        return NotImplemented
    tau, iterations, tolerance, rows_first = settings
    value = lists.per_list()
    gradient = lists.per_document() if lists.gradient_needed else None
    #: Rounds whose scalings are kept: those of all for the gradient.
    kept = 2 if gradient is None else max(iterations, 1) + 1
    room = lists.scores.new_empty((2 * kept + 2, lists.scores.numel()))
    lists.run(_expectation, 1, lists.scores, weights, discounts, ranks, float(tau), iterations,
              float(tolerance), room.shape[1], kept, room[0], room[1], room[2:], room[2 + kept :],
              value, gradient, KIND=kind, ROWS_FIRST=rows_first, LETOR=LETOR,
              **_tile(lists.shape[1], simple=kind == "weigh"))  # fmt: skip
    return lists.loss(value, gradient)


def _tile(length: int, simple: bool) -> dict[str, int]:
    """The shape of a tile for lists of up to ``length`` documents, and the warps of a program.

    A thread has more registers if there are fewer warps; expectations that are not ``simple`` need
    them. The shapes are the fastest of several on an H200: with all warps beside each other in a
    row of a long list, its sum waits for each of them.
    """
    columns = max(triton.next_power_of_2(length), 32)
    lanes = max(columns // 8, 32)
    rows = 256 // lanes
    warps = 4 if columns <= 512 else 8
    if simple and columns <= 256:
        rows = 512 // lanes if columns > 64 else rows
        warps = 4 if columns <= 64 else 8 if columns == 128 else 16
    elif simple and columns == 512:
        lanes, rows = 32, 8
    elif simple and columns == 1024:
        warps = 4
    return {
        "FOLD": columns // lanes,
        "ROWS": max(rows, 1),
        "LANES": lanes,
        "num_warps": warps,
    }


@triton.jit
def _over_documents(values):
    """The sum over documents, ``[1, ROWS, 1]``."""
    return tl.sum(tl.sum(values, 0), 1)[None, :, None]


@triton.jit
def _over_ranks(values):
    """The sum over ranks, ``[FOLD, 1, LANES]``."""
    return tl.sum(values, 1)[:, None, :]


@triton.jit
def _largest(values):
    """The largest of all values."""
    return tl.max(tl.max(tl.max(values, 2), 1), 0)


@triton.jit
def _total(values):
    """The sum of all values."""
    return tl.sum(tl.sum(tl.sum(values, 2), 1), 0)


@triton.jit
def _entries(s, distances, tops, begin, r, m):
    """P's entries in the rows r, the largest of which is 1; 0 beyond the list's m documents."""
    top = tl.load(tops + begin + r, mask=r < m, other=float("inf"))
    return tl.exp2((m - 1 - 2 * r).to(s.dtype) * s - distances - top)


@triton.jit
def _off(scaling, sums):
    """The distance of scaled sums from one; 0 where there is nothing to add up."""
    return tl.where(sums > 0, tl.abs(scaling * sums - 1.0), 0.0)


@triton.jit
def _scaled(scaling, sums):
    """The scaling with which the sums would be one."""
    return tl.where(scaling * sums > LEAST, 1.0 / sums, scaling)


@triton.jit
def _round(s, distances, tops, v, before, after, begin, m, ROWS: tl.constexpr):
    """``u = 1 / P v``, written to ``after``, and ``Pᵀ u``.

    Returns how far sums of rows were off one with the scaling ``before``, and are with the new one.
    """
    sums = tl.zeros([s.shape[0], ROWS, s.shape[2]], s.dtype)
    early, late = tl.zeros([1, ROWS, 1], s.dtype), tl.zeros([1, ROWS, 1], s.dtype)
    for first in range(0, m, ROWS):
        r = first + tl.arange(0, ROWS)[None, :, None]
        p = _entries(s, distances, tops, begin, r, m)
        dots = _over_documents(p * v)
        u = tl.load(before + begin + r, mask=r < m, other=1.0)
        early = tl.maximum(early, _off(u, dots))
        u = _scaled(u, dots)
        late = tl.maximum(late, _off(u, dots))
        tl.store(after + begin + r, u, mask=r < m)
        sums += p * u
    tl.debug_barrier()
    return _over_ranks(sums), _largest(early), _largest(late)


@triton.jit
def _at_ranks(weights, q, before, theta, KIND: tl.constexpr):
    """The part of the ranks ``[1, ROWS, 1]`` in an expectation, and its derivatives.

    These are by the probabilities ``q`` that a document is at a rank, and ``before`` it; ``theta``
    is the ranks' discount.
    """
    none = tl.zeros_like(q)
    here = weights * q
    at_rank = _over_documents(here)
    if KIND == "weigh":
        return theta * at_rank, theta * weights + none, none
    inside = (before >= 0) & (before <= 1)
    earlier = weights * tl.minimum(tl.maximum(before, 0.0), 1.0)
    if KIND == "precisions":
        others = 1.0 + _over_documents(earlier) - earlier
        of_before = theta * weights * (at_rank - here)
        part = theta * _over_documents(here * others)
        return part, theta * weights * others, tl.where(inside, of_before, 0.0)
    # Products over all other documents, with the documents counted that surely end the search.
    passed = 1.0 - earlier
    ends = passed <= 0
    factor = tl.where(ends, 1.0, passed)
    product = tl.exp2(_over_documents(tl.log2(factor)) - tl.log2(factor))
    ending = _over_documents(ends.to(q.dtype)) - ends.to(q.dtype)
    reached = tl.where(ending == 0, product, 0.0)
    chance = tl.where(ends, 0.0, here / factor)
    certain = tl.where(ends, here, 0.0)
    of_others = tl.where(ending == 0, _over_documents(chance) - chance, 0.0)
    of_others = tl.where(ending == 1, _over_documents(certain) - certain, of_others)
    of_before = -theta * weights * product * of_others
    part = theta * _over_documents(here * reached)
    return part, theta * weights * reached, tl.where(inside, of_before, 0.0)


@triton.jit
def _discounts(discounts, r, ranks, dtype: tl.constexpr, LETOR: tl.constexpr):
    """The discounts of the ranks r, counted from 0; 0 from ``ranks`` on."""
    if discounts is not None:
        return tl.load(discounts + r, mask=r < ranks, other=0.0)
    return tl.where(r < ranks, discount((1 + r).to(dtype), LETOR), 0.0)


@triton.jit
def _expectation(
    spans, mask, L, scores, weights, discounts, ranks, tau: tl.float64, iterations,
    tolerance: tl.float64, documents: tl.int64, kept, tops, by_row, rows, columns, value, gradient,
    KIND: tl.constexpr, ROWS_FIRST: tl.constexpr, LETOR: tl.constexpr, FOLD: tl.constexpr,
    ROWS: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """An expectation under the scaled matrix ``[B]``, and where needed its gradient ``[N]``.

    Columns are scaled by ``columns[t]`` and then rows by ``rows[t]``, both ``[N]``, t = 0, …, where
    ``columns[0]`` is 1 and ``rows[0]`` is the softmax's scaling. If rows come first, a round begins
    with its rows, which only the softmax has scaled in the first; otherwise with its columns.
    """
    begin, n, places = bounds(spans, mask, L)
    j = tl.arange(0, FOLD)[:, None, None] * LANES + tl.arange(0, LANES)[None, None, :]
    real = are_real(mask, begin, j, n)
    own = tl.load(scores + begin + j, mask=real, other=0.0)
    w = tl.load(weights + begin + j, mask=real, other=0.0)
    dtype = own.dtype
    inverse = tl.full((), 1.0 / tau, dtype)

    # Distances, and the ranks of the ideal order.
    distances = tl.zeros([FOLD, ROWS, LANES], dtype)
    place = tl.zeros([FOLD, ROWS, LANES], tl.int32)
    for first in range(0, n, ROWS):
        i = first + tl.arange(0, ROWS)[None, :, None]
        other = are_real(mask, begin, i, n)
        s_i = tl.load(scores + begin + i, mask=other, other=0.0)
        distances += tl.where(other, tl.abs(s_i - own), 0.0)
        if discounts is None:
            w_i = tl.load(weights + begin + i, mask=other, other=0.0)
            place += (other & precede(w, j, w_i, i)).to(tl.int32)
    m = _total(real.to(tl.int32))
    scale = tl.full((), 1.0, dtype)
    if discounts is None:
        ideal = _over_ranks(place)
        best = _total(tl.where(real, w * _discounts(discounts, ideal, ranks, dtype, LETOR), 0.0))
        scale = tl.where(best > 0, -1.0 / best, 0.0)
        m = tl.where(best > 0, m, 0)
    else:
        m = tl.where(_total((w != 0).to(tl.int32)) > 0, m, 0)
    ranks = tl.minimum(m, ranks)

    # The softmax of rows, in powers of two; it does not depend on a shift of the scores.
    high = _largest(tl.where(real, own, -float("inf")))
    low = -_largest(tl.where(real, -own, -float("inf")))
    s = tl.where(real, (own - (high + low) / 2) * (inverse * LOG2E), 0.0)
    distances = tl.where(real, _over_ranks(distances) * (inverse * LOG2E), float("inf"))
    sums = tl.zeros([FOLD, ROWS, LANES], dtype)
    for first in range(0, m, ROWS):
        r = first + tl.arange(0, ROWS)[None, :, None]
        logits = (m - 1 - 2 * r).to(dtype) * s - distances
        top = tl.max(tl.max(logits, 0), 1)[None, :, None]
        p = tl.where(r < m, tl.exp2(logits - top), 0.0)
        u = _scaled(tl.full(top.shape, 1.0, dtype), _over_documents(p))
        tl.store(tops + begin + r, top, mask=r < m)
        tl.store(rows + begin + r, u, mask=r < m)
        sums += p * u
    v = tl.full([FOLD, 1, LANES], 1.0, dtype)
    if gradient is not None:
        tl.store(columns + begin + j, v, mask=j < n)
    tl.debug_barrier()

    by_column = _over_ranks(sums)
    limit = tl.full((), tolerance, dtype)
    off = _largest(_off(v, by_column))
    t = 0
    going = (off > limit) & (t < iterations)
    while going:
        if not ROWS_FIRST:
            t += 1
            v = _scaled(v, by_column)
        before = rows + (tl.maximum(t - 1, 0) % kept) * documents
        by_column, early, late = _round(
            s, distances, tops, v, before, rows + (t % kept) * documents, begin, m, ROWS
        )
        if ROWS_FIRST:
            going = tl.maximum(off, early) > limit
            t += going.to(tl.int32)
            v = tl.where(going, _scaled(v, by_column), v)
            off = _largest(_off(v, by_column))
            going &= t < iterations
        else:
            off = tl.maximum(_largest(_off(v, by_column)), late)
            going = (off > limit) & (t < iterations)
        if gradient is not None:
            tl.store(columns + t * documents + begin + j, v, mask=j < n)
    last = tl.maximum(t - 1, 0) if ROWS_FIRST else t
    tl.debug_barrier()

    # The value, and the derivatives by the probabilities that documents are before a rank.
    parts = tl.zeros([1, ROWS, 1], dtype)
    tails = tl.zeros([FOLD, ROWS, LANES], dtype)
    above = tl.zeros_like(v)
    for first in range(0, ranks, ROWS):
        r = first + tl.arange(0, ROWS)[None, :, None]
        u = tl.load(rows + (last % kept) * documents + begin + r, mask=r < ranks, other=0.0)
        q = _entries(s, distances, tops, begin, r, m) * u * v
        before = q
        if KIND != "weigh":
            before = above + (tl.cumsum(q, 1) - q)
            above += _over_ranks(q)
        theta = _discounts(discounts, r, ranks, dtype, LETOR)
        part, _, of_before = _at_ranks(w, q, before, theta, KIND)
        parts += part
        tails += of_before
    tl.store(value + tl.program_id(0), scale * _total(parts))

    if gradient is not None:
        # Through the last scaling of rows, unless columns were scaled after it.
        through = tl.full((), 1.0, dtype)
        if ROWS_FIRST:
            through = tl.where(t > 0, 0.0, through)
        tail, above = _over_ranks(tails), tl.zeros_like(v)
        of_v = tl.zeros([FOLD, ROWS, LANES], dtype)
        slopes = tl.zeros([FOLD, ROWS, LANES], dtype)
        for first in range(0, ranks, ROWS):
            r = first + tl.arange(0, ROWS)[None, :, None]
            u = tl.load(rows + last * documents + begin + r, mask=r < ranks, other=0.0)
            p = _entries(s, distances, tops, begin, r, m)
            q = p * u * v
            before = q
            if KIND != "weigh":
                before = above + (tl.cumsum(q, 1) - q)
                above += _over_ranks(q)
            theta = _discounts(discounts, r, ranks, dtype, LETOR)
            _, of_q, of_before = _at_ranks(w, q, before, theta, KIND)
            if KIND != "weigh":
                of_q += tail - tl.cumsum(of_before, 1)
                tail -= _over_ranks(of_before)
            of_u = _over_documents(of_q * p * v)
            tl.store(by_row + begin + r, of_u, mask=r < ranks)
            of_p = p * (of_q * u - through * of_u * u * u)
            of_v += of_p
            slopes += (m - 1 - 2 * r).to(dtype) * v * of_p
        tl.debug_barrier()

        # Back through the rounds: outer products of the sums' adjoints and the other scaling.
        of_columns = _over_ranks(of_v)
        for passed in range(0, t):
            at = (t - 1 - passed) * documents + begin
            y = of_columns * v * v
            v = tl.load(columns + at + j, mask=j < n, other=1.0)
            sums = tl.zeros([FOLD, ROWS, LANES], dtype)
            for first in range(0, m, ROWS):
                r = first + tl.arange(0, ROWS)[None, :, None]
                u = tl.load(rows + at + r, mask=r < m, other=0.0)
                p = _entries(s, distances, tops, begin, r, m)
                x = -_over_documents(p * y)
                if ROWS_FIRST:
                    x += tl.load(by_row + begin + r, mask=(r < ranks) & (passed == 0), other=0.0)
                x *= u * u
                sums += p * x
                slopes -= (m - 1 - 2 * r).to(dtype) * p * (u * y + x * v)
            of_columns = -_over_ranks(sums)

        # Through the logits.
        tl.debug_barrier()
        of_distance = -inverse * of_columns
        tl.store(by_row + begin + j, of_distance, mask=j < n)
        tl.debug_barrier()
        push = tl.zeros([FOLD, ROWS, LANES], dtype)
        for first in range(0, n, ROWS):
            i = first + tl.arange(0, ROWS)[None, :, None]
            other = are_real(mask, begin, i, n)
            s_i = tl.load(scores + begin + i, mask=other, other=0.0)
            both = of_distance + tl.load(by_row + begin + i, mask=other, other=0.0)
            side = (own > s_i).to(dtype) - (own < s_i).to(dtype)
            push += tl.where(other, side * both, 0.0)
        push += inverse * slopes
        result = tl.where(real & (m > 0), scale * _over_ranks(push), 0.0)
        tl.store(gradient + begin + j, result, mask=j < places)
