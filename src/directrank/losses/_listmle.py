"""ListMLE, the likelihood of the ideal order under Plackett-Luce (Xia et al., 2008)."""

from __future__ import annotations

import torch
from torch import Tensor

from directrank.relaxations._inputs import checked


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
    scores, labels, mask = checked(scores, labels, mask)
    order = shuffled_order(labels, mask, generator)
    lowest = torch.finfo(scores.dtype).min
    ordered = scores.masked_fill(~mask, lowest).gather(1, order)
    rest = ordered.flip(1).logcumsumexp(1).flip(1)
    return (rest - ordered).masked_fill(~mask.gather(1, order), 0.0).sum(1)


def shuffled_order(labels: Tensor, mask: Tensor, generator: torch.Generator | None) -> Tensor:
    """Positions by falling label, ties in random order, masked ones last; int64 ``[B, L]``."""
    noise = torch.rand(labels.shape, generator=generator, device=labels.device)
    shuffle = noise.argsort(1)
    keys = labels.masked_fill(~mask, float("-inf")).gather(1, shuffle)
    return shuffle.gather(1, torch.sort(keys, dim=1, descending=True, stable=True).indices)
