"""Dropout whose numbers are functions of seed, step, layer, list and document."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property

import numpy as np
from torch import Tensor

from directrank.kernels.dispatch import accelerated
from directrank.lists import draws
from directrank.lists.devices import on_device
from directrank.lists.draws import Counters
from directrank.lists.flat import DeviceFlat

_of_rows: Callable[..., Tensor] = accelerated(draws.factors_of_rows)
_of_pairs: Callable[..., Tensor] = accelerated(draws.factors_of_pairs)


class Dropout:
    """Inverted dropout in one pass of a stack of models.

    Args:
        probability: the probability of dropping a value. It is rounded to a multiple of 2⁻¹⁶, so
            that 128 random bits serve eight values.
        counters: of the lists of all models.
        lengths: int ``[M, B]`` or ``[1, B]``, documents per list; or the lists of a captured step.
        models: M.
        rows: documents per model, N.
    """

    def __init__(
        self,
        probability: float,
        counters: Counters,
        lengths: np.ndarray | DeviceFlat,
        models: int,
        rows: int,
    ) -> None:
        self.dropped = round(probability * 2**16)
        self.scale = 2**16 / (2**16 - self.dropped)
        self.counters = counters
        self._lengths = lengths
        self._models = models
        self._rows = rows

    @cached_property
    def _lists(self) -> DeviceFlat:
        """The lists of all models."""
        if isinstance(self._lengths, DeviceFlat):
            return self._lengths
        own = np.broadcast_to(self._lengths, (self._models, self._lengths.shape[1]))
        ends = own.cumsum(1)
        first = self._rows * np.arange(self._models)[:, None, None]
        spans = (np.stack([ends - own, ends], axis=2) + first).reshape(-1, 2)
        longest = int(self._lengths.max(initial=0))
        on = on_device(spans, self.counters.seeds.device)
        return DeviceFlat(on, longest, self._models * self._rows)

    def of_rows(self, values: Tensor) -> Tensor:
        """The factors of values of documents ``[M, N, W]``: 0 or, for those kept, the scale.

        Those of documents that are in no list have no meaning.
        """
        return _of_rows(values, self._lists, self.counters, self.dropped)

    def of_pairs(self, values: Tensor, lists: Tensor | None, call: int) -> Tensor:
        """The factors of values of pairs of documents ``[lists, heads, L, L]``.

        Args:
            values: their shape and type.
            lists: int64, which lists these are; None for all.
            call: the number of this draw, the same for several groups of lists.
        """
        counters = self.counters if lists is None else self.counters.of(lists)
        return _of_pairs(values, replace(counters, calls=call - 1), self.dropped)


def dropout_of(
    probability: float,
    counters: Counters | None,
    lengths: np.ndarray | DeviceFlat,
    models: int,
    rows: int,
) -> Dropout:
    """The dropout of a pass in training.

    Raises:
        ValueError: there are no counters.
    """
    if counters is None:
        raise ValueError("dropout in training draws from the counters of a step")
    return Dropout(probability, counters, lengths, models, rows)
