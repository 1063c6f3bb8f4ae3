"""SoftSort: a softmax around each sorted score (Prillo and Eisenschlos, 2020)."""

from __future__ import annotations

import torch
from torch import Tensor

from directrank.lists.sorting import descending_order
from directrank.relaxations.protocol import checks_options
from directrank.relaxations.soft_sorting import SoftSorting

#: The temperature.
TAU = 1.0


@checks_options
def soft_sort(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor,
    generator: torch.Generator | None = None,
    *,
    tau: float | Tensor = TAU,
) -> SoftSorting:
    """The documents at rank r are distributed as ``softmax_i(-|s_(r) - s_i| / tau)``.

    ``s_(r)`` is the score at rank r. Of the powers of the distance that the paper allows, this is
    the first, which it uses.

    Args:
        scores: ``[B, L]``, 0 at masked positions.
        labels: not used; every relaxation is given them.
        mask: bool ``[B, L]``.
        generator: not used.
        tau: temperature; a tensor ``[B, 1]`` sets it per list.
    """
    return SoftSorting(lambda k: top_rows(scores / tau, mask, k))


def top_rows(scores: Tensor, mask: Tensor, rows: int | None) -> Tensor:
    """The distributions of the first ``rows`` ranks, or of all of them, ``[B, r, i]``."""
    falling = scores.gather(1, descending_order(scores, mask)[:, :rows])
    nearness = torch.exp(-(falling.unsqueeze(2) - scores.unsqueeze(1)).abs())
    ranks = torch.arange(falling.shape[1], device=scores.device)
    inside = (ranks < mask.sum(1, keepdim=True)).unsqueeze(2) & mask.unsqueeze(1)
    nearness = nearness.masked_fill(~inside, 0.0)
    # At least 1 within the list: the document at a rank has no distance from its score. PyTorch's
    # softmax has other bytes with other numbers of threads.
    return nearness / nearness.sum(2, keepdim=True).clamp_min(1)
