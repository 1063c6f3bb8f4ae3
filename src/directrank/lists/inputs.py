"""Checks and conversions of the arguments of every loss and metric."""

from __future__ import annotations

from typing import overload

import torch
from torch import Tensor

from directrank.lists.flat import Flat, Lists, PaddingNeededError, hidden, mask_of
from directrank.system.errors import DirectrankError


def checked(scores: Tensor, labels: Tensor, lists: Lists | None) -> tuple[Tensor, Tensor, Tensor]:
    """Scores and labels as floats that are 0 at masked positions, and the mask.

    Masked positions may contain anything, even NaN.

    Args:
        scores: floating ``[B, L]``.
        labels: ``[B, L]``.
        lists: bool ``[B, L]``, True for a real document; None if all are real.

    Raises:
        DirectrankError: shapes differ, scores are not floating point, or the mask is not bool.
        PaddingNeededError: flat lists were given instead of a mask.
    """
    scores, labels, lists = validated(scores, labels, lists)
    if lists is None:
        return scores, labels, torch.ones_like(scores, dtype=torch.bool)
    mask = mask_of(lists)
    if nothing_masked(mask):
        return scores, labels, mask
    return hidden(scores, mask), hidden(labels, mask), mask


def checked_lists(
    scores: Tensor, labels: Tensor, lists: Lists | None
) -> tuple[Tensor, Tensor, Lists]:
    """As :func:`checked`, for padded lists or, on a CPU, flat ones."""
    if not isinstance(lists, Flat):
        return checked(scores, labels, lists)
    if scores.device.type != "cpu":  # kernels are for CPUs
        raise PaddingNeededError
    scores, labels, _ = validated(scores, labels, lists)
    return scores, labels, lists


@overload
def validated(
    scores: Tensor, labels: Tensor, mask: Tensor | None
) -> tuple[Tensor, Tensor, Tensor | None]: ...
@overload
def validated(
    scores: Tensor, labels: Tensor, mask: Lists | None
) -> tuple[Tensor, Tensor, Lists | None]: ...
def validated(
    scores: Tensor, labels: Tensor, mask: Lists | None
) -> tuple[Tensor, Tensor, Lists | None]:
    """As :func:`checked`, but masked positions keep their values, and the mask may be None.

    Half-precision scores are widened to float32, which is precise enough for sums over a list;
    labels take the type of the scores. Flat lists may replace the mask.
    """
    flat = isinstance(mask, Flat)
    if scores.ndim != 2 - flat or scores.shape != labels.shape:
        raise DirectrankError(
            f"scores {tuple(scores.shape)} and labels {tuple(labels.shape)} must both be [B, L]",
            "give a single list a leading axis, scores[None] and labels[None], and flat lists [N] "
            "their lengths or query_ids",
        )
    if not scores.is_floating_point():
        raise DirectrankError(
            f"scores are {scores.dtype}, not floating point", "call scores.float()"
        )
    if isinstance(mask, Tensor) and (mask.shape != scores.shape or mask.dtype != torch.bool):
        raise DirectrankError(
            f"mask {tuple(mask.shape)} of {mask.dtype} must be bool of shape {tuple(scores.shape)}",
            "True marks a real document",
        )
    scores = widened(scores)
    return scores, labels.to(scores.dtype), mask


def widened(scores: Tensor) -> Tensor:
    """Half-precision scores as float32, others unchanged."""
    return scores.float() if scores.dtype in (torch.bfloat16, torch.float16) else scores


def nothing_masked(mask: Tensor) -> bool:
    """Whether all documents are known to be real; False on a GPU, to avoid waiting for it."""
    return mask.device.type == "cpu" and bool(mask.numpy().all())


def one_of(value: str, known: tuple[str, ...], what: str) -> None:
    """Raise DirectrankError if ``value`` is not one of the ``known`` names."""
    if value not in known:
        raise DirectrankError(f"unknown {what} {value!r}", f"choose one of: {', '.join(known)}")
