"""ListMLE, the likelihood of the ideal order under Plackett-Luce (Xia et al., 2008)."""

from __future__ import annotations

import torch
from torch import Tensor

from directrank.kernels.compiled import array, over_lists, usable
from directrank.lists.inputs import unfilled
from directrank.lists.sorting import descending_order, rising_order
from directrank.losses._gradient import with_gradient


def listmle(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor | None = None,
    *,
    generator: torch.Generator | None = None,
) -> Tensor:
    """``Σ_i [log Σ_{k≥i} exp(s_π(k)) - s_π(i)]`` per query, π the order by falling label.

    Tied labels are shuffled anew at each call.

    Args:
        scores: ``[B, L]``.
        labels: ``[B, L]``.
        mask: bool ``[B, L]``, True for a real document; None where all are real.
        generator: random stream of the shuffles, on the scores' device; None takes PyTorch's own.

    Returns:
        The loss per query, ``[B]``; 0 for a list without documents.
    """
    scores, labels, mask = unfilled(scores, labels, mask)
    order = shuffled_order(labels, mask, generator)
    work = _compiled if usable(scores) else _value_and_gradient
    return with_gradient(scores, *work(scores.detach(), order, mask))


def _value_and_gradient(scores: Tensor, order: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """The loss ``[B]`` and its gradient ``[B, L]`` for documents in the ``order`` given."""
    # Padding comes last; what it adds to the sums of the documents before it is nothing.
    real = mask.gather(1, order)
    ordered = scores.gather(1, order).double().masked_fill_(~real, -torch.inf)
    rest, share = _tail_sums(ordered)
    value = (rest - ordered).masked_fill_(~real, 0.0).sum(1)
    slope = (share - 1).masked_fill_(~real, 0.0)
    gradient = torch.zeros_like(slope).scatter_(1, order, slope)
    return value.to(scores.dtype), gradient.to(scores.dtype)


def _compiled(scores: Tensor, order: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """:func:`_value_and_gradient` on a CPU."""
    from directrank.kernels import listwise as _listwise_kernels

    value = scores.new_empty(len(scores))
    gradient = torch.empty_like(scores, memory_format=torch.contiguous_format)
    arrays = [array(tensor) for tensor in (scores, order, mask.sum(1))]
    found = value.numpy(), gradient.numpy()
    over_lists(_listwise_kernels.listmle, 20 * scores.numel(), len(scores), *arrays, *found)
    return value, gradient


#: Largest spread of scores whose exponentials, and sums of their inverses, float64 can hold.
SPREAD = 300.0


def _tail_sums(ordered: Tensor) -> tuple[Tensor, Tensor]:
    """``c_i = log Σ_{k≥i} exp(s_k)`` and ``Σ_{i≤k} exp(s_k - c_i)``, float64 ``[B, L]``.

    Padding at the end is minus infinity, and what is returned there has no meaning.
    """
    if ordered.numel() == 0:
        return ordered, ordered
    top = ordered.amax(1, keepdim=True)
    top = top.masked_fill(torch.isneginf(top), 0.0)
    below = ordered - top
    if (
        ordered.device.type == "cpu"
        and float(below.masked_fill(torch.isneginf(below), 0.0).min()) > -SPREAD
    ):
        weights = below.exp()
        tails = weights.flip(1).cumsum(1).flip(1)
        inverse = tails.reciprocal().masked_fill_(tails == 0, 0.0)
        return tails.log_().add_(top), weights * inverse.cumsum(1)
    rest = ordered.flip(1).logcumsumexp(1).flip(1)
    padding = torch.isneginf(ordered)
    share = torch.exp(ordered + (-rest.masked_fill(padding, torch.inf)).logcumsumexp(1))
    return rest, share.masked_fill(padding, 0.0)


def shuffled_order(labels: Tensor, mask: Tensor, generator: torch.Generator | None) -> Tensor:
    """Positions by falling label, ties in random order, masked ones last; int64 ``[B, L]``."""
    noise = torch.rand(labels.shape, generator=generator, device=labels.device)
    if labels.device.type == "cpu" and _are_grades(labels):
        # The grade and PyTorch's 24 random bits in one number: one sort in place of two.
        keys = labels.to(torch.int64).bitwise_left_shift_(24)
        keys += noise.mul_(2**24).int()
        return rising_order(keys.neg_().numpy(), mask)
    shuffle = descending_order(noise, torch.ones_like(mask))
    return shuffle.gather(1, descending_order(labels.gather(1, shuffle), mask.gather(1, shuffle)))


def _are_grades(labels: Tensor) -> bool:
    """Whether all labels, masked ones too, are whole numbers from 0 to 255."""
    grades = labels.to(torch.uint8)
    return bool((grades == labels).all())
