"""LambdaRank (Burges2006): RankNet's costs, weighted by the change of NDCG by a swap."""

from __future__ import annotations

from torch import Tensor
from torch.nn.functional import softplus

from directrank.kernels.dispatch import accelerated
from directrank.lists.calls import ranking_loss
from directrank.lists.conventions import discount, ratio
from directrank.lists.inputs import checked, one_of
from directrank.lists.pairs import both, differences
from directrank.lists.sorting import descending_order, inverse
from directrank.losses._needs import needs
from directrank.metrics.conventions import Judgements

CUTOFFS = ("both", "either")


@ranking_loss
@needs(flat=True)
@accelerated
def lambdarank(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor | None = None,
    *,
    k: int | None = None,
    cutoff: str = "both",
    sigma: float = 1.0,
    gain: str = "exp2",
) -> Tensor:
    """``Σ |ΔNDCG_ij| log(1 + exp(-sigma (s_i - s_j)))`` over pairs with ``y_i > y_j``, per query.

    The weights, from the current ranks, are constants of the gradient, which is therefore
    LambdaRank's: ``-dC/ds_i = Σ_j sigma |ΔNDCG_ij| / (1 + exp(sigma (s_i - s_j)))``.

    Source: Burges2006, equation 9.

    Args:
        scores: ``[B, L]``.
        labels: ``[B, L]``.
        mask: bool ``[B, L]``, True for a real document; None if all are real.
        k: truncation; None uses all pairs with different labels, as in Burges2006.
        cutoff: ``both`` documents of a pair among the first k, and NDCG normalised at k
            (Pobrotyn2021's LambdaRank@k); or ``either``, and NDCG normalised over the whole list
            (LightGBM's ``lambdarank_truncation_level``).
        sigma: steepness.
        gain: ``exp2`` (2^y - 1), ``linear`` (y) or ``burges2006`` (0, 3, 7, 15, 31).

    Returns:
        The loss per query, ``[B]``; 0 if there is no pair.

    >>> import torch
    >>> from directrank import losses
    >>> scores = torch.tensor([[0.5, 0.1, 0.2], [1.0, 2.0, 3.0]])
    >>> labels = torch.tensor([[2.0, 0.0, 1.0], [0.0, 0.0, 1.0]])
    >>> losses.lambdarank(scores, labels)
    tensor([0.3479, 0.1791])
    """
    one_of(cutoff, CUTOFFS, "cut-off rule")
    scores, labels, mask = checked(scores, labels, mask)
    judgements = Judgements(labels, mask)
    gains = judgements.gains(gain)
    ranks = inverse(descending_order(scores, mask)) + 1
    pairs = (differences(labels) > 0) & both(mask)
    if k is not None:
        within = (ranks <= k).unsqueeze(2), (ranks <= k).unsqueeze(1)
        pairs &= within[0] & within[1] if cutoff == "both" else within[0] | within[1]
    change = differences(gains) * differences(discount("log2", ranks.to(scores.dtype))).abs()
    costs = softplus(-sigma * differences(scores), threshold=40)
    best = judgements.ideal_dcg(gain, "log2", k if cutoff == "both" else None)
    return ratio((change * costs).masked_fill(~pairs, 0.0).sum((1, 2)), best)
