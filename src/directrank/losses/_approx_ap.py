"""ApproxAP (Qin2010 eq. 14)."""

from __future__ import annotations

from torch import Tensor

from directrank.lists.inputs import checked
from directrank.metrics._average_precision import average_precision_of
from directrank.metrics.conventions import Judgements
from directrank.relaxations.sigmoid import SigmoidRanking


def approx_ap(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor | None = None,
    *,
    alpha: float = 10.0,
    beta: float = 10.0,
    k: int | None = None,
    min_label: float = 1.0,
) -> Tensor:
    """Minus average precision at sigmoid ranks, per query.

    ``(1/R) Σ_i b_i [1 + Σ_{j≠i} b_j sigmoid(beta (r_i - r_j))] / r_i`` with
    ``r_i = 1 + Σ_{j≠i} sigmoid(alpha (s_j - s_i))``.

    Args:
        scores: ``[B, L]``.
        labels: ``[B, L]``.
        mask: bool ``[B, L]``, True for a real document; None where all are real.
        alpha: steepness of the ranks.
        beta: steepness of the comparison of ranks, and of the truncation.
        k: cut-off, through the smooth truncation; None takes the whole list.
        min_label: the least label that counts as relevant.

    Returns:
        The loss per query, ``[B]``; 0 for a query without a relevant document.
    """
    scores, labels, mask = checked(scores, labels, mask)
    ranking = SigmoidRanking(scores, mask, alpha=alpha, beta=beta)
    value, _ = average_precision_of(ranking, Judgements(labels, mask), k, min_label=min_label)
    return -value
