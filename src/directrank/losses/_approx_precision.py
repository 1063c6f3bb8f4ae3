"""Precision at k under sigmoid ranks and the smooth truncation (Qin2010 eq. 16)."""

from __future__ import annotations

from torch import Tensor

from directrank.lists.inputs import checked
from directrank.metrics._precision import precision_of
from directrank.metrics.conventions import Judgements
from directrank.relaxations.sigmoid import SigmoidRanking


def approx_precision(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor | None = None,
    *,
    k: int,
    alpha: float = 10.0,
    beta: float = 10.0,
    min_label: float = 1.0,
) -> Tensor:
    """``-(1/k) Σ_i b_i sigmoid(beta (k + 1/2 - r_i))`` at sigmoid ranks r, per query.

    Args:
        scores: ``[B, L]``.
        labels: ``[B, L]``.
        mask: bool ``[B, L]``, True for a real document; None where all are real.
        k: cut-off; without one precision does not depend on the scores.
        alpha: steepness of the ranks.
        beta: steepness of the truncation.
        min_label: the least label that counts as relevant.

    Returns:
        The loss per query, ``[B]``; 0 for a query without a relevant document.
    """
    scores, labels, mask = checked(scores, labels, mask)
    ranking = SigmoidRanking(scores, mask, alpha=alpha, beta=beta)
    value, _ = precision_of(ranking, Judgements(labels, mask), k, min_label=min_label)
    return -value
