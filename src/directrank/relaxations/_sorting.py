"""Sorting with one rule for ties, shared by metrics and losses."""

from __future__ import annotations

import torch
from torch import Tensor


def descending_order(values: Tensor, mask: Tensor) -> Tensor:
    """Positions that sort ``values`` descending, ties in order of appearance, masked ones last.

    Args:
        values: ``[B, L]``; minus infinity is allowed.
        mask: bool ``[B, L]``.

    Returns:
        int64 ``[B, L]``.
    """
    keys = values.masked_fill(~mask, float("-inf"))
    order = torch.sort(keys, dim=1, descending=True, stable=True).indices
    if bool((torch.isneginf(values) & mask).any()):
        # A real document at minus infinity must still come before the padding.
        real_first = torch.sort(
            mask.gather(1, order).to(torch.uint8), dim=1, descending=True, stable=True
        ).indices
        order = order.gather(1, real_first)
    return order


def inverse(order: Tensor) -> Tensor:
    """The inverse of each row's permutation, int64 ``[B, L]``."""
    places = torch.arange(order.shape[1], device=order.device).expand_as(order)
    return torch.empty_like(order).scatter_(1, order, places)
