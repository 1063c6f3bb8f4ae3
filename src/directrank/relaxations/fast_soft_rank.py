"""Ranks as a projection onto the permutahedron (Blondel et al., 2020)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from directrank.kernels.dispatch import accelerated
from directrank.lists.conventions import ranks_of
from directrank.lists.gradient import once_differentiable
from directrank.lists.inputs import one_of
from directrank.lists.sorting import descending_order
from directrank.relaxations.protocol import checks_options
from directrank.relaxations.real_valued import BETA, RealValuedRanking

REGULARISATIONS = ("l2", "entropic")

#: The kind of the regularisation, and its strength.
REGULARISATION, TAU = "l2", 0.1


@checks_options
def fast_soft_rank(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor,
    generator: torch.Generator | None = None,
    *,
    tau: float | Tensor = TAU,
    regularisation: str = REGULARISATION,
    beta: float = BETA,
) -> RealValuedRanking:
    """The projection of ``-scores / tau`` onto the permutahedron, the hull of all rankings.

    Args:
        scores: ``[B, L]``, 0 at masked positions.
        labels: not used; every relaxation is given them.
        mask: bool ``[B, L]``.
        generator: not used.
        tau: strength of the regularisation (the paper's ε); ranks become exact as it approaches 0,
            and large values draw all of them towards the middle. A tensor ``[B, 1]`` sets it per
            list.
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

    Isotonic regression solves it (section 5 of the paper): in descending order of the values,
    neighbours whose ranks would not rise form a block, and so do neighbouring blocks. In a block B
    at the places P, a document has the rank ``mean(P) - (v_i - mean(v_B))`` or, if entropic,
    ``sum(P) · softmax(-v_B)_i``. So with ``l2``, neighbours less than 1 apart share a block, and a
    document has its exact rank if every other document that is m places away has a value more than
    m away.

    Args:
        values: v, ``[B, L]``.
        order: positions by descending value, masked ones last, int64 ``[B, L]``.
        mask: bool ``[B, L]``.
        regularisation: ``l2`` or ``entropic``.

    Returns:
        ``[B, L]``; without meaning at masked positions, but at least 1.
    """
    falling, real = values.gather(1, order), mask.gather(1, order)
    places = ranks_of(values).expand_as(values)
    if regularisation == "l2":
        blocks = _pooled(lambda blocks: blocks.means(-falling.detach() - places), real)
        ranks = blocks.spread(blocks.means(places)) + _BlockMeans.apply(falling, blocks) - falling
    else:
        logs = places.log()
        blocks = _pooled(
            lambda blocks: blocks.log_sums(-falling.detach()) - blocks.log_sums(logs), real
        )
        least = blocks.spread(blocks.reduced(-falling.detach(), "max"))
        shares = (-falling - least).exp()
        ranks = blocks.spread(blocks.means(places)) * shares / _BlockMeans.apply(shares, blocks)
    return torch.empty_like(ranks).scatter(1, order, ranks)


class _Blocks:
    """Blocks of neighbouring positions of sorted lists, numbered along each list; the last are
    empty.

    Args:
        numbers: the number of each position's block, from 0 and rising by at most 1, int64 ``[B,
            L]``.
    """

    def __init__(self, numbers: Tensor) -> None:
        self.numbers = numbers
        self.sizes = torch.zeros_like(numbers).scatter_add(1, numbers, torch.ones_like(numbers))

    def reduced(self, values: Tensor, how: str) -> Tensor:
        """The ``sum`` or ``max`` of each block's values, ``[B, L]``."""
        # Adding by index would not be deterministic on a GPU. ``unsafe`` allows an empty batch.
        lengths = self.sizes.flatten()
        reduced = torch.segment_reduce(values.flatten(), how, lengths=lengths, unsafe=True)
        return reduced.view(values.shape)

    def means(self, values: Tensor) -> Tensor:
        """The mean of each block's values, ``[B, L]``."""
        return self.reduced(values, "sum") / self.sizes.clamp_min(1)

    def log_sums(self, values: Tensor) -> Tensor:
        """The logarithm of the sum of exponentials of each block's values, ``[B, L]``."""
        top = self.reduced(values, "max")
        return self.reduced((values - self.spread(top)).exp(), "sum").log() + top

    def spread(self, values: Tensor) -> Tensor:
        """Each block's value at each of its positions, ``[B, L]``."""
        return values.gather(1, self.numbers)


class _BlockMeans(torch.autograd.Function):
    """The mean of each position's block, which is a projection and therefore its own adjoint."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, blocks: _Blocks) -> Tensor:
        ctx.blocks = blocks
        ctx.save_for_backward(values)
        return blocks.spread(blocks.means(values))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, None]:
        return ctx.blocks.spread(ctx.blocks.means(grad_output)), None


def _pooled(levels: Callable[[_Blocks], Tensor], real: Tensor) -> _Blocks:
    """Pool adjacent violators, all at once, until the ``levels`` of blocks rise.

    Args:
        levels: a function that returns the level of each block, ``[B, L]``.
        real: bool ``[B, L]``; documents come first.
    """
    places = torch.arange(real.shape[1], device=real.device)
    blocks = _Blocks(places.expand(real.shape))
    while len(places) > 1:
        level = levels(blocks)
        last = (blocks.numbers * real).amax(1, keepdim=True)
        joins = (level[:, :-1] >= level[:, 1:]) & (places[1:] <= last)
        if not bool(joins.any()):
            break
        joined = torch.nn.functional.pad(joins, (1, 0)).cumsum(1)
        blocks = _Blocks(blocks.numbers - blocks.spread(joined))
    return blocks
