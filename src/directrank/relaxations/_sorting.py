"""Sorting with one rule for ties, shared by metrics and losses."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

#: Bits of a sorting key that hold a document's position; above them one bit for padding and 32 for
#: its value.
PLACE_BITS = 30


def descending_order(values: Tensor, mask: Tensor) -> Tensor:
    """Positions that sort ``values`` descending, ties in order of appearance, masked ones last.

    Args:
        values: floating ``[B, L]``; infinities are allowed.
        mask: bool ``[B, L]``.

    Returns:
        int64 ``[B, L]``.
    """
    values = values.detach()
    if values.device.type == "cpu":
        narrow = values.float()
        if values.dtype == torch.float32 or bool((narrow == values).all()):
            return _order_by_keys(narrow, mask)
    order = torch.sort(
        values.masked_fill(~mask, -torch.inf), dim=1, descending=True, stable=True
    ).indices
    # A real document at minus infinity must still come before the padding.
    real_first = torch.sort(
        mask.gather(1, order).to(torch.uint8), dim=1, descending=True, stable=True
    ).indices
    return order.gather(1, real_first)


def inverse(order: Tensor) -> Tensor:
    """The inverse of each row's permutation, int64 ``[B, L]``."""
    places = torch.arange(order.shape[1], device=order.device).expand_as(order)
    return torch.empty_like(order).scatter_(1, order, places)


def _order_by_keys(values: Tensor, mask: Tensor) -> Tensor:
    """The order of float32 ``values`` by whole keys that hold padding, value and position.

    No two keys are equal, so that NumPy's vectorised sort of integers, which is not stable, gives
    the stable order, several times faster than a stable sort of floats.
    """
    bits = (values.numpy() + np.float32(0.0)).view(np.int32)  # minus zero ties with zero
    rising = bits ^ ((bits >> 31) & 0x7FFFFFFF)
    keys = (~rising).astype(np.int64)
    if not mask.numpy().all():
        np.copyto(keys, 1 << 32, where=~mask.numpy())
    keys <<= PLACE_BITS
    keys += np.arange(keys.shape[1])
    keys.sort(axis=1)
    keys &= (1 << PLACE_BITS) - 1
    return torch.from_numpy(keys)
