"""Ranks that tied documents share."""

from __future__ import annotations

import torch
from torch import Tensor

from directrank.lists.conventions import ranks_of
from directrank.lists.sorting import descending_order


class MeanRanks:
    """The rank of each document by its score; tied documents share the mean of their ranks.

    Args:
        scores: ``[B, L]``.
        mask: bool ``[B, L]``.

    Attributes:
        ranks: float64 ``[B, L]``.
    """

    def __init__(self, scores: Tensor, mask: Tensor) -> None:
        # Labels rise with relevance, so scores are ranked likewise, from the lowest.
        self.ranks = mean_ranks(scores, mask)


def mean_ranks(values: Tensor, mask: Tensor) -> Tensor:
    """Ranks by rising value, from 1, float64 ``[B, L]``; equal values share the mean of theirs.

    >>> mean_ranks(torch.tensor([[2.0, 0.0, 2.0, 5.0]]), torch.tensor([[True, True, True, False]]))
    tensor([[2.5000, 1.0000, 2.5000, 0.0000]], dtype=torch.float64)
    """
    order = descending_order(values, mask)
    falling, real = values.gather(1, order), mask.gather(1, order)
    new = torch.ones_like(real)
    # Padding follows the documents and shares no rank with them.
    new[:, 1:] = (falling[:, 1:] != falling[:, :-1]) | (real[:, 1:] != real[:, :-1])
    group = new.cumsum(1) - 1
    # From the end of the documents, since ranks rise with the values.
    rank = mask.sum(1, keepdim=True) + 1 - ranks_of(values.double()).expand(values.shape)
    total, size = (
        torch.zeros_like(rank).scatter_add(1, group, each) for each in (rank, torch.ones_like(rank))
    )
    mean = (total / size.clamp_min(1)).gather(1, group)
    return torch.empty_like(mean).scatter(1, order, mean).masked_fill(~mask, 0.0)
