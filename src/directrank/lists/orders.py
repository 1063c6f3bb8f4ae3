"""Orders of lists by their scores with random noise."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import torch
from torch import Tensor

from directrank.lists.draws import Source, uniforms
from directrank.lists.flat import Flat, Lists, repeated
from directrank.lists.sorting import descending_order

#: Orders of few documents are drawn together, as many as have this many random numbers.
TOGETHER = 1 << 14


def drawn_orders(
    scores: Tensor,
    lists: Lists,
    generator: Source,
    samples: int,
    noise: Callable[[Tensor], Tensor],
) -> Iterator[Tensor]:
    """Orders by ``scores + noise(u)``, with numbers u that are uniform on (0, 1).

    Args:
        scores: ``[B, L]``, or flat ``[N]``.
        lists: bool ``[B, L]``, or the positions of flat lists.
        generator: random stream of u, on the scores' device.
        samples: the number of orders of each list.
        noise: a function of the numbers, element by element.

    Yields:
        Some of the orders, int64 ``[S, B, L]`` with masked documents last, or flat ``[S, N]``: see
        :func:`directrank.lists.sorting.descending_order`.
    """
    scores, tiny = scores.detach(), torch.finfo(scores.dtype).tiny
    places = _Places.of(lists)
    own = scores if places is None else places.packed(scores)
    positions = lists if places is None else places.lists
    step = max(1, TOGETHER // max(1, scores.numel()))
    for begin in range(0, samples, step):
        count = min(step, samples - begin)
        numbers = uniforms(scores, lists, generator, scores.dtype, count)
        if places is not None:
            numbers = torch.stack([places.packed(drawn) for drawn in numbers])
        noisy = (own + noise(numbers.clamp_min_(tiny))).flatten(0, 1)
        order = descending_order(noisy, repeated(positions, count)).view(count, *own.shape)
        yield order if places is None else places.padded(order)


class _Places:
    """The positions of the documents of padded lists on a CPU, all before their list's padding.

    Args:
        mask: bool ``[B, L]``.
        lengths: int64 ``[B]``.
    """

    def __init__(self, mask: np.ndarray, lengths: np.ndarray) -> None:
        self.lists = Flat(lengths, torch.device("cpu"))
        self.index = torch.from_numpy(np.flatnonzero(mask))
        self.unsorted = torch.arange(mask.shape[1], device="cpu").expand(mask.shape)

    @classmethod
    def of(cls, lists: Lists) -> _Places | None:
        """The positions, or None if packing the documents is impossible or saves nothing."""
        if isinstance(lists, Flat) or lists.device.type != "cpu":
            return None
        mask = lists.numpy()
        lengths = np.count_nonzero(mask, axis=1)
        if 2 * lengths.sum() >= mask.size or bool((mask[:, 1:] > mask[:, :-1]).any()):
            return None
        return cls(mask, lengths)

    def packed(self, values: Tensor) -> Tensor:
        """``values [B, L]`` of the documents, ``[N]``."""
        return values.flatten().index_select(0, self.index)

    def padded(self, orders: Tensor) -> Tensor:
        """Orders of flat lists ``[S, N]`` as ``[S, B, L]``, with the padding last."""
        result = self.unsorted.repeat(len(orders), 1, 1)
        result.view(len(orders), -1).index_copy_(1, self.index, orders)
        return result
