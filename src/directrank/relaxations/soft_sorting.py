"""Metrics' sums over a distribution of documents at each rank."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from directrank.relaxations.protocol import no_cutoff
from directrank.relaxations.sorted_lists import SortedRanking


class SoftSorting(SortedRanking):
    """Each rank has the mean over a distribution of documents, independent of other ranks.

    A rank's gain, relevance and probability of stopping are therefore expectations, and metrics sum
    them like those of a sorted list. A document need not have total probability one.

    Args:
        first: a function of a cut-off k that returns the distributions of the first k ranks, or of
            all ranks if it is None: ``[B, r, i]``; 0 at masked documents and at ranks beyond the
            list.
    """

    def __init__(self, first: Callable[[int | None], Tensor]) -> None:
        self.first = first

    def count(self, chosen: Tensor, k: int | None) -> Tensor:
        """See :class:`directrank.relaxations.Ranking`."""
        if k is None:
            raise no_cutoff()
        return super().count(chosen, k)

    def _sorted(self, values: Tensor, k: int | None) -> Tensor:
        # Not a product of matrices: autocasting outside would round its gradient.
        return (self.first(k) * values.unsqueeze(1)).sum(2)
