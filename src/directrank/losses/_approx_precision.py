"""Precision at k under sigmoid ranks and the smooth truncation (Qin2010 eq. 16)."""

from __future__ import annotations

from functools import partial

from torch import Tensor

from directrank.lists.calls import ranking_loss
from directrank.losses._compose import compose
from directrank.metrics._precision import precision_of
from directrank.metrics.conventions import MIN_LABEL
from directrank.relaxations.real_valued import BETA
from directrank.relaxations.sigmoid import ALPHA, sigmoid


@ranking_loss
def approx_precision(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor | None = None,
    *,
    k: int,
    alpha: float = ALPHA,
    beta: float = BETA,
    min_label: float = MIN_LABEL,
) -> Tensor:
    """``-(1/k) Σ_i b_i sigmoid(beta (k + 1/2 - r_i))`` at sigmoid ranks r, per query.

    Args:
        scores: ``[B, L]``.
        labels: ``[B, L]``.
        mask: bool ``[B, L]``, True for a real document; None if all are real.
        k: cut-off; without one precision does not depend on the scores.
        alpha: steepness of the ranks.
        beta: steepness of the truncation.
        min_label: the least label that counts as relevant.

    Returns:
        The loss per query, ``[B]``; 0 for a query without a relevant document.

    >>> import torch
    >>> from directrank import losses
    >>> scores = torch.tensor([[0.5, 0.1, 0.2], [1.0, 2.0, 3.0]])
    >>> labels = torch.tensor([[2.0, 0.0, 1.0], [0.0, 0.0, 1.0]])
    >>> losses.approx_precision(scores, labels, k=2)
    tensor([-0.9709, -0.5000])
    """
    metric = partial(precision_of, k=k, min_label=min_label)
    return compose(metric, partial(sigmoid, alpha=alpha, beta=beta))(scores, labels, mask)
