"""SL@K, a softmax loss for the first documents (Yang et al., KDD 2025)."""

from __future__ import annotations

import torch
from torch import Tensor

from directrank.lists.calls import ranking_loss
from directrank.lists.conventions import GAIN, gains, ratio
from directrank.lists.inputs import checked
from directrank.system.errors import ArgumentError


@ranking_loss
def sl_at_k(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor | None = None,
    *,
    k: int,
    tau: float = 1.0,
    beta: float = 1.0,
    gain: str = GAIN,
) -> Tensor:
    """``(1/Σ_i G(y_i)) Σ_i G(y_i) σ(beta (s_i - q)) log Σ_j exp((s_j - s_i) / tau)`` per query, q
    being the score at rank k, a constant of the gradient.

    The paper's loss is for relevant and other items; it is the mean over the relevant ones here,
    and grades weight it by their gains. The weights have a gradient, as in the authors' code, which
    pulls documents down: it is small if ``tau`` is small and ``beta`` is not large. The paper
    estimates q once in many epochs because it samples items; lists are whole here, so q is exact.
    Lists of at most k documents are not cut off: their weights are 1.

    Source: Yang et al., KDD 2025.

    Args:
        scores: ``[B, L]``.
        labels: ``[B, L]``.
        mask: bool ``[B, L]``, True for a real document; None if all are real.
        k: cut-off.
        tau: temperature of the softmax (the paper's τ_d).
        beta: steepness of the cut-off (the paper's 1/τ_w).
        gain: ``exp2`` (2^y - 1) or ``linear`` (y).

    Returns:
        The loss per query, ``[B]``; 0 for a query without gain.

    Raises:
        ArgumentError: there is no cut-off.

    >>> import torch
    >>> from directrank import losses
    >>> scores = torch.tensor([[0.5, 0.1, 0.2], [1.0, 2.0, 3.0]])
    >>> labels = torch.tensor([[2.0, 0.0, 1.0], [0.0, 0.0, 1.0]])
    >>> losses.sl_at_k(scores, labels, k=2)
    tensor([0.5267, 0.2980])
    """
    if k is None:
        raise ArgumentError("k must be a whole number, 1 or more, not None")
    scores, labels, mask = checked(scores, labels, mask)
    weights = gains(labels, gain)
    share = ratio(weights, weights.sum(1, keepdim=True))
    # Not minus infinity, which would give NaN for a list of padding only.
    shown = (scores / tau).masked_fill(~mask, torch.finfo(scores.dtype).min)
    costs = shown.logsumexp(1, keepdim=True) - scores / tau
    return (share * _within(k, scores, mask, beta) * costs).masked_fill(~mask, 0.0).sum(1)


def _within(k: int, scores: Tensor, mask: Tensor, beta: float) -> Tensor | float:
    """The degree to which each document is among the first k, ``[B, L]``."""
    if k >= scores.shape[1]:
        return 1.0
    last = scores.detach().masked_fill(~mask, -torch.inf).topk(k, 1).values[:, -1:]
    cut = mask.sum(1, keepdim=True) > k
    within = torch.sigmoid(beta * (scores - last.masked_fill(~cut, 0.0)))
    return torch.where(cut, within, 1.0)
