"""Gains, discounts, relevance and empty queries: the conventions that metrics differ in."""

from __future__ import annotations

from functools import cached_property, lru_cache

import numpy as np
import torch
from torch import Tensor

from directrank.lists.inputs import one_of
from directrank.relaxations.exact import StableRanking

GAINS = ("exp2", "linear", "burges2006")
DISCOUNTS = ("log2", "letor")
EMPTY = ("exclude", "zero", "one")
TIES = ("stable", "expected", "optimistic", "pessimistic")


class Judgements:
    """The labels of B lists, with what metrics derive from them.

    Args:
        labels: ``[B, L]``, 0 at masked positions.
        mask: bool ``[B, L]``.
    """

    def __init__(self, labels: Tensor, mask: Tensor) -> None:
        self.labels = labels
        self.mask = mask

    @cached_property
    def ideal(self) -> StableRanking:
        """The ranking by label."""
        return StableRanking(self.labels, self.mask)

    def gains(self, kind: str) -> Tensor:
        """``2^y - 1`` (``exp2``), ``y`` (``linear``) or what Burges2006 prints, ``[B, L]``.

        That (``burges2006``) is 0, 3, 7, 15, 31 for the labels 0 to 4, against its own equation 1:
        ``2^(y+1) - 1``, and 0 for 0.
        """
        one_of(kind, GAINS, "gain")
        if kind == "linear":
            return self.labels
        gains = torch.exp2(self.labels) - 1
        return torch.where(gains > 0, 2 * gains + 1, gains) if kind == "burges2006" else gains

    def relevant(self, min_label: float) -> Tensor:
        """1 where the label is at least ``min_label``, else 0, ``[B, L]``."""
        return ((self.labels >= min_label) & self.mask).to(self.labels.dtype)

    def stops(self, max_label: float | None) -> Tensor:
        """``(2^y - 1) / 2^max``, the probability that a document satisfies the user, ``[B, L]``.

        ``max_label`` None means the largest label of each query.
        """
        if max_label is None:
            if self.labels.shape[1] == 0:
                return self.labels
            top = self.labels.amax(1, keepdim=True)
            return (torch.exp2(self.labels - top) - torch.exp2(-top)) * self.mask
        return (torch.exp2(self.labels) - 1) / 2**max_label


def discount(kind: str, ranks: Tensor) -> Tensor:
    """The weight of a rank; ranks may be real-valued.

    ``log2`` is ``1 / log2(1 + r)``. ``letor`` is what the LETOR 3.0 evaluation tool does: 1 at
    ranks 1 and 2, ``1 / log2(r)`` from there on.
    """
    one_of(kind, DISCOUNTS, "discount")
    if kind == "log2":
        return 1 / torch.log2(1 + ranks)
    return 1 / torch.log2(ranks.clamp_min(2))


@lru_cache(maxsize=256)
def discount_sums(kind: str, length: int, k: int | None) -> np.ndarray:
    """The sum of the discounts of the first r ranks (at most k), float64 ``[length + 1]``."""
    ranks = torch.arange(1, length + 1, dtype=torch.float64)
    weights = discount(kind, ranks) * (ranks <= (length if k is None else k))
    return np.concatenate([[0.0], weights.cumsum(0).numpy()])


def ratio(value: Tensor, best: Tensor) -> Tensor:
    """``value / best``, and 0 where ``best`` is 0, also for gradients."""
    return torch.where(best > 0, value / torch.where(best > 0, best, 1.0), 0.0)


def with_empty(value: Tensor, defined: Tensor, empty: str) -> Tensor:
    """``value [B]`` with what the convention ``empty`` says where it is not ``defined``."""
    one_of(empty, EMPTY, "convention for empty queries")
    stand_in = {"exclude": float("nan"), "zero": 0.0, "one": 1.0}[empty]
    return torch.where(defined, value, stand_in)
