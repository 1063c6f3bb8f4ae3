"""Precision at k under sigmoid ranks and the smooth truncation (Qin2010 eq. 16)."""

from __future__ import annotations

from torch import Tensor

from directrank.losses._compose import compose


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
    metric = {"name": "precision", "k": k, "min_label": min_label}
    return compose(metric, {"name": "sigmoid", "alpha": alpha, "beta": beta})(scores, labels, mask)
