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
    exponential = (-torch.log(drawn.clamp_min(tiny))).clamp_min(tiny)
    return hidden(-torch.log(exponential), lists)
