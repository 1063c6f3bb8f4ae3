"""Real-valued ranks from Laplace distributions of score differences (Struski et al., 2025)."""

from __future__ import annotations

import torch
from torch import Tensor

from directrank.kernels.dispatch import accelerated
from directrank.lists.conventions import ranks_of
from directrank.lists.sorting import descending_order
from directrank.relaxations.protocol import checks_options
from directrank.relaxations.real_valued import BETA, RealValuedRanking

#: The scale of the distribution.
TAU = 0.1


@checks_options
def lapsum(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor,
    generator: torch.Generator | None = None,
    *,
    tau: float | Tensor = TAU,
    beta: float = BETA,
) -> RealValuedRanking:
    """``r_i = 1 + Σ_{j≠i} F((s_j - s_i) / tau)`` with the Laplace distribution function F.

    ``F(x)`` is ``exp(x) / 2`` for x < 0 and ``1 - exp(-x) / 2`` otherwise. It resembles the
    sigmoid, but its sums over all pairs take one pass over the sorted list.

    Args:
        scores: ``[B, L]``, 0 at masked positions.
        labels: not used; every relaxation is given them.
        mask: bool ``[B, L]``.
        generator: not used.
        tau: scale of the distribution (the paper's α); ranks become exact as it approaches 0. A
            tensor ``[B, 1]`` sets it per list.
        beta: see :class:`directrank.relaxations.real_valued.RealValuedRanking`.
    """
    values = scores / tau
    order = descending_order(values, mask)
    return RealValuedRanking(lambda front: laplace_ranks(values, order, mask), beta=beta)


@accelerated
def laplace_ranks(values: Tensor, order: Tensor, mask: Tensor) -> Tensor:
    """``1 + Σ_{j≠i} F(v_j - v_i)`` over the documents of the mask.

    In descending order of the values it is ``i + ½ Σ_{j>i} exp(v_j - v_i) - ½ Σ_{j<i} exp(v_i -
    v_j)``, whose sums are cumulative along the list.

    Args:
        values: v, ``[B, L]``.
        order: positions by descending value, masked ones last, int64 ``[B, L]``.
        mask: bool ``[B, L]``.

    Returns:
        ``[B, L]``; without meaning at masked positions, but at least 1.
    """
    falling, real = values.gather(1, order), mask.gather(1, order)
    places = ranks_of(values)
    lowest = torch.finfo(values.dtype).min
    ahead = _sums_before(-falling.masked_fill(~real, -lowest))
    behind = _sums_before(falling.masked_fill(~real, lowest).flip(1)).flip(1)
    after, before = (
        sums.masked_fill(~real, lowest).exp() for sums in (behind - falling, ahead + falling)
    )
    ranks = places + (after - before) / 2
    return torch.empty_like(ranks).scatter(1, order, ranks)


def _sums_before(values: Tensor) -> Tensor:
    """``log Σ_{j<i} exp(v_j)``, ``[B, L]``; almost zero before the logarithm for the first."""
    lowest = torch.full_like(values[:, :1], torch.finfo(values.dtype).min)
    return torch.cat([lowest, values[:, :-1]], 1).logcumsumexp(1)
