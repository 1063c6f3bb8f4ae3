"""Metrics' expectations under a distribution over ranks per document."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from directrank.relaxations.protocol import no_cutoff


class RankDistribution:
    """Each document has a probability for each rank; documents are treated as independent.

    Args:
        first: a function of a cut-off k that returns the probabilities of the first k ranks, or of
            all ranks if it is None: ``[B, i, r]``, of document i at rank r (counted from 0 along
            the axis); 0 at masked documents and at ranks beyond the list.
    """

    def __init__(self, first: Callable[[int | None], Tensor]) -> None:
        self.first = first

    def weigh(self, gains: Tensor, weight: Callable[[Tensor], Tensor], k: int | None) -> Tensor:
        """See :class:`directrank.relaxations.Ranking`."""
        top = self.first(k)
        return (gains * (top @ weight(_ranks(top)))).sum(1)

    def count(self, chosen: Tensor, k: int | None) -> Tensor:
        """See :class:`directrank.relaxations.Ranking`."""
        if k is None:
            raise no_cutoff()
        return (chosen * self.first(k).sum(2)).sum(1)

    def precisions(self, chosen: Tensor, k: int | None) -> Tensor:
        """See :class:`directrank.relaxations.Ranking`."""
        return expected_precisions(self.first(k), chosen)

    def cascade(self, stops: Tensor, k: int | None) -> Tensor:
        """See :class:`directrank.relaxations.Ranking`."""
        return expected_cascade(self.first(k), stops)


def expected_precisions(probabilities: Tensor, chosen: Tensor) -> Tensor:
    """``Σ_r (1/r) Σ_i chosen_i p_ir (1 + Σ_{j≠i} chosen_j Σ_{q<r} p_jq)``.

    Args:
        probabilities: p, ``[B, i, r]``.
        chosen: ``[B, i]``.

    Returns:
        ``[B]``.
    """
    before = _before(probabilities) * chosen.unsqueeze(2)
    others = 1 + before.sum(1, keepdim=True) - before
    at_rank = probabilities / _ranks(probabilities)
    return (chosen.unsqueeze(2) * at_rank * others).sum((1, 2))


def expected_cascade(probabilities: Tensor, stops: Tensor) -> Tensor:
    """``Σ_r (1/r) Σ_i stops_i p_ir Π_{j≠i} (1 - stops_j Σ_{q<r} p_jq)``.

    Args:
        probabilities: p, ``[B, i, r]``.
        stops: the probability that each document ends the user's search, ``[B, i]``.

    Returns:
        ``[B]``.
    """
    passed = 1 - _before(probabilities) * stops.unsqueeze(2)
    reached = _product_of_others(passed)
    at_rank = probabilities / _ranks(probabilities)
    return (stops.unsqueeze(2) * at_rank * reached).sum((1, 2))


def _ranks(probabilities: Tensor) -> Tensor:
    """1 … R, the ranks along the last axis, in the type of the probabilities."""
    R = probabilities.shape[2]
    return torch.arange(1, R + 1, dtype=probabilities.dtype, device=probabilities.device)


def _before(probabilities: Tensor) -> Tensor:
    """Probability of each document before each rank, ``[B, i, r]``."""
    return (probabilities.cumsum(2) - probabilities).clamp(0, 1)


def _product_of_others(values: Tensor) -> Tensor:
    """``Π_{j≠i} values_j`` along axis 1, without division: values may be 0."""
    ones = torch.ones_like(values[:, :1])
    before = torch.cat([ones, values[:, :-1].cumprod(1)], 1)
    after = torch.cat([values[:, 1:].flip(1).cumprod(1).flip(1), ones], 1)
    return before * after
