"""Softmax cross-entropy with the labels as target (Bruch et al., 2019), and its Poly-1 form.

The latter is of Leng et al. (ICLR 2022). TF-Ranking and Rax have both.
"""

from __future__ import annotations

import torch
from torch import Tensor

from directrank.lists.calls import ranking_loss
from directrank.lists.conventions import ratio
from directrank.lists.inputs import checked


@ranking_loss
def softmax_cross_entropy(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor | None = None,
    *,
    normalize: bool = False,
    document_weights: Tensor | None = None,
) -> Tensor:
    """``-Σ_i y_i log softmax(s)_i`` per query, with labels as they are or divided by their sum.

    With labels of 0 and 1 it bounds mean reciprocal rank and NDCG (Bruch et al., 2019), and with
    one relevant document it is the loss of a classifier, or InfoNCE. It is Rax's ``softmax_loss``.

    Args:
        scores: ``[B, L]``.
        labels: ``[B, L]``.
        mask: bool ``[B, L]``, True for a real document; None if all are real.
        normalize: divide the labels by their sum over the query. Otherwise, as in Rax, a query
            counts in proportion to this sum.
        document_weights: the factor of each document's term of the sum, in the shape of the scores.

    Returns:
        The loss per query, ``[B]``; 0 for a query without a relevant document.

    >>> import torch
    >>> from directrank import losses
    >>> scores = torch.tensor([[0.5, 0.1, 0.2], [1.0, 2.0, 3.0]])
    >>> labels = torch.tensor([[2.0, 0.0, 1.0], [0.0, 0.0, 1.0]])
    >>> losses.softmax_cross_entropy(scores, labels)
    tensor([2.9403, 0.4076])
    >>> losses.softmax_cross_entropy(scores, labels, normalize=True)
    tensor([0.9801, 0.4076])
    """
    scores, labels, mask = checked(scores, labels, mask)
    target = labels if document_weights is None else labels * document_weights
    value = -(target * _logs(scores, mask)).masked_fill(~mask, 0.0).sum(1)
    return ratio(value, labels.sum(1)) if normalize else value


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

    Source: Leng et al., ICLR 2022.

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
    logs, total = _logs(scores, mask), labels.sum(1)
    missed = total - (labels * logs.exp()).sum(1)
    return -(labels * logs).sum(1) + epsilon * ratio(missed, total)


def _logs(scores: Tensor, mask: Tensor) -> Tensor:
    """The logarithm of the softmax of the scores, ``[B, L]``; 0 where masked."""
    # Not minus infinity, which would give NaN for a list of padding only.
    shown = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    return shown.log_softmax(1).masked_fill(~mask, 0.0)
