"""ListMLE, the likelihood of the ideal order under Plackett-Luce (Xia et al., 2008)."""

from __future__ import annotations

import torch
from torch import Tensor

from directrank.kernels.dispatch import accelerated
from directrank.lists.calls import ranking_loss
from directrank.lists.draws import uniform
from directrank.lists.flat import Flat, Lists, in_order, mask_of
from directrank.lists.inputs import validated
from directrank.lists.sorting import descending_order, rising_order
from directrank.losses._needs import needs


@ranking_loss
@needs(draws=True)
@accelerated
def listmle(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor | None = None,
    *,
    generator: torch.Generator | None = None,
) -> Tensor:
    """``Σ_i [log Σ_{k≥i} exp(s_π(k)) - s_π(i)]`` per query, π the order by falling label.

    Tied labels are shuffled again at each call.

    Source: Xia et al., ICML 2008.

    Args:
        scores: ``[B, L]``.
        labels: ``[B, L]``.
        mask: bool ``[B, L]``, True for a real document; None if all are real.
        generator: random stream of the shuffles, on the scores' device; None takes PyTorch's own.

    Returns:
        The loss per query, ``[B]``; 0 for a list without documents.

    >>> import torch
    >>> from directrank import losses
    >>> scores = torch.tensor([[0.5, 0.1, 0.2], [1.0, 2.0, 3.0]])
    >>> labels = torch.tensor([[2.0, 0.0, 1.0], [0.0, 1.0, 2.0]])
    >>> losses.listmle(scores, labels)
    tensor([1.5245, 0.7209])
    """
    scores, labels, lists = validated(scores, labels, mask)
    if lists is None:
        lists = torch.ones_like(scores, dtype=torch.bool)
    return likelihood(scores, shuffled_order(labels, lists, generator), lists)


@accelerated
def likelihood(scores: Tensor, order: Tensor, lists: Lists) -> Tensor:
    """The loss of documents in a given ``order``, int64 ``[B, L]``, masked ones last; ``[B]``."""
    mask = mask_of(lists)
    real = mask.gather(1, order)
    # Padding comes last and adds nothing to the sums of the documents before it.
    ordered = scores.gather(1, order).masked_fill(~real, torch.finfo(scores.dtype).min)
    rest = ordered.flip(1).logcumsumexp(1).flip(1)
    return (rest - ordered).masked_fill(~real, 0.0).sum(1)


def shuffled_order(labels: Tensor, lists: Lists, generator: torch.Generator | None) -> Tensor:
    """Positions by falling label, ties in random order, masked ones last; int64 ``[B, L]``.

    For flat lists see :func:`directrank.lists.sorting.descending_order`.
    """
    noise = uniform(labels, lists, generator, torch.float32)
    if labels.device.type == "cpu" and _are_grades(labels):
        # The grade and PyTorch's 24 random bits form one number, so one sort is enough.
        keys = labels.to(torch.int64).bitwise_left_shift_(24)
        keys += noise.mul_(2**24).int()
        return rising_order(keys.neg_().numpy(), lists)
    if isinstance(lists, Flat):
        shuffle = descending_order(noise, lists)
        return in_order(shuffle, descending_order(in_order(labels, shuffle, lists), lists), lists)
    shuffle = descending_order(noise, torch.ones_like(lists))
    return shuffle.gather(1, descending_order(labels.gather(1, shuffle), lists.gather(1, shuffle)))


def _are_grades(labels: Tensor) -> bool:
    """Whether all labels, masked ones too, are whole numbers from 0 to 255."""
    grades = labels.to(torch.uint8)
    return bool((grades == labels).all())
