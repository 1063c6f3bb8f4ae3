"""RankNet's pairwise logistic loss (Burges et al., 2005; Burges2006 eq. 8)."""

from __future__ import annotations

from torch import Tensor
from torch.nn.functional import softplus

from directrank.kernels.dispatch import accelerated
from directrank.lists.calls import ranking_loss
from directrank.lists.inputs import checked, one_of
from directrank.lists.pairs import both, differences
from directrank.lists.sorting import top
from directrank.losses._needs import needs

PAIR_REDUCTIONS = ("sum", "mean")


@ranking_loss
@needs(flat=True)
@accelerated
def ranknet(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor | None = None,
    *,
    k: int | None = None,
    sigma: float = 1.0,
    pair_reduction: str = "sum",
) -> Tensor:
    """``Σ log(1 + exp(-sigma (s_i - s_j)))`` over the pairs with ``y_i > y_j``, per query.

    Source: Burges et al., ICML 2005; Burges2006, equation 8.

    Args:
        scores: ``[B, L]``.
        labels: ``[B, L]``.
        mask: bool ``[B, L]``, True for a real document; None if all are real.
        k: use only pairs whose documents are both among the first k by current score
            (Pobrotyn2021's RankNet@k); None takes all pairs.
        sigma: steepness.
        pair_reduction: ``sum`` over the pairs of a query (Burges2006) or their ``mean``
            (TF-Ranking, allRank).

    Returns:
        The loss per query, ``[B]``; 0 if there is no pair.

    >>> import torch
    >>> from directrank import losses
    >>> scores = torch.tensor([[0.5, 0.1, 0.2], [1.0, 2.0, 3.0]])
    >>> labels = torch.tensor([[2.0, 0.0, 1.0], [0.0, 0.0, 1.0]])
    >>> losses.ranknet(scores, labels)
    tensor([1.7118, 0.4402])
    """
    one_of(pair_reduction, PAIR_REDUCTIONS, "reduction of pairs")
    scores, labels, mask = checked(scores, labels, mask)
    if k is not None:
        mask = top(k, scores, mask)
    pairs = (differences(labels) > 0) & both(mask)
    costs = softplus(-sigma * differences(scores), threshold=40)
    value = costs.masked_fill(~pairs, 0.0).sum((1, 2))
    return value / pairs.sum((1, 2)).clamp_min(1) if pair_reduction == "mean" else value
