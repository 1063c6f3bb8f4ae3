"""Gumbel noise; sorting scores with it draws orders from the Plackett-Luce model."""

from __future__ import annotations

import torch
from torch import Tensor

from directrank.lists.draws import Source, uniform
from directrank.lists.flat import Lists, hidden


def gumbel_noise(scores: Tensor, lists: Lists, generator: Source) -> Tensor:
    """Standard Gumbel noise for the real documents, ``[B, L]``, or flat ``[N]``."""
    tiny = torch.finfo(scores.dtype).tiny
    drawn = uniform(scores, lists, generator, scores.dtype)
    return hidden(gumbel(drawn.clamp_min(tiny)), lists)


def gumbel(drawn: Tensor) -> Tensor:
    """Gumbel noise from numbers that are uniform on (0, 1)."""
    # A number may have been rounded to 1.
    exponential = (-torch.log(drawn)).clamp_min(torch.finfo(drawn.dtype).tiny)
    return -torch.log(exponential)
