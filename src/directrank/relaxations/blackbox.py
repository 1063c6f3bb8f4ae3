"""Exact ranks differentiated as a black box (Rolínek et al., 2020; Vlastelica et al., 2020)."""

from __future__ import annotations

import torch
from torch import Tensor

from directrank.lists.gradient import with_gradient
from directrank.lists.sorting import descending_order, inverse
from directrank.relaxations.placed import PlacedRanking
from directrank.relaxations.protocol import checks_options

#: The distance of interpolation, and the lead that a relevant document needs.
LAM, MARGIN = 100.0, 0.0


@checks_options
def blackbox(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor,
    generator: torch.Generator | None = None,
    *,
    lam: float | Tensor = LAM,
    margin: float = MARGIN,
) -> BlackboxRanking:
    """Blackbox ranks as a relaxation; arguments as for :class:`BlackboxRanking`."""
    return BlackboxRanking(scores, labels, mask, lam=lam, margin=margin)


class BlackboxRanking(PlacedRanking):
    """Exact ranks; the gradient of a loss with respect to scores is a finite difference of ranks.

    With g, the loss's gradient with respect to the ranks r(s), it is ``(r(s + lam g) - r(s)) /
    lam``, the slope of a piecewise linear interpolation of the loss (Vlastelica et al. 2020,
    algorithm 1). Scores are moved along g, and the gradient counts which documents pass each other.
    ``lam`` is on the scale of each list's own loss, however the losses of lists are summed or
    averaged afterwards.

    Args:
        scores: ``[B, L]``.
        labels: ``[B, L]``, used for the margin.
        mask: bool ``[B, L]``.
        lam: the distance of interpolation; a tensor ``[B, 1]`` sets it per list.
        margin: the lead that a relevant document (with a label above 0) needs over others: half of
            it is subtracted from its score and added to theirs before ranking (Rolínek et al.
            2020).
    """

    def __init__(
        self,
        scores: Tensor,
        labels: Tensor,
        mask: Tensor,
        *,
        lam: float | Tensor,
        margin: float,
    ) -> None:
        self.scores, self.mask, self.lam = scores, mask, lam
        self.shifted = scores.detach() + margin * (0.5 - (labels > 0).to(scores.dtype))
        order = descending_order(self.shifted, mask)
        place = inverse(order) + 1
        ranks = place.to(scores.dtype) + (self.shifted - self.shifted)  # NaN stays NaN
        super().__init__(order, place, ranks.requires_grad_(scores.requires_grad))

    def precisions(self, chosen: Tensor, k: int | None) -> Tensor:
        """See :class:`directrank.relaxations.Ranking`.

        It is ``Σ_i chosen_i (rank among the chosen)_i / r_i`` with a constant numerator (Rolínek et
        al.).
        """
        among = chosen.gather(1, self.order).cumsum(1).gather(1, self.place - 1)
        return (chosen * self._top(k) * among / self.ranks).sum(1)

    def by_scores(self, loss: Tensor) -> Tensor:
        """A ``loss [B]`` of these ranks as a function of the scores, with the above gradient."""
        if not loss.requires_grad:
            return loss
        (slopes,) = torch.autograd.grad(loss.sum(), self.ranks)
        moved = descending_order(self.shifted + self.lam * slopes, self.mask)
        steps = ((inverse(moved) + 1).to(slopes.dtype) - self.ranks.detach()) / self.lam
        return with_gradient(self.scores, loss.detach(), steps.masked_fill(~self.mask, 0.0))
