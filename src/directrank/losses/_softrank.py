"""SoftRank (Taylor et al., 2008): expected NDCG under Gaussian scores."""

from __future__ import annotations

from functools import partial

from torch import Tensor

from directrank.lists.calls import ranking_loss
from directrank.losses._compose import compose
from directrank.metrics._ndcg import ndcg_of
from directrank.relaxations.rank_binomial import SIGMA, rank_binomial


@ranking_loss
def softrank(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor | None = None,
    *,
    sigma: float = SIGMA,
    k: int | None = None,
) -> Tensor:
    """Minus ``(1/maxDCG) Σ_j G(y_j) Σ_r p_j(r) D(r)``, with the rank-binomial p, per query.

    Args:
        scores: ``[B, L]``, the means of the Gaussians.
        labels: ``[B, L]``.
        mask: bool ``[B, L]``, True for a real document; None if all are real.
        sigma: their standard deviation.
        k: cut-off; None takes the whole list.

    Returns:
        The loss per query, ``[B]``; 0 for a query without gain.

    >>> import torch
    >>> from directrank import losses
    >>> scores = torch.tensor([[0.5, 0.1, 0.2], [1.0, 2.0, 3.0]])
    >>> labels = torch.tensor([[2.0, 0.0, 1.0], [0.0, 0.0, 1.0]])
    >>> losses.softrank(scores, labels)
    tensor([-0.7988, -0.8870])
    """
    ranks = partial(rank_binomial, sigma=sigma)
    return compose(partial(ndcg_of, k=k), ranks)(scores, labels, mask)
