"""Quantities that metrics derive from labels, and conventions for empty queries."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, partial

import torch
from torch import Tensor

from directrank.lists.conventions import discount, gains, stopping
from directrank.lists.inputs import one_of
from directrank.relaxations.exact import StableRanking
from directrank.relaxations.protocol import Ranking

#: The least label that counts as relevant.
MIN_LABEL = 1.0

EMPTY = ("exclude", "zero", "one")
TIES = ("stable", "expected", "optimistic", "pessimistic")


class Judgements:
    """The labels of B lists, and quantities that metrics derive from them.

    Args:
        labels: ``[B, L]``, 0 at masked positions.
        mask: bool ``[B, L]``.
    """

    def __init__(self, labels: Tensor, mask: Tensor) -> None:
        self.labels = labels
        self.mask = mask

    @cached_property
    def ideal(self) -> Ranking:
        """The ranking by label."""
        return StableRanking(self.labels, self.mask)

    def gains(self, kind: str | Sequence[float]) -> Tensor:
        """The gain of each document, ``[B, L]``; see :func:`directrank.lists.conventions.gains`."""
        return gains(self.labels, kind)

    def ideal_dcg(self, gain: str | Sequence[float], kind: str, k: int | None) -> Tensor:
        """The largest DCG@k of any ranking, ``[B]``."""
        return self.ideal.weigh(self.gains(gain), partial(discount, kind), k)

    def relevant(self, min_label: float) -> Tensor:
        """1 where the label is at least ``min_label``, else 0, ``[B, L]``."""
        return ((self.labels >= min_label) & self.mask).to(self.labels.dtype)

    def stops(self, max_label: float | None) -> Tensor:
        """The probability that a document satisfies the user, ``[B, L]``.

        See :func:`directrank.lists.conventions.stopping`.
        """
        return stopping(self.labels, self.mask, max_label)


def with_empty(value: Tensor, defined: Tensor, empty: str) -> Tensor:
    """``value [B]`` with that of the convention ``empty`` where it is not ``defined``."""
    one_of(empty, EMPTY, "convention for empty queries")
    replacement = {"exclude": float("nan"), "zero": 0.0, "one": 1.0}[empty]
    return torch.where(defined, value, replacement)
