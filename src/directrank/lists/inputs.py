"""What every loss and metric does with its arguments first."""

from __future__ import annotations

import torch
from torch import Tensor

from directrank.system.errors import DirectrankError


def checked(scores: Tensor, labels: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """Scores and labels as floats that are 0 at masked positions, and the mask.

    Masked positions may hold anything, NaN included.

    Args:
        scores: floating ``[B, L]``.
        labels: ``[B, L]``.
        mask: bool ``[B, L]``, True for a real document; None where all are real.

    Raises:
        DirectrankError: shapes that differ, scores that are not floating, a mask that is not bool.
    """
    scores, labels, mask = validated(scores, labels, mask)
    if mask is None:
        return scores, labels, torch.ones_like(scores, dtype=torch.bool)
    if nothing_masked(mask):
        return scores, labels, mask
    hidden = ~mask
    return scores.masked_fill(hidden, 0.0), labels.masked_fill(hidden, 0.0), mask


def validated(
    scores: Tensor, labels: Tensor, mask: Tensor | None
) -> tuple[Tensor, Tensor, Tensor | None]:
    """As :func:`checked`, but what masked positions hold is left there, and the mask may be None.

    Half-precision scores are widened to float32, where sums over a list still have digits to spare;
    labels take the type of the scores.
    """
    if scores.ndim != 2 or scores.shape != labels.shape:
        raise DirectrankError(
            f"scores {tuple(scores.shape)} and labels {tuple(labels.shape)} must both be [B, L]",
            "give a single list a leading axis: scores[None], labels[None]",
        )
    if not scores.is_floating_point():
        raise DirectrankError(f"scores are {scores.dtype}, not floating", "call scores.float()")
    if mask is not None and (mask.shape != scores.shape or mask.dtype != torch.bool):
        raise DirectrankError(
            f"mask {tuple(mask.shape)} of {mask.dtype} must be bool of shape {tuple(scores.shape)}",
            "True marks a real document",
        )
    if scores.dtype in (torch.bfloat16, torch.float16):
        scores = scores.float()
    return scores, labels.to(scores.dtype), mask


def nothing_masked(mask: Tensor) -> bool:
    """Whether all documents are known to be real; a GPU is not waited for."""
    return mask.device.type == "cpu" and bool(mask.numpy().all())


def one_of(value: str, known: tuple[str, ...], what: str) -> None:
    """Raise where ``value`` is none of the ``known`` names."""
    if value not in known:
        raise DirectrankError(f"unknown {what} {value!r}", f"known are: {', '.join(known)}")
