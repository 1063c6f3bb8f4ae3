"""Gumbel noise: scores that carry it are sorted as a Plackett-Luce model draws orders."""

from __future__ import annotations

import torch
from torch import Tensor

from directrank.lists.flat import Lists, hidden


def gumbel_noise(scores: Tensor, lists: Lists, generator: torch.Generator | None) -> Tensor:
    """Standard Gumbel noise for the real documents, ``[B, L]``, or flat ``[N]``."""
    uniform = torch.rand(
        scores.shape, generator=generator, dtype=scores.dtype, device=scores.device
    )
    tiny = torch.finfo(scores.dtype).tiny
    exponential = (-torch.log(uniform.clamp_min(tiny))).clamp_min(tiny)
    return hidden(-torch.log(exponential), lists)
