"""The softmax over documents of unique ratings (Zhu and Klabjan, WSDM 2020; Rax)."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import softplus

from directrank.lists.calls import ranking_loss
from directrank.lists.conventions import GAIN, gains
from directrank.lists.gradient import once_differentiable
from directrank.lists.inputs import checked


@ranking_loss
def unique_softmax(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor | None = None,
    *,
    gain: str = GAIN,
    document_weights: Tensor | None = None,
) -> Tensor:
    """``-Σ_i G(y_i) log(exp(s_i) / (exp(s_i) + Σ_{j: y_j < y_i} exp(s_j)))`` per query.

    Each document competes with those of smaller labels only, so that ties have no cost. It is
    uRank's likelihood with its gains as weights, and Rax's ``unique_softmax_loss``.

    Source: uRank, Zhu and Klabjan, WSDM 2020.

    Args:
        scores: ``[B, L]``.
        labels: ``[B, L]``.
        mask: bool ``[B, L]``, True for a real document; None if all are real.
        gain: ``exp2`` (2^y - 1) or ``linear`` (y).
        document_weights: the factor of each document's term of the sum, in the shape of the scores.

    Returns:
        The loss per query, ``[B]``; 0 if all labels are equal.

    >>> import torch
    >>> from directrank import losses
    >>> scores = torch.tensor([[0.5, 0.1, 0.2], [1.0, 2.0, 3.0]])
    >>> labels = torch.tensor([[2.0, 0.0, 1.0], [0.0, 0.0, 1.0]])
    >>> losses.unique_softmax(scores, labels)
    tensor([3.2847, 0.4076])
    """
    scores, labels, mask = checked(scores, labels, mask)
    weights = gains(labels, gain)
    if document_weights is not None:
        weights = weights * document_weights
    # By rising label, those that are no documents last: the rivals of a document are the first
    # ones, whose sum of exponentials is a cumulative one.
    rising, order = labels.masked_fill(~mask, torch.inf).sort(1)
    rivals = torch.searchsorted(rising, rising)
    own = scores.gather(1, order)
    sums = _CumulativeLogSum.apply(own).gather(1, (rivals - 1).clamp_min(0))
    costs = softplus(sums - own, threshold=40).masked_fill(rivals == 0, 0.0)
    return (weights.gather(1, order) * costs).masked_fill(~mask.gather(1, order), 0.0).sum(1)


class _CumulativeLogSum(torch.autograd.Function):
    """``logcumsumexp`` of each row, whose second derivative PyTorch takes for NaN at times."""

    @staticmethod
    def forward(ctx, values: Tensor) -> Tensor:
        ctx.save_for_backward(values)
        return values.logcumsumexp(1)

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient: Tensor) -> Tensor:
        (values,) = ctx.saved_tensors
        with torch.enable_grad():
            again = values.detach().requires_grad_()
            (found,) = torch.autograd.grad(again.logcumsumexp(1), again, gradient)
        return found
