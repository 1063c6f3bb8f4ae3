"""Parts of Triton kernels that process the pairs of a list's documents.

A program computes a tile of documents, ``i``, and reads the list's others in steps, ``j``. Values
of documents are ``[TILE, 1]`` and ``[1, STEP]``, those of pairs ``[TILE, STEP]``.
"""

from __future__ import annotations

import triton
import triton.language as tl

from directrank.kernels.gpu.lists import STEP, TILE, add_up, other_documents, reach

LN2 = tl.constexpr(0.6931471805599453)

#: A finite substitute for the logarithm of 0 in either type.
LOW = tl.constexpr(-1e30)


@triton.jit
def sigmoid(x):
    """``1 / (1 + exp(-x))``."""
    return 1.0 / (1.0 + tl.exp(-x))


@triton.jit
def precede(own, i, others, j):
    """Whether documents j come before i by descending value, ties in order of appearance."""
    return (others > own) | ((others == own) & (j < i))


@triton.jit
def discount(rank, LETOR: tl.constexpr):
    """The ``letor`` or ``log2`` discount of a rank."""
    return 1.0 / tl.log2(tl.maximum(rank, 2.0) if LETOR else 1.0 + rank)


@triton.jit
def discount_at(rank, cut, beta, LETOR: tl.constexpr):
    """The discount of a rank with a smooth cut-off, and its derivative.

    ``cut`` is None without a cut-off.
    """
    weight = discount(rank, LETOR)
    inner = tl.where(rank >= 2, 1.0 / rank, 0.0) if LETOR else 1.0 / (1.0 + rank)
    slope = -weight * weight * inner / LN2
    if cut is not None:
        within = sigmoid(beta * (cut + 0.5 - rank))
        slope = within * (slope - beta * (1.0 - within) * weight)
        weight *= within
    return weight, slope


@triton.jit
def log_of_one_plus(x):
    """``log(1 + x)`` for an x of 0 or more, also if 1 + x is rounded to 1."""
    rounded = 1.0 + x
    kept = rounded - 1.0  # the part of x that rounding keeps, by which the logarithm is corrected
    exact = tl.log(rounded) * (x / tl.where(kept > 0, kept, 1.0))
    return tl.where(kept > 0, exact, x)


@triton.jit
def are_ahead(mask, values, noise, begin, n, first, i, own):
    """The places ``[1, STEP]`` from ``first`` on, and whether their documents come before i by
    descending value, ``[TILE, STEP]``.

    Ties are in the order of descending ``noise``, then of appearance; ``noise`` may be None.
    """
    j, other = other_documents(mask, begin, first, n)
    value = tl.load(values + begin + j, mask=other, other=0.0)
    if noise is None:
        ahead = precede(own, i, value, j)
    else:
        own_noise = tl.load(noise + begin + i, mask=i < n, other=0.0)
        drawn = tl.load(noise + begin + j, mask=other, other=0.0)
        ahead = (value > own) | ((value == own) & precede(own_noise, i, drawn, j))
    return j, other & ahead


@triton.jit
def falling_places(mask, values, noise, begin, n, i, own):
    """The places ``[TILE, 1]``, from 1, of a tile's documents by descending value, int32; ties as
    for :func:`are_ahead`."""
    before = tl.zeros([TILE], tl.int32)
    for first in range(0, reach(n), STEP):
        _, ahead = are_ahead(mask, values, noise, begin, n, first, i, own)
        before += tl.sum(ahead.to(tl.int32), 1)
    return 1 + before[:, None]


@triton.jit
def sigmoid_sums(mask, values, begin, n, i, own, steepness):
    """``Σ_{j≠i} sigmoid(steepness (v_j - v_i))`` for a tile's documents, ``[TILE, 1]``."""
    sums = tl.zeros([TILE], own.dtype)
    for first in range(0, reach(n), STEP):
        j, other = other_documents(mask, begin, first, n)
        value = tl.load(values + begin + j, mask=other, other=0.0)
        above = sigmoid(steepness * (value - own))
        sums += tl.sum(tl.where(other & (i != j), above, 0.0), 1)
    return sums[:, None]


@triton.jit
def gained(gains, places, k, LETOR: tl.constexpr):
    """``gain D(place)`` of a tile's documents, 0 behind place k; k may be None."""
    weighed = gains * discount(places.to(gains.dtype), LETOR)
    if k is not None:
        weighed = tl.where(places <= k, weighed, 0.0)
    return weighed


@triton.jit
def add_dcg(
    mask, gains, begin, n, places, i, real, g, weight, slope, k, tiles, best, dcg, slopes,
    LETOR: tl.constexpr,
):  # fmt: skip
    """Store a tile's part of the ideal DCG and of that at given discounts, ``[B, tiles]``, and the
    derivative of the latter by each rank, ``[N]``.

    ``g`` are the gains of the tile's documents, ``weight`` their discounts, ``slope`` the
    derivatives of these by the ranks.
    """
    ideal = falling_places(mask, gains, None, begin, n, i, g)
    add_up(best, tiles, tl.where(real, gained(g, ideal, k, LETOR), 0.0))
    add_up(dcg, tiles, tl.where(real, g * weight, 0.0))
    tl.store(slopes + begin + i, g * slope, mask=i < places)


@triton.jit
def with_exponentials(top, sums, logs):
    """A sum ``sums · exp(top)``, ``[TILE]``, with the exponentials of ``logs [TILE, STEP]`` added.

    It begins with ``top`` and ``sums`` of :data:`LOW` and 0; logs of ``LOW`` add nothing to a sum
    that has another exponential.
    """
    highest = tl.maximum(top, tl.max(logs, 1))
    sums = sums * tl.exp(top - highest) + tl.sum(tl.exp(logs - highest[:, None]), 1)
    return highest, sums
