"""Metrics' expectations at exact ranks that have a gradient."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor


class PlacedRanking:
    """The sorted list forward, so that values are those of the metric; a gradient of ranks
    backward.

    Quantities that depend only on the order are constant, and the rank r of the document at place i
    enters as ``i / r`` where an indicator would have no gradient.

    Args:
        order: positions by descending score, int64 ``[B, L]``.
        place: the place of each document in this order, from 1, int64 ``[B, L]``.
        ranks: the rank of each document, ``[B, L]``, with a gradient.
    """

    def __init__(self, order: Tensor, place: Tensor, ranks: Tensor) -> None:
        self.order = order
        self.place = place
        self.ranks = ranks

    def weigh(self, gains: Tensor, weight: Callable[[Tensor], Tensor], k: int | None) -> Tensor:
        """See :class:`directrank.relaxations.Ranking`; Yu2020 eq. 15."""
        return (gains * self._top(k) * weight(self.ranks)).sum(1)

    def count(self, chosen: Tensor, k: int | None) -> Tensor:
        """See :class:`directrank.relaxations.Ranking`; Yu2020 eq. 13."""
        return (chosen * self._top(k) * self._place_over_rank).sum(1)

    def cascade(self, stops: Tensor, k: int | None) -> Tensor:
        """See :class:`directrank.relaxations.Ranking`; Yu2020 eq. 16."""
        passed = (1 - stops).gather(1, self.order)
        reached = torch.cat([torch.ones_like(passed[:, :1]), passed[:, :-1].cumprod(1)], 1)
        reached = reached.gather(1, self.place - 1)
        return (stops * self._top(k) * reached / self.ranks).sum(1)

    @property
    def _place_over_rank(self) -> Tensor:
        return self.place / self.ranks

    def _top(self, k: int | None) -> Tensor | float:
        return 1.0 if k is None else (self.place <= k).to(self.ranks.dtype)
