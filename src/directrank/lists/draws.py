"""Random numbers for the documents of lists."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from directrank.lists.flat import DeviceFlat, Lists, PaddingNeededError, mask_of


@dataclass(frozen=True)
class Streams:
    """Several random streams instead of one generator, for the lists of several models.

    The padded lists of a model are contiguous, and each model has the same number of lists. They
    get the numbers that they would get in a separate call.

    Attributes:
        generators: one stream per model, in the order of their lists.
    """

    generators: Sequence[torch.Generator]


@dataclass
class Counters:
    """Random numbers of a captured step, by what they are for.

    See :mod:`directrank.kernels.gpu.draws`.

    Attributes:
        seeds: int64 ``[M]``, of each model, on the device.
        step: int64 ``[1]``, the number of the step, on the device.
        lists: lists of each model, B.
        numbers: draws numbers for documents; None where only a model draws.
        calls: draws in this step so far.
    """

    seeds: Tensor
    step: Tensor
    lists: int
    numbers: Callable[[Counters, Tensor, DeviceFlat, bool], Tensor] | None = None
    calls: int = 0

    def next(self) -> int:
        """The number of the next draw."""
        self.calls += 1
        return self.calls


#: A source of random numbers; None is PyTorch's own stream.
Source = torch.Generator | Streams | Counters | None


def uniform(values: Tensor, lists: Lists, source: Source, dtype: torch.dtype) -> Tensor:
    """Numbers from [0, 1) in the shape of ``values``; those at masked positions have no meaning."""
    return _drawn(torch.rand, values, lists, source, dtype)


def normal(values: Tensor, lists: Lists, source: Source, dtype: torch.dtype) -> Tensor:
    """Standard normal numbers in the shape of ``values``; likewise."""
    return _drawn(torch.randn, values, lists, source, dtype)


def _drawn(
    draw: Callable[..., Tensor], values: Tensor, lists: Lists, source: Source, dtype: torch.dtype
) -> Tensor:
    if isinstance(source, Counters):
        if not isinstance(lists, DeviceFlat) or source.numbers is None:
            raise PaddingNeededError
        return source.numbers(source, values, lists, draw is torch.randn).to(dtype)
    if not isinstance(source, Streams):
        return draw(values.shape, generator=source, dtype=dtype, device=values.device)
    models = len(source.generators)
    used = mask_of(lists).view(models, -1, values.shape[1]).any(1)
    result = values.new_zeros(values.shape, dtype=dtype)
    for own, places, generator in zip(
        result.view(models, -1, values.shape[1]), used, source.generators, strict=True
    ):
        # A separate call would be padded to the longest of its lists.
        longest = int(places.nonzero()[-1]) + 1 if bool(places.any()) else values.shape[1]
        own[:, :longest] = draw(
            (len(own), longest), generator=generator, dtype=dtype, device=values.device
        )
    return result
