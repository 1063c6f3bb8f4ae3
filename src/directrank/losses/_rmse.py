"""Pointwise root of the mean squared error (Pobrotyn2021)."""

from __future__ import annotations

import torch
from torch import Tensor

from directrank.lists.gradient import with_gradient
from directrank.lists.inputs import nothing_masked, validated


def rmse(
    scores: Tensor, labels: Tensor, mask: Tensor | None = None, *, levels: float | None = 5.0
) -> Tensor:
    """``sqrt(mean_i (y_i - levels · sigmoid(s_i))²)`` per query.

    Args:
        scores: ``[B, L]``.
        labels: ``[B, L]``.
        mask: bool ``[B, L]``, True for a real document; None where all are real.
        levels: number of relevance levels, the range of the squashed scores; None compares labels
            with the scores as they are.

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
    scores, labels, mask = validated(scores, labels, mask)
    if mask is not None and nothing_masked(mask):
        mask = None
    values = scores.detach()
    output = values if levels is None else levels * torch.sigmoid(values)
    error = output - labels
    count: Tensor | int = max(scores.shape[1], 1)
    if mask is not None:
        error.masked_fill_(~mask, 0.0)
        count = mask.sum(1).clamp_min_(1)
    value = ((error * error).sum(1) / count).sqrt()
    gradient = error / (value.clamp_min(torch.finfo(value.dtype).tiny) * count).unsqueeze(1)
    if levels is not None:
        gradient *= output * (1 - output / levels)
        if mask is not None:
            gradient.masked_fill_(~mask, 0.0)  # once more: a squashed NaN times 0
    return with_gradient(scores, value, gradient)
