"""Compute metrics from scores: sort them, and apply the convention for empty queries."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import torch
from torch import Tensor

from directrank.lists.inputs import checked, one_of
from directrank.lists.parameters import NUMBERS, check_options
from directrank.metrics.conventions import TIES, Judgements, with_empty
from directrank.metrics.mean_ranks import MeanRanks
from directrank.relaxations.exact import ExpectedTies, StableRanking, TiesByValue
from directrank.relaxations.protocol import Ranking

#: A metric over a ranking: its value (0 if it is not defined) and whether it is defined, ``[B]``.
Formula = Callable[..., tuple[Tensor, Tensor]]


class Evaluation:
    """Scores and labels of B lists, sorted once for any number of metrics.

    Sums use float64, whatever the type of the scores, so that values agree with other tools.

    Args:
        scores: ``[B, L]``, compared in their own type.
        labels: ``[B, L]``.
        mask: bool ``[B, L]`` or None.
    """

    def __init__(self, scores: Tensor, labels: Tensor, mask: Tensor | None) -> None:
        self.scores, _, self.mask = checked(scores.detach(), labels, mask)
        wide = labels.detach().double().masked_fill(~self.mask, 0.0)
        self.judgements = Judgements(wide, self.mask)

    @cached_property
    def stable(self) -> StableRanking:
        """The ranking with ties in order of appearance."""
        return StableRanking(self.scores, self.mask)

    @cached_property
    def expected(self) -> ExpectedTies:
        """The expectation over all orders of ties."""
        return ExpectedTies(self.scores, self.mask)

    @cached_property
    def optimistic(self) -> TiesByValue:
        """The ranking with ties by falling label, the credit that lists stored in label order
        receive.

        No order of ties has a higher value of any metric at any cut-off.
        """
        return TiesByValue(self.scores, self.mask, self.judgements.labels)

    @cached_property
    def pessimistic(self) -> TiesByValue:
        """The ranking with ties by rising label, the worst of their orders."""
        return TiesByValue(self.scores, self.mask, -self.judgements.labels)

    @cached_property
    def mean_ranks(self) -> MeanRanks:
        """Ranks that tied documents share, for correlations."""
        return MeanRanks(self.scores, self.mask)

    @torch.no_grad()
    def value(
        self,
        formula: Formula,
        *,
        empty: str = "exclude",
        ties: str | None = None,
        **options: object,
    ) -> Tensor:
        """The metric per query, float64 ``[B]``.

        Without a rule for ties it is evaluated by that of its formula, which is ``stable`` where it
        has none of its own.
        """
        options = check_options(options, NUMBERS)
        if ties is None:
            ties = getattr(formula, "ties", "stable")
        else:
            one_of(ties, TIES, "rule for ties")
        ranking: Ranking = getattr(self, ties)
        value, defined = formula(ranking, self.judgements, **options)
        return with_empty(value, defined, empty)
