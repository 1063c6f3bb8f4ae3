"""Metrics' expectations under a distribution over ranks per document."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor


class RankDistribution:
    """Each document has a probability for each rank; documents are taken as independent.

    Args:
        probabilities: ``[B, i, r]``, of document i at rank r (counted from 0 along the axis); 0 at
            masked documents and at ranks beyond the list.
    """

    def __init__(self, probabilities: Tensor) -> None:
        self.probabilities = probabilities

    def weigh(self, gains: Tensor, weight: Callable[[Tensor], Tensor], k: int | None) -> Tensor:
        """See :class:`directrank.relaxations.Ranking`."""
        top = self.probabilities[:, :, :k]
        return (gains * (top @ weight(self._ranks(k)))).sum(1)

    def count(self, chosen: Tensor, k: int | None) -> Tensor:
        """See :class:`directrank.relaxations.Ranking`."""
        return (chosen * self.probabilities[:, :, :k].sum(2)).sum(1)

    def precisions(self, chosen: Tensor, k: int | None) -> Tensor:
        """See :class:`directrank.relaxations.Ranking`."""
        ahead = self._ahead(k) * chosen.unsqueeze(2)
        others = 1 + ahead.sum(1, keepdim=True) - ahead
        return (chosen.unsqueeze(2) * self._at_rank(k) * others).sum((1, 2))

    def cascade(self, stops: Tensor, k: int | None) -> Tensor:
        """See :class:`directrank.relaxations.Ranking`."""
        passed = 1 - self._ahead(k) * stops.unsqueeze(2)
        return (stops.unsqueeze(2) * self._at_rank(k) * _product_of_others(passed)).sum((1, 2))

    def _ranks(self, k: int | None) -> Tensor:
        width = self.probabilities[:, :, :k].shape[2]
        return torch.arange(
            1, width + 1, dtype=self.probabilities.dtype, device=self.probabilities.device
        )

    def _at_rank(self, k: int | None) -> Tensor:
        """Probability of each document at each rank, over the rank."""
        return self.probabilities[:, :, :k] / self._ranks(k)

    def _ahead(self, k: int | None) -> Tensor:
        """Probability of each document ahead of each rank, ``[B, i, r]``."""
        top = self.probabilities[:, :, :k]
        return (top.cumsum(2) - top).clamp(0, 1)


def _product_of_others(values: Tensor) -> Tensor:
    """``Π_{j≠i} values_j`` along axis 1, without division: values may be 0."""
    ones = torch.ones_like(values[:, :1])
    before = torch.cat([ones, values[:, :-1].cumprod(1)], 1)
    after = torch.cat([values[:, 1:].flip(1).cumprod(1).flip(1), ones], 1)
    return before * after
