"""Orders that were drawn, as kernels take them."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from directrank.kernels.batch import Batch
from directrank.lists.sorting import inverse


class Drawn:
    """B lists, whose documents come first, and orders of each.

    Args:
        scores: ``[B, L]``.
        gains: ``[B, L]``.
        mask: bool ``[B, L]``.
        orders: int64 ``[samples, B, L]``, masked documents last.

    Attributes:
        batch: of scores and gains.
        orders: int64 ``[samples, B L]``; they count from each list's first document.
    """

    def __init__(self, scores: Tensor, gains: Tensor, mask: Tensor, orders: Tensor) -> None:
        self.batch = Batch(scores, gains, mask)
        self._places: Tensor | None = None
        if self.batch.has_holes:
            self._places = torch.sort(~mask, dim=1, stable=True).indices
            scores, gains, mask = map(self._together, (scores, gains, mask))
            orders = inverse(self._places).expand_as(orders).gather(2, orders)
            self.batch = Batch(scores, gains, mask)
        self.orders = orders.flatten(1).numpy()

    def flat(self, values: Tensor) -> np.ndarray:
        """``[samples, B, L]`` of the documents as ``[samples, B L]``."""
        return self._together(values.detach()).flatten(-2).numpy()

    def _together(self, values: Tensor) -> Tensor:
        """``[…, B, L]`` with each list's documents first."""
        if self._places is None:
            return values
        return values.gather(-1, self._places.expand(values.shape))
