"""Random numbers by counters on a CPU; see :mod:`directrank.lists.draws`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from directrank.kernels.compiling import compiled, inlined
from directrank.kernels.threads import over_lists
from directrank.lists.draws import FACTORS, LIST_BITS, MULTIPLIERS, WEYL, Counters, factor_type
from directrank.lists.flat import Flat, Lists

_LOW, _HALF = np.uint64(0xFFFFFFFF), np.uint64(32)
_A, _B = map(np.uint64, MULTIPLIERS)
_KEY, _OTHER = map(np.uint64, WEYL)

#: Counts that are computed at a time, as many as fill the vectors of a processor.
TOGETHER = 16

#: The work of a number, in pairs of documents.
WORK = 2


class Dropping(NamedTuple):
    """The dropout of a pass through layers in compiled loops.

    Attributes:
        seeds, numbers: int64 ``[lists]``, see :class:`directrank.lists.draws.Counters`; empty
            without dropout.
        step: the number of the step.
        call: the number of the first draw.
        dropped: the share of values that are dropped, times 2¹⁶.
        scale: the factor of those kept.
        bits: uint64, room for what is drawn in the forward pass, which the backward pass reads.
    """

    seeds: np.ndarray
    numbers: np.ndarray
    step: int
    call: int
    dropped: int
    scale: float
    bits: np.ndarray


def dropping(
    counters: Counters | None, draws: int, dropped: int, scale: float, room: int
) -> Dropping:
    """The dropout of a pass with so many draws and room for so many bits; none without counters."""
    if counters is None:
        nothing = np.empty(0, np.int64)
        return Dropping(nothing, nothing, 0, 0, 0, 1.0, np.zeros(room, np.uint64))
    seeds, numbers = counters.seeds.numpy(), counters.numbers.numpy()
    step, call = int(counters.step), counters.next(draws)
    return Dropping(seeds, numbers, step, call, dropped, scale, np.empty(room, np.uint64))


def bits_for(width: int) -> int:
    """The room that the bits of a row of so many values take."""
    return 2 * -(-width // FACTORS)


@inlined
def draw(dropping, b, call, head, rows, width, into):
    """Draw the bits of list ``b`` for so many rows of values, in the ``call``-th draw of a pass."""
    second = (dropping.call + call) << LIST_BITS | dropping.numbers[b]
    counts = -(-width // FACTORS)
    bits_of_rows(dropping.seeds[b], dropping.step, second, head, rows, counts, into)


@inlined
def halves(bits, rows):
    """Bits as numbers of 16 bits, one for each value of so many rows, and some more."""
    return bits.view(np.uint16).reshape((rows, 4 * len(bits) // max(rows, 1)))


@inlined
def _round(a, b, c, d, key, other):
    # Higher bits than 32 are meaningless in between.
    p, q = _A * (a & _LOW), _B * (c & _LOW)
    return (q >> _HALF) ^ b ^ key, q, (p >> _HALF) ^ d ^ other, p, key + _KEY, other + _OTHER


@inlined
def philox(seed, a, b, c, d):
    """See :func:`directrank.lists.draws.philox`; a loop around it is made of vectors only if its
    rounds are written one by one."""
    key, other = seed, seed >> _HALF
    a, b, c, d, key, other = _round(a, b, c, d, key, other)
    a, b, c, d, key, other = _round(a, b, c, d, key, other)
    a, b, c, d, key, other = _round(a, b, c, d, key, other)
    a, b, c, d, key, other = _round(a, b, c, d, key, other)
    a, b, c, d, key, other = _round(a, b, c, d, key, other)
    a, b, c, d, key, other = _round(a, b, c, d, key, other)
    a, b, c, d, key, other = _round(a, b, c, d, key, other)
    a, b, c, d, key, other = _round(a, b, c, d, key, other)
    a, b, c, d, key, other = _round(a, b, c, d, key, other)
    a, b, c, d, key, other = _round(a, b, c, d, key, other)
    return a & _LOW, b & _LOW, c & _LOW, d & _LOW


@inlined
def bits_of_rows(seed, step, second, head, rows, counts, into):
    """128 bits for each of so many ``counts`` of each of a list's rows, in turn.

    Args:
        seed, step, second, head: the key, two words of the counters, and what is added to the last.
        rows, counts: numbers of both.
        into: uint64 ``[2 · rows · counts]``.
    """
    key, first, list_and_call = np.uint64(seed), np.uint64(step), np.uint64(second)
    third, fourth = np.empty(TOGETHER, np.uint64), np.empty(TOGETHER, np.uint64)
    low, high = np.empty(TOGETHER, np.uint64), np.empty(TOGETHER, np.uint64)
    row, count, total = 0, 0, rows * counts
    for begin in range(0, total, TOGETHER):
        for t in range(TOGETHER):
            third[t] = row
            fourth[t] = head + count
            count += 1
            if count == counts:
                row, count = row + 1, 0
        for t in range(TOGETHER):
            a, b, c, d = philox(key, first, list_and_call, third[t], fourth[t])
            low[t] = a | b << _HALF
            high[t] = c | d << _HALF
        for t in range(min(TOGETHER, total - begin)):
            into[2 * (begin + t)] = low[t]
            into[2 * (begin + t) + 1] = high[t]


@compiled
def _uniform(begin, end, seeds, numbers, step, call, draws, starts, lengths, shares):
    """A number from [0, 1) for each document of the lists from ``begin`` to ``end``.

    Args:
        begin, end: the range of lists.
        seeds, numbers: int64 ``[B]``, of lists that have counters; others are copies of them.
        step, call, draws: of the first draw, and the number of draws.
        starts, lengths: int64, of all lists of the first draw, then of the next.
        shares: float32 ``[N]``, the numbers.
    """
    known, of_draw = len(seeds), len(lengths) // draws
    key, second = np.empty(TOGETHER, np.uint64), np.empty(TOGETHER, np.uint64)
    third, fourth = np.empty(TOGETHER, np.uint64), np.empty(TOGETHER, np.uint64)
    drawn = np.empty((4, TOGETHER), np.float32)
    first = np.uint64(step)
    b, place = begin, 0
    while b < end:
        # The counts of several lists at a time.
        used, of_b, of_place = 0, b, place
        for t in range(TOGETHER):
            while b < end and place >= lengths[b]:
                b, place = b + 1, 0
            own = min(b, end - 1) % of_draw
            above = call + min(b, end - 1) // of_draw << LIST_BITS
            key[t], second[t] = seeds[own % known], above | numbers[own % known]
            third[t], fourth[t] = place // 4, own // known
            if b < end:
                used, place = used + 1, place + 4
        for t in range(TOGETHER):
            words = philox(key[t], first, second[t], third[t], fourth[t])
            for k in range(4):
                drawn[k, t] = np.float32(words[k] >> np.uint64(8)) * np.float32(2.0**-24)
        for t in range(used):
            while of_place >= lengths[of_b]:
                of_b, of_place = of_b + 1, 0
            for k in range(min(4, lengths[of_b] - of_place)):
                shares[starts[of_b] + of_place + k] = drawn[k, t]
            of_place += 4


def uniform_by_document(values: Tensor, lists: Lists, counters: Counters, draws: int) -> Tensor:
    """See :func:`directrank.lists.draws.uniform_by_document`."""
    shares = torch.empty((draws, *values.shape), dtype=torch.float32, device="cpu")
    if isinstance(lists, Flat):
        documents = values.numel() * np.arange(draws)[:, None]
        starts, lengths = (documents + lists.starts).ravel(), np.tile(lists.lengths, draws)
    else:
        rows, width = draws * len(values), values.shape[1]
        starts, lengths = np.arange(0, rows * width, width or 1)[:rows], np.full(rows, width)
    if len(lengths) and shares.numel():
        over_lists(_uniform, WORK * shares.numel(), len(lengths), *_of(counters, draws), draws,
                   starts, lengths, shares.numpy().reshape(-1))  # fmt: skip
    return shares


def _of(counters: Counters, draws: int = 1) -> tuple[np.ndarray, np.ndarray, int, int]:
    """Seeds and numbers of lists, the step, and the number of the first of so many draws."""
    seeds, numbers = counters.seeds.numpy(), counters.numbers.numpy()
    return seeds, numbers, int(counters.step), counters.next(draws)


@inlined
def write_factors(bits, dropped, scale, width, stride, factors):
    """The factors of dropout for rows of ``width`` columns, from bits for ``stride`` columns."""
    for i in range(len(bits) // stride):
        for j in range(width):
            kept = bits[i * stride + j] >= dropped
            factors[i, j] = scale if kept else factors.dtype.type(0)


@compiled
def _factors_of_rows(begin, end, seeds, numbers, step, call, spans, dropped, scale, factors):
    """The factors ``[documents, W]`` of the lists from ``begin`` to ``end``."""
    width = factors.shape[1]
    counts = -(-width // FACTORS)
    for b in range(begin, end):
        first, last = spans[b]
        bits = np.empty(2 * (last - first) * counts, np.uint64)
        second = call << LIST_BITS | numbers[b]
        bits_of_rows(seeds[b], step, second, 0, last - first, counts, bits)
        halves = bits.view(np.uint16)
        write_factors(halves, np.uint16(dropped), scale, width, FACTORS * counts,
                      factors[first:last])  # fmt: skip


def factors_of_rows(values: Tensor, lists: Flat, counters: Counters, dropped: int) -> Tensor:
    """See :func:`directrank.lists.draws.factors_of_rows`; those of no list are 0."""
    models, rows, width = values.shape
    factors = torch.zeros(models * rows, width, dtype=factor_type(values), device="cpu")
    over_lists(_factors_of_rows, factors.numel(), lists.count, *_of(counters),
               lists.spans.numpy(), *_dropping(dropped, factors))  # fmt: skip
    return factors.view(values.shape)


@compiled
def _factors_of_pairs(begin, end, seeds, numbers, step, call, dropped, scale, factors):
    """The factors ``[B, heads, L, L]`` of the lists from ``begin`` to ``end``."""
    _, heads, L, _ = factors.shape
    counts = -(-L // FACTORS)
    bits = np.empty(2 * L * counts, np.uint64)
    for b in range(begin, end):
        for head in range(heads):
            second = call << LIST_BITS | numbers[b]
            bits_of_rows(seeds[b], step, second, (1 + head) << 16, L, counts, bits)
            write_factors(bits.view(np.uint16), np.uint16(dropped), scale, L, FACTORS * counts,
                          factors[b, head])  # fmt: skip


def factors_of_pairs(values: Tensor, counters: Counters, dropped: int) -> Tensor:
    """See :func:`directrank.lists.draws.factors_of_pairs`."""
    factors = torch.empty(values.shape, dtype=factor_type(values), device="cpu")
    over_lists(_factors_of_pairs, factors.numel(), len(factors), *_of(counters),
               *_dropping(dropped, factors))  # fmt: skip
    return factors


def _dropping(dropped: int, factors: Tensor) -> tuple[int, np.floating, np.ndarray]:
    """The share dropped, the factor of what is kept, and an array for factors."""
    array = factors.numpy()
    return dropped, array.dtype.type(2**16 / (2**16 - dropped)), array
