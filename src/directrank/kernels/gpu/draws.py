"""Random numbers that are functions of what they are for, not of what was drawn before.

They come from Philox (Salmon et al., 2011), keyed by a model's seed and counted by step, call,
list, document and column, so that neither padding nor the other models of a stack change them, and
no generator has to be kept. A captured step draws new ones each time that it is replayed, because
the number of the step is read from the device.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import triton
import triton.language as tl
from torch import Tensor

from directrank.kernels.gpu.lists import EXACT

if TYPE_CHECKING:
    from directrank.lists.draws import Counters
    from directrank.lists.flat import DeviceFlat

#: Columns that a program draws at a time; a count serves four of them.
COLUMNS = 512


def factors_of_rows(
    counters: Counters, lists: DeviceFlat, rows: int, width: int, kept: float
) -> Tensor:
    """The factors of dropout for ``rows`` documents of each model, float32 ``[M, rows, width]``.

    They are 0 or ``1 / kept``; ``kept`` is the probability of the latter.
    """
    models = len(counters.seeds)
    out = torch.empty(models, rows, width, device=counters.seeds.device)
    grid = (models * rows, triton.cdiv(width, COLUMNS))
    _factors_of_rows[grid](out, counters.seeds, counters.step, counters.next(), lists.owners,
                           lists.spans, rows, lists.count // models, width, kept, 1 / kept,
                           COLUMNS=COLUMNS, **EXACT)  # fmt: skip
    return out


def factors_of_pairs(counters: Counters, lists: int, heads: int, L: int, kept: float) -> Tensor:
    """The factors of dropout for pairs of documents, float32 ``[lists, heads, L, L]``; likewise."""
    out = torch.empty(lists, heads, L, L, device=counters.seeds.device)
    grid = (lists * heads * L, triton.cdiv(L, COLUMNS))
    _factors_of_pairs[grid](out, counters.seeds, counters.step, counters.next(),
                            lists // len(counters.seeds), heads, L, kept, 1 / kept,
                            COLUMNS=COLUMNS, **EXACT)  # fmt: skip
    return out


def drawn(counters: Counters, values: Tensor, lists: DeviceFlat, normal: bool) -> Tensor:
    """Uniform numbers from [0, 1), or standard normal ones, float32 ``[N]``, for flat lists.

    The lists are those of each model in turn, once or several times.
    """
    out = torch.zeros(values.shape, device=values.device)
    models, tiles = len(counters.seeds), triton.cdiv(lists.longest, COLUMNS)
    grid = lists.count, tiles
    _drawn[grid](out, counters.seeds, counters.step, counters.next(), lists.spans, models,
                 counters.lists, NORMAL=normal, COLUMNS=COLUMNS, **EXACT)  # fmt: skip
    return out


@triton.jit
def _share(bits):
    """Whole numbers of 32 bits as shares from [0, 1)."""
    return (bits >> 8).to(tl.float32) * (1.0 / 16777216.0)


@triton.jit
def _write_factors(
    out, seed, step, call, of_list, i, head, width, kept, scale, COLUMNS: tl.constexpr
):
    """The factors of a row of documents or pairs."""
    count = tl.program_id(1) * (COLUMNS // 4) + tl.arange(0, COLUMNS // 4)
    zero = count * 0
    a, b, c, d = tl.philox(seed, zero + step, zero + (call << 20) + of_list, zero + i,
                           count + (head << 16))  # fmt: skip
    bits = tl.interleave(tl.interleave(a, c), tl.interleave(b, d))
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    tl.store(out + column, tl.where(_share(bits) < kept, scale, 0.0), mask=column < width)


@triton.jit
def _factors_of_rows(
    out, seeds, steps, call, owners, spans, rows, B, width, kept, scale, COLUMNS: tl.constexpr
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    owner = tl.load(owners + row)
    i = (row - tl.load(spans + 2 * owner)).to(tl.int32)
    _write_factors(out + row * width, tl.load(seeds + row // rows), tl.load(steps).to(tl.int32),
                   call, (owner % B).to(tl.int32), i, 0, width, kept, scale, COLUMNS)  # fmt: skip


@triton.jit
def _factors_of_pairs(
    out, seeds, steps, call, B, heads, L, kept, scale, COLUMNS: tl.constexpr
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    owner, head, i = row // (heads * L), row // L % heads, row % L
    _write_factors(out + row * L, tl.load(seeds + owner // B), tl.load(steps).to(tl.int32),
                   call, (owner % B).to(tl.int32), i.to(tl.int32), 1 + head.to(tl.int32), L, kept,
                   scale, COLUMNS)  # fmt: skip


@triton.jit
def _drawn(out, seeds, steps, call, spans, models, B, NORMAL: tl.constexpr, COLUMNS: tl.constexpr):
    number = tl.program_id(0).to(tl.int64)
    begin = tl.load(spans + 2 * number)
    n = (tl.load(spans + 2 * number + 1) - begin).to(tl.int32)
    j = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    zero = j * 0
    seed, step = tl.load(seeds + number // B % models), tl.load(steps).to(tl.int32)
    time = (number // (B * models)).to(tl.int32)
    r, angle, _, _ = tl.philox(seed, zero + step, zero + (call << 20) + (number % B).to(tl.int32),
                               j, zero + time)  # fmt: skip
    result = _share(r)
    if NORMAL:
        result = tl.sqrt(-2.0 * tl.log(1.0 - result)) * tl.cos(6.283185307179586 * _share(angle))
    tl.store(out + begin + j, result, mask=j < n)
