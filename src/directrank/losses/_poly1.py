"""The Poly-1 loss of a softmax (Leng et al., ICLR 2022; Rax)."""

from __future__ import annotations

import torch
from torch import Tensor

from directrank.lists.calls import ranking_loss
from directrank.lists.conventions import ratio
from directrank.lists.inputs import checked
from directrank.losses._softmax_cross_entropy import softmax_cross_entropy


@ranking_loss
def poly1(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor | None = None,
    *,
    epsilon: float = 1.0,
) -> Tensor:
    """``-Σ_i y_i log p_i + epsilon (1 - Σ_i p_i y_i / Σ_j y_j)``, ``p = softmax(s)``, per query.

    Cross-entropy is the series ``Σ_j (1 - p)^j / j`` of the target's probability p; the loss adds
    ``epsilon`` to the coefficient of its first term. The first part is
    :func:`directrank.losses.softmax_cross_entropy` with raw labels, as in Rax's
    ``poly1_softmax_loss``.

    Args:
        scores: ``[B, L]``.
        labels: ``[B, L]``.
        mask: bool ``[B, L]``, True for a real document; None if all are real.
        epsilon: what is added to the first coefficient; -1 removes the term, 0 is cross-entropy.

    Returns:
        The loss per query, ``[B]``; 0 for a query without a relevant document, for which Rax has
        the constant ``epsilon (1 - 1/n)``, n being its number of documents.

    >>> import torch
    >>> from directrank import losses
    >>> scores = torch.tensor([[0.5, 0.1, 0.2], [1.0, 2.0, 3.0]])
    >>> labels = torch.tensor([[2.0, 0.0, 1.0], [0.0, 0.0, 1.0]])
    >>> losses.poly1(scores, labels)
    tensor([3.5614, 0.7424])
    """
    scores, labels, mask = checked(scores, labels, mask)
    total = labels.sum(1, keepdim=True)
    # Not minus infinity, which would give NaN for a list of padding only.
    chance = scores.masked_fill(~mask, torch.finfo(scores.dtype).min).softmax(1)
    missed = (total.squeeze(1) > 0).to(total) - (ratio(labels, total) * chance).sum(1)
    return softmax_cross_entropy(scores, labels, mask) + epsilon * missed
