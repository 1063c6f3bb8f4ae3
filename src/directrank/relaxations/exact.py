"""Exact ranks from the stable sort, and exact expectations over the orders of tied documents."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import torch
from torch import Tensor

from directrank.lists.conventions import ranks_of
from directrank.lists.sorting import descending_order
from directrank.relaxations.sorted_lists import SortedRanking


class StableRanking(SortedRanking):
    """Ranks by descending score; tied documents keep their order of appearance.

    Args:
        scores: ``[B, L]``.
        mask: bool ``[B, L]``.
    """

    def __init__(self, scores: Tensor, mask: Tensor) -> None:
        self.order = descending_order(scores, mask)

    def _sorted(self, values: Tensor, k: int | None) -> Tensor:
        return values.gather(1, self.order[:, :k])


class TiesByValue(StableRanking):
    """Ranks by descending score; tied documents by descending value, then in order of appearance.

    Args:
        scores: ``[B, L]``.
        mask: bool ``[B, L]``.
        values: ``[B, L]``.
    """

    def __init__(self, scores: Tensor, mask: Tensor, values: Tensor) -> None:
        by_value = descending_order(values, mask)
        by_score = descending_order(scores.gather(1, by_value), mask.gather(1, by_value))
        self.order = by_value.gather(1, by_score)


class ExpectedTies:
    """Ranks by descending score, averaged over all orders of tied documents, without sampling.

    Args:
        scores: ``[B, L]``.
        mask: bool ``[B, L]``.
    """

    def __init__(self, scores: Tensor, mask: Tensor) -> None:
        self.order = descending_order(scores, mask)
        scores, self.real = scores.gather(1, self.order), mask.gather(1, self.order)
        # Padding forms a group of its own after the documents, without any gain.
        new = torch.ones_like(self.real)
        new[:, 1:] = (scores[:, 1:] != scores[:, :-1]) | (self.real[:, 1:] != self.real[:, :-1])
        self.group = new.cumsum(1) - 1

    @cached_property
    def _size(self) -> Tensor:
        """The number of documents in the tie group of each sorted position, ``[B, L]``."""
        return self._over_group(torch.ones_like(self.real, dtype=torch.float64))

    @cached_property
    def _start(self) -> Tensor:
        """The number of documents before the tie group of each sorted position, ``[B, L]``."""
        place = ranks_of(self._size).expand_as(self._size)
        first = torch.full_like(place, float("inf")).scatter_reduce(1, self.group, place, "amin")
        return first.gather(1, self.group) - 1

    def weigh(self, gains: Tensor, weight: Callable[[Tensor], Tensor], k: int | None) -> Tensor:
        """See :class:`directrank.relaxations.Ranking`."""
        gains = gains.gather(1, self.order)
        weights = self._top(weight(ranks_of(gains).expand_as(gains)), k)
        return (gains * self._over_group(weights) / self._size).sum(1)

    def count(self, chosen: Tensor, k: int | None) -> Tensor:
        """See :class:`directrank.relaxations.Ranking`."""
        return self.weigh(chosen, torch.ones_like, k)

    def precisions(self, chosen: Tensor, k: int | None) -> Tensor:
        """See :class:`directrank.relaxations.Ranking`.

        Given that a document is at rank r, each of the other m - 1 documents of its group is before
        it with probability (r - start - 1) / (m - 1).
        """
        chosen = chosen.gather(1, self.order)
        ranks = ranks_of(chosen).expand_as(chosen)
        in_group = self._over_group(chosen)
        earlier = chosen.cumsum(1).gather(1, (self._start - 1).clamp_min(0).long())
        earlier = earlier * (self._start > 0)
        inverse_rank = self._over_group(self._top(1 / ranks, k))
        before = (ranks - self._start - 1) / (self._size - 1).clamp_min(1)
        shared = self._over_group(self._top(before / ranks, k))
        value = (earlier + chosen) * inverse_rank + (in_group - chosen) * shared
        return (chosen * value / self._size).sum(1)

    def cascade(self, stops: Tensor, k: int | None) -> Tensor:
        """See :class:`directrank.relaxations.Ranking`.

        ``A_p``, the mean of Π (1 - stops) over all p-subsets of a group, gives the probability
        ``A_{p-1} - A_p`` of stopping at its p-th place. When the t-th document joins the group,
        ``A_p ← (1 - p/t) A_p + (p/t) (1 - stops_t) A_{p-1}``.
        """
        stops = stops.gather(1, self.order)
        B, L = stops.shape
        member = (ranks_of(stops) - self._start).unsqueeze(2)  # t, at each sorted position
        place = torch.arange(L, dtype=stops.dtype, device=stops.device)  # p - 1 = 0 .. L-1
        go_on = torch.ones(B, L + 1, dtype=stops.dtype, device=stops.device)  # A_0 .. A_L
        reach = torch.ones(B, dtype=stops.dtype, device=stops.device)  # Π over the groups before
        total = torch.zeros_like(reach)
        for t in range(L):
            first = member[:, t] == 1
            go_on = torch.where(first, torch.ones_like(go_on), go_on)
            share = (place + 1) / member[:, t]
            joined = (1 - share) * go_on[:, 1:] + share * (1 - stops[:, t, None]) * go_on[:, :-1]
            go_on = torch.cat([go_on[:, :1], torch.where(share <= 1, joined, go_on[:, 1:])], 1)
            last = member[:, t, 0] == self._size[:, t]
            rank = self._start[:, t, None] + place + 1
            seen = place < self._size[:, t, None]
            if k is not None:
                seen = seen & (rank <= k)
            stopped = ((go_on[:, :-1] - go_on[:, 1:]) / rank * seen).sum(1)
            total = total + torch.where(last, reach * stopped, 0.0)
            size = self._size[:, t, None].long()
            reach = torch.where(last, reach * go_on.gather(1, size).squeeze(1), reach)
        return total

    def _top(self, values: Tensor, k: int | None) -> Tensor:
        return values if k is None else values * (ranks_of(values) <= k)

    def _over_group(self, values: Tensor) -> Tensor:
        """The sum of ``values`` over the tie group of each sorted position."""
        return torch.zeros_like(values).scatter_add(1, self.group, values).gather(1, self.group)
