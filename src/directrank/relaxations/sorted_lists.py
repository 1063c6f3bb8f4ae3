"""Metrics' sums over lists that are sorted, exactly or softly."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from torch import Tensor

from directrank.lists.conventions import cascade, ranks_of


class SortedRanking(ABC):
    """Documents contribute at their ranks; a subclass sorts the contributions."""

    def weigh(self, gains: Tensor, weight: Callable[[Tensor], Tensor], k: int | None) -> Tensor:
        """See :class:`directrank.relaxations.Ranking`."""
        gains = self._sorted(gains, k)
        return (gains * weight(ranks_of(gains))).sum(1)

    def count(self, chosen: Tensor, k: int | None) -> Tensor:
        """See :class:`directrank.relaxations.Ranking`."""
        return self._sorted(chosen, k).sum(1)

    def precisions(self, chosen: Tensor, k: int | None) -> Tensor:
        """See :class:`directrank.relaxations.Ranking`."""
        chosen = self._sorted(chosen, k)
        return (chosen * chosen.cumsum(1) / ranks_of(chosen)).sum(1)

    def cascade(self, stops: Tensor, k: int | None) -> Tensor:
        """See :class:`directrank.relaxations.Ranking`."""
        return cascade(self._sorted(stops, k))

    @abstractmethod
    def _sorted(self, values: Tensor, k: int | None) -> Tensor:
        """The ``values`` ``[B, L]`` of documents at the first k or at all ranks, ``[B, r]``."""
