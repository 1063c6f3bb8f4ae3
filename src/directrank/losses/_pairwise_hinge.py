"""The hinge loss over pairs, Ranking SVM's (Herbrich et al., 2000; Joachims, KDD 2002)."""

from __future__ import annotations

from torch import Tensor

from directrank.kernels.dispatch import accelerated
from directrank.lists.calls import ranking_loss
from directrank.lists.inputs import checked
from directrank.lists.pairs import both, differences
from directrank.losses._needs import needs


@ranking_loss
@needs(flat=True)
@accelerated
def pairwise_hinge(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor | None = None,
    *,
    margin: float = 1.0,
) -> Tensor:
    """``Σ max(0, margin - (s_i - s_j))`` over the pairs with ``y_i > y_j``, per query.

    With a margin of 1 it is the ``pairwise_hinge_loss`` of Rax and TF-Ranking.

    Source: Herbrich et al., 2000; Joachims, KDD 2002.

    Args:
        scores: ``[B, L]``.
        labels: ``[B, L]``.
        mask: bool ``[B, L]``, True for a real document; None if all are real.
        margin: the lead below which a pair in the right order still costs something.

    Returns:
        The loss per query, ``[B]``; 0 if there is no pair.

    >>> import torch
    >>> from directrank import losses
    >>> scores = torch.tensor([[0.5, 0.1, 0.2], [1.0, 2.0, 3.0]])
    >>> labels = torch.tensor([[2.0, 0.0, 1.0], [0.0, 0.0, 1.0]])
    >>> losses.pairwise_hinge(scores, labels)
    tensor([2.2000, 0.0000])
    """
    scores, labels, mask = checked(scores, labels, mask)
    pairs = (differences(labels) > 0) & both(mask)
    costs = (margin - differences(scores)).clamp_min(0)
    return costs.masked_fill(~pairs, 0.0).sum((1, 2))
