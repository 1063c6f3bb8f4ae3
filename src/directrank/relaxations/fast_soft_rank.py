"""Ranks as a projection onto the permutahedron (Blondel et al., 2020)."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from directrank.kernels import accelerated
from directrank.lists.inputs import one_of
from directrank.lists.sorting import descending_order
from directrank.relaxations.real_valued import RealValuedRanking

REGULARISATIONS = ("l2", "entropic")


def fast_soft_rank(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor,
    generator: torch.Generator | None = None,
    *,
    tau: float | Tensor = 1.0,
    regularisation: str = "l2",
    beta: float = 10.0,
) -> RealValuedRanking:
    """The projection of ``-scores / tau`` onto the permutahedron, the hull of all rankings.

    Args:
        scores: ``[B, L]``, 0 at masked positions.
        labels: not used; every relaxation is given them.
        mask: bool ``[B, L]``.
        generator: not used.
        tau: strength of the regularisation (the paper's ε); towards 0 ranks become exact, and large
            ones draw all of them to the middle. A tensor ``[B, 1]`` sets it per list.
        regularisation: ``l2`` (Euclidean) or ``entropic`` (Kullback-Leibler).
        beta: see :class:`directrank.relaxations.real_valued.RealValuedRanking`.
    """
    one_of(regularisation, REGULARISATIONS, "regularisation")
    values = scores / tau
    order = descending_order(values, mask)
    return RealValuedRanking(
        lambda front: projected_ranks(values, order, mask, regularisation), beta=beta
    )


@accelerated
def projected_ranks(values: Tensor, order: Tensor, mask: Tensor, regularisation: str) -> Tensor:
    """``argmin_r ½ ‖r + v‖²`` over the permutahedron of (1, …, n), or its entropic relative.

    Isotonic regression solves it (section 5 of the paper): in falling order of the values,
    neighbours whose ranks would not rise form a block, and so do neighbouring blocks. In a block B
    at the places P a document has the rank ``mean(P) - (v_i - mean(v_B))``, or, entropic,
    ``sum(P) · softmax(-v_B)_i``. So under ``l2`` documents less than 1 apart share a block, and one
    that is farther from all others has its exact rank.

    Args:
        values: v, ``[B, L]``.
        order: positions by falling value, masked ones last, int64 ``[B, L]``.
        mask: bool ``[B, L]``.
        regularisation: ``l2`` or ``entropic``.

    Returns:
        ``[B, L]``; at masked positions without meaning, but no less than 1.
    """
    falling, real = values.gather(1, order), mask.gather(1, order)
    L = values.shape[1]
    places = torch.arange(1, L + 1, dtype=values.dtype, device=values.device).expand_as(values)
    if regularisation == "l2":
        blocks = _pooled(lambda blocks: _means(-falling.detach() - places, blocks), real)
        ranks = (_means(places, blocks) + _means(falling, blocks)).gather(1, blocks) - falling
    else:
        logs = places.log()
        blocks = _pooled(
            lambda blocks: _log_sums(-falling.detach(), blocks) - _log_sums(logs, blocks), real
        )
        shares = (-falling - _log_sums(-falling, blocks).gather(1, blocks)).exp()
        ranks = shares * _sums(places, blocks).gather(1, blocks)
    return torch.empty_like(ranks).scatter(1, order, ranks)


def _pooled(levels: Callable[[Tensor], Tensor], real: Tensor) -> Tensor:
    """Blocks of sorted positions whose ``levels`` rise: pools adjacent violators, all at once.

    Args:
        levels: gives the level of each block, ``[B, L]``, for the block of each position.
        real: bool ``[B, L]``; documents come first.

    Returns:
        The number of each position's block, counted from 0, int64 ``[B, L]``.
    """
    L = real.shape[1]
    numbers = torch.arange(L, device=real.device)
    blocks = numbers.expand(real.shape)
    while L > 1:
        level = levels(blocks)
        last = (blocks * real).amax(1, keepdim=True)
        joins = (level[:, :-1] >= level[:, 1:]) & (numbers[1:] <= last)
        if not bool(joins.any()):
            break
        joined = torch.nn.functional.pad(joins, (1, 0)).cumsum(1)
        blocks = blocks - joined.gather(1, blocks)
    return blocks


def _sums(values: Tensor, blocks: Tensor) -> Tensor:
    """The sum of each block's values, ``[B, L]``; 0 of blocks that there are not."""
    return torch.zeros_like(values).scatter_add(1, blocks, values)


def _means(values: Tensor, blocks: Tensor) -> Tensor:
    """The mean of each block's values, ``[B, L]``."""
    return _sums(values, blocks) / _sums(torch.ones_like(values), blocks).clamp_min(1)


def _log_sums(values: Tensor, blocks: Tensor) -> Tensor:
    """The logarithm of the sum of exponentials of each block's values, ``[B, L]``."""
    top = torch.full_like(values, -torch.inf).scatter_reduce(1, blocks, values.detach(), "amax")
    top = top.clamp_min(torch.finfo(values.dtype).min)
    sums = _sums((values - top.gather(1, blocks)).exp(), blocks)
    return sums.clamp_min(torch.finfo(values.dtype).tiny).log() + top
