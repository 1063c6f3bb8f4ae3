"""Softmax cross-entropy with the labels as target (Bruch et al., ICTIR 2019; TF-Ranking, Rax)."""

from __future__ import annotations

import torch
from torch import Tensor

from directrank.lists.calls import ranking_loss
from directrank.lists.conventions import ratio
from directrank.lists.flat import hidden, sums
from directrank.lists.inputs import checked_lists
from directrank.losses._xe_ndcg import cross_entropy


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
    scores, labels, lists = checked_lists(scores, labels, mask)
    target = labels if document_weights is None else hidden(labels * document_weights, lists)
    mean = cross_entropy(scores, target, torch.zeros_like(target), lists)
    value = sums(target, lists) * mean
    return ratio(value, sums(labels, lists)) if normalize else value
