"""Pointwise root of the mean squared error (Pobrotyn2021)."""

from __future__ import annotations

import torch
from torch import Tensor

from directrank.lists.inputs import nothing_masked, unfilled
from directrank.losses._gradient import with_gradient


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
    """
    scores, labels, mask = unfilled(scores, labels, mask)
    hidden = None if nothing_masked(mask) else ~mask
    output = scores.detach() if levels is None else levels * torch.sigmoid(scores.detach())
    error = output - labels
    if hidden is not None:
        error.masked_fill_(hidden, 0.0)
    count = mask.sum(1).clamp_min_(1)
    value = ((error * error).sum(1) / count).sqrt()
    slope = error / (value.clamp_min(torch.finfo(value.dtype).tiny) * count).unsqueeze(1)
    if levels is not None:
        slope *= output * (1 - output / levels)
        if hidden is not None:
            slope.masked_fill_(hidden, 0.0)  # once more: a squashed NaN times 0
    return with_gradient(scores, value, slope)
