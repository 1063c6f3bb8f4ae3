"""Sorting with one rule for ties, shared by metrics and losses."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from directrank.lists.flat import Flat, Lists, PaddingNeededError

#: Bits of a sorting key for a document's position; above them are one bit for padding and 32 for
#: the value.
PLACE_BITS = 30


def descending_order(values: Tensor, mask: Lists) -> Tensor:
    """Positions that sort ``values`` descending, ties in order of appearance, masked ones last.

    Args:
        values: floating ``[B, L]``; infinities are allowed.
        mask: bool ``[B, L]``.

    Returns:
        int64 ``[B, L]``. For flat lists, on a CPU, all shapes are ``[N]``, and positions count from
        the beginning of each list.
    """
    values = values.detach()
    if isinstance(mask, Flat) and values.device.type != "cpu":
        raise PaddingNeededError
    if values.device.type == "cpu":
        narrow = values.float()
        if values.dtype == torch.float32 or bool((narrow == values).all()):
            return _order_by_keys(narrow, mask)
    if isinstance(mask, Flat):
        by_list = np.lexsort((-values.numpy(), mask.owners.numpy()))
        return torch.from_numpy(by_list) - mask.firsts
    # A real document at minus infinity must still come before the padding, so it ties with the
    # least number of the type instead.
    finite = values.clamp_min(torch.finfo(values.dtype).min)
    hidden = finite.masked_fill(~mask, -torch.inf)
    return torch.sort(hidden, dim=1, descending=True, stable=True).indices


def inverse(order: Tensor) -> Tensor:
    """The inverse of each row's permutation, int64 ``[B, L]``."""
    places = torch.arange(order.shape[1], device=order.device).expand_as(order)
    return torch.empty_like(order).scatter_(1, order, places)


def top(k: int, scores: Tensor, mask: Tensor | None) -> Tensor:
    """Whether each document of the mask is among the first k by score, bool ``[B, L]``."""
    if mask is None:
        mask = torch.ones_like(scores, dtype=torch.bool)
    return mask & (inverse(descending_order(scores, mask)) < k)


def _order_by_keys(values: Tensor, mask: Lists) -> Tensor:
    """The order of float32 ``values``, which are converted to integers of the same order."""
    bits = (values.numpy() + np.float32(0.0)).view(np.int32)  # minus zero ties with zero
    rising = bits ^ ((bits >> 31) & 0x7FFFFFFF)
    return rising_order((~rising).astype(np.int64), mask)


def rising_order(keys: np.ndarray, mask: Lists) -> Tensor:
    """Positions that sort integers ascending, ties in order of appearance, masked ones last.

    Padding, value and position form one key. No two keys are equal, so NumPy's vectorised sort of
    integers, which is not stable, gives the stable order several times faster than a stable sort of
    floats.

    Args:
        keys: int64 ``[B, L]`` from -2³² to 2³² - 1; they are overwritten.
        mask: bool ``[B, L]``.

    Returns:
        int64 ``[B, L]``; for flat lists see :func:`descending_order`.
    """
    if isinstance(mask, Flat):
        keys <<= PLACE_BITS
        keys += np.arange(len(keys)) - mask.firsts.numpy()
        for begin, n in zip(mask.starts.tolist(), mask.lengths.tolist(), strict=True):
            keys[begin : begin + n].sort()
        keys &= (1 << PLACE_BITS) - 1
        return torch.from_numpy(keys)
    real = mask.numpy()
    if not real.all():
        np.copyto(keys, 1 << 32, where=~real)
    keys <<= PLACE_BITS
    keys += np.arange(keys.shape[1])
    if 2 * np.count_nonzero(real) < real.size:
        # What follows a list's last document is in order already.
        ends = real.shape[1] - real[:, ::-1].argmax(axis=1)
        for row, end in zip(keys, ends.tolist(), strict=True):
            row[:end].sort()
    else:
        keys.sort(axis=1)
    keys &= (1 << PLACE_BITS) - 1
    return torch.from_numpy(keys)
