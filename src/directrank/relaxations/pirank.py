"""PiRank: NeuralSort's first rows, with the exact sort forward (Swezey et al., 2021)."""

from __future__ import annotations

import torch
from torch import Tensor

from directrank.lists.sorting import descending_order, inverse
from directrank.relaxations.neural_sort import sorting_matrix
from directrank.relaxations.protocol import checks_options
from directrank.relaxations.soft_sorting import SoftSorting

#: The temperature, and whether values are those of the exact sort.
TAU, STRAIGHT_THROUGH = 5.0, True


@checks_options
def pirank(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor,
    generator: torch.Generator | None = None,
    *,
    tau: float | Tensor = TAU,
    straight_through: bool = STRAIGHT_THROUGH,
) -> SoftSorting:
    """NeuralSort's matrix without scaling, restricted to the rows of the cut-off.

    Args:
        scores: ``[B, L]``, 0 at masked positions.
        labels: not used; every relaxation is given them.
        mask: bool ``[B, L]``.
        generator: not used.
        tau: temperature; a tensor ``[B, 1]`` sets it per list.
        straight_through: use the exact permutation forward, and this matrix for the gradient.
    """
    return SoftSorting(lambda k: top_rows(scores, mask, tau, straight_through, k))


def top_rows(
    scores: Tensor, mask: Tensor, tau: float | Tensor, straight_through: bool, rows: int | None
) -> Tensor:
    """The first ``rows`` of NeuralSort's matrix, or all of them, ``[B, r, i]``."""
    soft = sorting_matrix(scores / tau, mask, 1.0, rows)
    if not straight_through:
        return soft
    places = torch.arange(soft.shape[1], device=scores.device).unsqueeze(1)
    ranked = inverse(descending_order(scores, mask)).unsqueeze(1)
    exact = ((ranked == places) & mask.unsqueeze(1)).to(soft.dtype)
    return exact + (soft - soft.detach())
