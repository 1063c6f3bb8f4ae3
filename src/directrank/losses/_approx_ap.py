"""ApproxAP (Qin2010 eq. 14)."""

from __future__ import annotations

from functools import partial

from torch import Tensor

from directrank.lists.calls import ranking_loss
from directrank.losses._compose import compose
from directrank.metrics._average_precision import average_precision_of
from directrank.metrics.conventions import MIN_LABEL
from directrank.relaxations.real_valued import BETA
from directrank.relaxations.sigmoid import ALPHA, sigmoid


@ranking_loss
def approx_ap(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor | None = None,
    *,
    alpha: float = ALPHA,
    beta: float = BETA,
    k: int | None = None,
    min_label: float = MIN_LABEL,
) -> Tensor:
    """Minus average precision at sigmoid ranks, per query.

    ``(1/R) Σ_i b_i [1 + Σ_{j≠i} b_j sigmoid(beta (r_i - r_j))] / r_i`` with
    ``r_i = 1 + Σ_{j≠i} sigmoid(alpha (s_j - s_i))``.

    Args:
        scores: ``[B, L]``.
        labels: ``[B, L]``.
        mask: bool ``[B, L]``, True for a real document; None if all are real.
        alpha: steepness of the ranks.
        beta: steepness of the comparison of ranks, and of the truncation.
        k: cut-off, through the smooth truncation; None takes the whole list.
        min_label: the least label that counts as relevant.

    Returns:
        The loss per query, ``[B]``; 0 for a query without a relevant document.

    >>> import torch
    >>> from directrank import losses
    >>> scores = torch.tensor([[0.5, 0.1, 0.2], [1.0, 2.0, 3.0]])
    >>> labels = torch.tensor([[2.0, 0.0, 1.0], [0.0, 0.0, 1.0]])
    >>> losses.approx_ap(scores, labels)
    tensor([-0.9194, -1.0000])
    """
    metric = partial(average_precision_of, k=k, min_label=min_label)
    return compose(metric, partial(sigmoid, alpha=alpha, beta=beta))(scores, labels, mask)
