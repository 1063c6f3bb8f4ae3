"""Gumbel noise: scores that carry it are sorted as a Plackett-Luce model draws orders."""

from __future__ import annotations

import torch
from torch import Tensor


def gumbel_noise(scores: Tensor, mask: Tensor, generator: torch.Generator | None) -> Tensor:
    """Standard Gumbel noise for the real documents, ``[B, L]``."""
    uniform = torch.rand(
        scores.shape, generator=generator, dtype=scores.dtype, device=scores.device
    )
    tiny = torch.finfo(scores.dtype).tiny
    exponential = (-torch.log(uniform.clamp_min(tiny))).clamp_min(tiny)
    return (-torch.log(exponential)).masked_fill(~mask, 0.0)
