"""Groups of lists of similar length, which are padded together."""

from __future__ import annotations

import numpy as np
import torch

#: A group of lists with this many padded pairs takes less time than another call.
SMALL_BUCKET = 1 << 18

#: Another call of a loss does not pay below this many padded pairs, on a CPU and on a GPU. Most
#: losses skip padding in sums over pairs; the others need memory for all pairs. A GPU computes a
#: million pairs in the time in which one of a call's operations is started.
SMALL_CALL, SMALL_CALL_ON_GPU = 1 << 22, 1 << 24


def small_call(device: torch.device) -> int:
    """The padded pairs below which another call of a loss does not pay on a device."""
    return SMALL_CALL if device.type == "cpu" else SMALL_CALL_ON_GPU


def buckets(
    lengths: np.ndarray, waste: float = 0.25, small: int = SMALL_BUCKET, power: int = 2
) -> list[np.ndarray]:
    """Group lists of similar length, so that padding each group wastes little.

    Args:
        lengths: int ``[B]``, documents per list.
        waste: a list goes into a group whose longest list is at most ``1 / (1 - waste)`` times as
            long.
        small: the work below which another group does not pay, as ``lists × longest ** power``.
        power: 2 if the work is on padded pairs of documents, 1 if it is on documents.

    Returns:
        The positions of the lists in each group, longest group first; every list is in one group.

    >>> buckets(np.array([3, 100, 4, 95]), small=0)
    [array([1, 3]), array([2, 0])]
    """
    order = np.argsort(-lengths, kind="stable")
    falling = -lengths[order]
    groups, begin = [], 0
    while begin < len(order):
        longest = max(int(-falling[begin]), 1)
        end = int(np.searchsorted(falling, -longest * (1 - waste), side="right"))
        end = min(max(end, begin + small // longest**power), len(order))
        groups.append(order[begin:end])
        begin = end
    return groups
