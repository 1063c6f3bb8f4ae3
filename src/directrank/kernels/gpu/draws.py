"""Random numbers by counters on a GPU; see :mod:`directrank.lists.draws`.

A captured step draws new ones each time that it is replayed, because the number of the step is read
from the device.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from directrank.kernels.gpu.lists import EXACT
from directrank.lists.draws import Counters, factor_type
from directrank.lists.flat import Flat, Lists

#: Columns that a program draws at a time; a count serves eight factors or four documents.
COLUMNS = 512


def uniform_by_document(values: Tensor, lists: Lists, counters: Counters, draws: int) -> Tensor:
    """See :func:`directrank.lists.draws.uniform_by_document`; numbers of no list are 0."""
    out = torch.zeros((draws, *values.shape), device=values.device)
    spans, B, L = None, len(values), values.shape[-1]
    if isinstance(lists, Flat):
        spans, B, L = lists.spans, lists.count, lists.longest
    if B and L:
        grid = B, triton.cdiv(L, COLUMNS)
        for each in out:
            _uniform[grid](each, counters.seeds, counters.numbers, counters.step, counters.next(),
                           spans, len(counters.seeds), L, COLUMNS=COLUMNS, **EXACT)  # fmt: skip
    return out


def factors_of_rows(values: Tensor, lists: Flat, counters: Counters, dropped: int) -> Tensor:
    """See :func:`directrank.lists.draws.factors_of_rows`."""
    models, rows, width = values.shape
    out = torch.empty(values.shape, dtype=factor_type(values), device=values.device)
    grid = (models * rows, triton.cdiv(width, COLUMNS))
    _factors_of_rows[grid](out, counters.seeds, counters.numbers, counters.step, counters.next(),
                           lists.owners, lists.spans, width, dropped, 2**16 / (2**16 - dropped),
                           COLUMNS=COLUMNS, **EXACT)  # fmt: skip
    return out


def factors_of_pairs(values: Tensor, counters: Counters, dropped: int) -> Tensor:
    """See :func:`directrank.lists.draws.factors_of_pairs`."""
    lists, heads, L, _ = values.shape
    out = torch.empty(values.shape, dtype=factor_type(values), device=values.device)
    grid = (lists * heads * L, triton.cdiv(L, COLUMNS))
    _factors_of_pairs[grid](out, counters.seeds, counters.numbers, counters.step, counters.next(),
                            heads, L, dropped, 2**16 / (2**16 - dropped),
                            COLUMNS=COLUMNS, **EXACT)  # fmt: skip
    return out


@triton.jit
def _words(seeds, numbers, own, step, call, third, fourth):
    """Random words of a list's counters, and zero of the counters' type."""
    zero = fourth * 0
    second = (call << 20) + tl.load(numbers + own).to(tl.int32)  # as LIST_BITS has it
    first = tl.load(step).to(tl.int32)
    return tl.philox(tl.load(seeds + own), zero + first, zero + second, zero + third, fourth)


@triton.jit
def _in_turn(a, b, c, d):
    """The elements of four vectors in turn."""
    return tl.interleave(tl.interleave(a, c), tl.interleave(b, d))


@triton.jit
def _uniform(out, seeds, numbers, step, call, spans, known, L, COLUMNS: tl.constexpr):
    b = tl.program_id(0).to(tl.int64)
    begin, n = b * L, L
    if spans is not None:
        begin = tl.load(spans + 2 * b)
        n = (tl.load(spans + 2 * b + 1) - begin).to(tl.int32)
    count = tl.program_id(1) * (COLUMNS // 4) + tl.arange(0, COLUMNS // 4)
    copy = count * 0 + (b // known).to(tl.int32)
    a, b_, c, d = _words(seeds, numbers, b % known, step, call, count, copy)
    share = (_in_turn(a, b_, c, d) >> 8).to(tl.float32) * (1.0 / 16777216.0)
    j = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    tl.store(out + begin + j, share, mask=j < n)


@triton.jit
def _write_factors(
    out, seeds, numbers, own, step, call, row, head, width, dropped, scale: tl.float64,
    COLUMNS: tl.constexpr,
):  # fmt: skip
    """The factors of a row of documents or pairs."""
    count = tl.program_id(1) * (COLUMNS // 8) + tl.arange(0, COLUMNS // 8)
    a, b, c, d = _words(seeds, numbers, own, step, call, row, count + head)
    word = _in_turn(a, b, c, d)
    half = tl.interleave(word & 0xFFFF, word >> 16).to(tl.int32)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    factor = tl.full((), scale, out.dtype.element_ty)
    tl.store(out + column, tl.where(half >= dropped, factor, 0.0), mask=column < width)


@triton.jit
def _factors_of_rows(
    out, seeds, numbers, step, call, owners, spans, width, dropped, scale: tl.float64,
    COLUMNS: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    own = tl.load(owners + row)
    i = tl.maximum(row - tl.load(spans + 2 * own), 0).to(tl.int32)  # before a list's first place
    _write_factors(out + row * width, seeds, numbers, own, step, call, i, 0, width, dropped, scale,
                   COLUMNS)  # fmt: skip


@triton.jit
def _factors_of_pairs(
    out, seeds, numbers, step, call, heads, L, dropped, scale: tl.float64, COLUMNS: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    own, head, i = row // (heads * L), (row // L % heads).to(tl.int32), (row % L).to(tl.int32)
    _write_factors(out + row * L, seeds, numbers, own, step, call, i, (1 + head) << 16, L, dropped,
                   scale, COLUMNS)  # fmt: skip
