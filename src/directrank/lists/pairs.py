"""Pairs of documents of a list, for formulas over ``[B, L, L]``."""

from __future__ import annotations

import torch
from torch import Tensor


def differences(values: Tensor) -> Tensor:
    """``values_i - values_j``, ``[B, i, j]``, from ``[B, L]``."""
    return values.unsqueeze(2) - values.unsqueeze(1)


def both(chosen: Tensor) -> Tensor:
    """Whether both documents of a pair are chosen, bool ``[B, i, j]``, from ``[B, L]``."""
    return chosen.unsqueeze(2) & chosen.unsqueeze(1)


def itself(length: int, device: torch.device) -> Tensor:
    """True for pairs of a document with itself, bool ``[L, L]``."""
    return torch.eye(length, dtype=torch.bool, device=device)
