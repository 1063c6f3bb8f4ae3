"""Pointwise root of the mean squared error (Pobrotyn2021)."""

from __future__ import annotations

import torch
from torch import Tensor

from directrank.kernels.dispatch import accelerated
from directrank.lists.calls import ranking_loss
from directrank.lists.flat import counts, hidden, spread, sums
from directrank.lists.gradient import with_gradient
from directrank.lists.inputs import nothing_masked, validated


@ranking_loss
@accelerated
def rmse(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor | None = None,
    *,
    levels: float | None = 5.0,
    document_weights: Tensor | None = None,
) -> Tensor:
    """``sqrt(mean_i (y_i - levels · sigmoid(s_i))²)`` per query.

    Source: Pobrotyn2021, section 5.4.

    Args:
        scores: ``[B, L]``.
        labels: ``[B, L]``.
        mask: bool ``[B, L]``, True for a real document; None if all are real.
        levels: the number of relevance levels, which is the range of the squashed scores; None
            compares labels with the raw scores.
        document_weights: weights of the mean over the documents, in the shape of the scores.

    Returns:
        The loss per query, ``[B]``; 0 for a list without documents. At a perfect fit, where the
        root has no derivative, the gradient is 0.

    >>> import torch
    >>> from directrank import losses
    >>> scores = torch.tensor([[0.5, 0.1, 0.2], [1.0, 2.0, 3.0]])
    >>> labels = torch.tensor([[2.0, 0.0, 1.0], [0.0, 0.0, 1.0]])
    >>> losses.rmse(scores, labels)
    tensor([1.9311, 3.9546])
    """
    scores, labels, lists = validated(scores, labels, mask)
    if isinstance(lists, Tensor) and nothing_masked(lists):
        lists = None
    values = scores.detach()
    output = values if levels is None else levels * torch.sigmoid(values)
    error = hidden(output - labels, lists)
    if document_weights is None:
        weighted = error
        total = max(scores.shape[1], 1) if lists is None else counts(lists).clamp_min(1)
    else:
        weights = hidden(document_weights.to(error), lists)
        weighted, total = weights * error, sums(weights, lists)
        total.masked_fill_(total <= 0, 1.0)
    value = (sums(weighted * error, lists) / total).sqrt()
    gradient = weighted / spread(value.clamp_min(torch.finfo(value.dtype).tiny) * total, lists)
    if levels is not None:
        gradient *= output * (1 - output / levels)
        gradient = hidden(gradient, lists)  # once more: a squashed NaN times 0
    return with_gradient(scores, value, gradient, lists)
