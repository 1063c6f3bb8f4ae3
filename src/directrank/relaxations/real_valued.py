"""Metrics' expectations at real-valued ranks, one per document."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from directrank.kernels.dispatch import accelerated
from directrank.lists.pairs import differences, itself
from directrank.relaxations.protocol import no_cutoff

#: The steepness of comparisons of ranks.
BETA = 10.0


class RealValuedRanking:
    """A real number for each rank, with Qin2010's smooth truncation (eq. 16).

    Args:
        ranks: a function that takes the requested documents, bool ``[B, L]``, and returns their
            ranks, ``[B, L]``; those of other documents are at least 1, but without meaning.
        beta: steepness of comparisons of ranks: with a cut-off ``sigmoid(beta (k + 1/2 - r))``,
            with another rank ``sigmoid(beta (r_i - r_j))``.
    """

    def __init__(self, ranks: Callable[[Tensor], Tensor], *, beta: float) -> None:
        self.ranks = ranks
        self.beta = beta

    def weigh(self, gains: Tensor, weight: Callable[[Tensor], Tensor], k: int | None) -> Tensor:
        """See :class:`directrank.relaxations.Ranking`."""
        ranks = self.ranks(gains != 0)
        return (gains * weight(ranks) * self._within(ranks, k)).sum(1)

    def count(self, chosen: Tensor, k: int | None) -> Tensor:
        """See :class:`directrank.relaxations.Ranking`."""
        if k is None:
            raise no_cutoff()
        return (chosen * self._within(self.ranks(chosen != 0), k)).sum(1)

    def precisions(self, chosen: Tensor, k: int | None) -> Tensor:
        """See :class:`directrank.relaxations.Ranking`; Qin2010 eq. 15 if k is None."""
        front = chosen != 0
        ranks = self.ranks(front)
        retrieved = 1 + soft_counts(-self.beta * ranks, front, front)
        return (chosen * self._within(ranks, k) * retrieved / ranks).sum(1)

    def cascade(self, stops: Tensor, k: int | None) -> Tensor:
        """See :class:`directrank.relaxations.Ranking`."""
        ranks = self.ranks(stops != 0)
        before = torch.sigmoid(self.beta * differences(ranks))
        passed = 1 - before * stops.unsqueeze(1)
        reached = passed.masked_fill(itself(ranks.shape[1], ranks.device), 1.0).prod(2)
        return (stops * self._within(ranks, k) * reached / ranks).sum(1)

    def _within(self, ranks: Tensor, k: int | None) -> Tensor | float:
        return 1.0 if k is None else torch.sigmoid(self.beta * (k + 0.5 - ranks))


@accelerated
def soft_counts(values: Tensor, front: Tensor, mask: Tensor) -> Tensor:
    """``Σ_{j≠i} sigmoid(v_j - v_i)`` over the documents j of the mask, for the front documents i.

    Args:
        values: ``[B, L]``.
        front: bool ``[B, L]``, the documents i whose sums are requested.
        mask: bool ``[B, L]``, the documents j.

    Returns:
        ``[B, L]``; arbitrary, but finite, at other documents.
    """
    hidden = ~mask.unsqueeze(1) | itself(values.shape[1], values.device)
    higher = values.unsqueeze(1) - values.unsqueeze(2)
    return torch.sigmoid(higher).masked_fill(hidden, 0.0).sum(2)
