"""ListNet with top-one probabilities (Cao et al., 2007)."""

from __future__ import annotations

import torch
from torch import Tensor

from directrank.kernels.compiled import array, over_lists, usable
from directrank.lists.inputs import checked, unfilled
from directrank.losses._gradient import with_gradient
from directrank.relaxations._pairs import FAR


def listnet(scores: Tensor, labels: Tensor, mask: Tensor | None = None) -> Tensor:
    """Cross entropy of the scores' softmax under the labels' softmax, per query.

    ``-Σ_i softmax(y)_i log softmax(s)_i`` with the raw labels in the exponent.

    Args:
        scores: ``[B, L]``.
        labels: ``[B, L]``.
        mask: bool ``[B, L]``, True for a real document; None where all are real.

    Returns:
        The loss per query, ``[B]``; 0 for a list without documents.
    """
    scores, labels, mask = unfilled(scores, labels, mask)
    work = _compiled if usable(scores) else _value_and_gradient
    return with_gradient(scores, *work(scores.detach(), labels, mask))


def _value_and_gradient(scores: Tensor, labels: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """The loss ``[B]`` and its gradient ``[B, L]``."""
    scores, labels, mask = checked(scores, labels, mask)
    there = mask.to(scores.dtype)
    # Not minus infinity: a list of padding alone stays free of NaN.
    hidden = (there - 1) * FAR
    target = torch.softmax(labels + hidden, dim=1)
    logs = torch.log_softmax(scores + hidden, dim=1)
    slope = logs.exp().sub_(target).mul_(there)
    value = -target.mul_(logs.mul_(there)).sum(1)
    return value, slope


def _compiled(scores: Tensor, labels: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """:func:`_value_and_gradient` on a CPU."""
    from directrank.kernels import listwise as _listwise_kernels

    value = scores.new_empty(len(scores))
    gradient = torch.empty_like(scores, memory_format=torch.contiguous_format)
    arrays = [array(tensor) for tensor in (scores, labels, mask)]
    found = value.numpy(), gradient.numpy()
    over_lists(_listwise_kernels.listnet, 4 * scores.numel(), len(scores), *arrays, *found)
    return value, gradient
