"""Lists with randomly drawn orders, as kernels take them."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from directrank.kernels.batch import Batch
from directrank.lists.flat import Lists
from directrank.lists.sorting import inverse


class Drawn:
    """B lists, with each list's documents first.

    Args:
        scores: ``[B, L]``; for flat lists this and all other arrays are ``[N]``.
        gains: ``[B, L]``.
        mask: bool ``[B, L]``, or the positions of flat lists.

    Attributes:
        batch: a :class:`Batch` of scores and gains.
    """

    def __init__(self, scores: Tensor, gains: Tensor, mask: Lists) -> None:
        self.batch = Batch(scores, gains, mask)
        self._places: Tensor | None = None
        if self.batch.has_holes and isinstance(mask, Tensor):
            self._places = torch.sort(~mask, dim=1, stable=True).indices
            scores, gains, mask = map(self._together, (scores, gains, mask))
            self.batch = Batch(scores, gains, mask)

    def orders(self, orders: Tensor) -> np.ndarray:
        """Orders ``[S, B, L]``, masked documents last, as flat positions ``[S, N]`` that count from
        each list's first document."""
        if self._places is not None:
            orders = inverse(self._places).expand_as(orders).gather(2, orders)
        return orders.numpy().reshape(len(orders), -1)

    def flat(self, values: Tensor) -> np.ndarray:
        """``values [B, L]`` of the documents as a flat array."""
        return self._together(values.detach()).numpy().ravel()

    def _together(self, values: Tensor) -> Tensor:
        return values if self._places is None else values.gather(1, self._places)
