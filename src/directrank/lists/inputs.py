"""Checks and conversions of the arguments of every loss and metric."""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass
from typing import overload

import torch
from torch import Tensor

from directrank.lists.flat import Flat, Lists, PaddingNeededError, hidden, mask_of
from directrank.system.errors import ArgumentError

#: What to do about labels whose gain overflows.
LINEAR = 'choose gain="linear" where it is an option, or map the labels to grades such as 0 to 4'


@dataclass
class Known:
    """What is known of the values of a call.

    Attributes:
        labels: those that were examined, ``[B, L]`` or flat ``[N]``; none if that is impossible.
        bound: no label of a real document is larger.
        mask: bool ``[B, L]``, where documents are real; None if all are.
        unknown: bool in the shape of the scores, True where real documents have scores that are NaN
            or infinite; None if none have, or if they were not examined.
    """

    labels: Tensor
    bound: float
    mask: Tensor | None
    unknown: Tensor | None = None

    def greatest(self) -> float:
        """The largest label of a real document."""
        return float(self._real().amax()) if self._real().numel() else 0.0

    def bits(self, base: float) -> float:
        """The binary logarithm of the sum of ``base^y`` over all real documents."""
        return float((self._real().double() * math.log(base)).logsumexp(0)) / math.log(2)

    def _real(self) -> Tensor:
        return self.labels.flatten() if self.mask is None else self.labels[self.mask]


NOTHING = Known(torch.empty(0, device="cpu"), 0.0, None)


class _Running(threading.local):
    """What is known of the call that is running in a thread; None outside of calls."""

    known: Known | None = None


_running = _Running()


class examined_before:  # noqa: N801 - a context, as contextlib's are
    """Losses and metrics do not examine their options and values within this context.

    They are called by a loss or metric that did, which knows something of them, or with data that
    were examined when they were prepared.
    """

    def __init__(self, known: Known = NOTHING) -> None:
        self.known = known

    def __enter__(self) -> None:
        self.before, _running.known = _running.known, self.known

    def __exit__(self, *_: object) -> None:
        _running.known = self.before


def are_examined() -> bool:
    """Whether there is nothing to examine: it was done before, or a graph is being traced."""
    return torch.compiler.is_compiling() or _running.known is not None


def examine(scores: Tensor, labels: Tensor, lists: Lists | None) -> Known:
    """Look at the values of real documents. Nothing is known of those on a GPU, which would have to
    be waited for, nor of arguments that are not valid, which a loss or metric refuses by itself.

    Raises:
        ArgumentError: a label is NaN, infinite or below 0.
    """
    if not (scores.is_cpu and labels.is_cpu and scores.shape == labels.shape and scores.numel()):
        return NOTHING
    mask, labels = lists if isinstance(lists, Tensor) else None, labels.detach()
    least, greatest = (bound.item() for bound in labels.aminmax())
    # Passing over the scores once suffices, unless they are so large that their sum is infinite.
    if least >= 0 and greatest < math.inf and math.isfinite(scores.detach().sum().item()):
        return Known(labels, greatest, mask)
    # Masked positions may hold anything.
    if mask is not None and (mask.shape != labels.shape or mask.dtype != torch.bool):
        return NOTHING
    shown = labels if mask is None else labels[mask]
    if not shown.numel():
        return NOTHING
    least, greatest = (bound.item() for bound in shown.aminmax())
    if not greatest < math.inf or math.isnan(least):
        raise ArgumentError(
            "a label is NaN or infinite", "leave documents without a label out, or mask them"
        )
    if least < 0:
        raise ArgumentError(
            f"a label is {least:g}, below 0",
            "give mask=labels >= 0 if such labels mark padding; of flat lists, leave it out",
        )
    unknown = ~scores.isfinite() if mask is None else ~scores.isfinite() & mask
    return Known(labels, greatest, mask, unknown if unknown.any() else None)


def check_powers(
    dtype: torch.dtype, base: float = 2.0, remedy: str = LINEAR, times: float = 1.0
) -> None:
    """Raise ArgumentError if ``times base^y`` of the labels of the running call add up to too
    much."""
    known, room = _known(), math.log2(torch.finfo(dtype).max / times)
    # No batch has 2^32 documents, so powers far below the limit need not be added up.
    if known.bound * math.log2(base) > room - 32 and known.bits(base) >= room:
        raise ArgumentError(
            f"labels up to {known.greatest():g} are too large: {base:g}^y exceeds {dtype}"
            + (f" / {times:g}" if times != 1 else ""),
            remedy,
        )


def check_scale(
    max_label: float,
    what: str = "max_label",
    remedy: str = "give the largest label of the scale, or None for each query's own",
) -> None:
    """Raise ArgumentError if a label of the running call is above the largest of its scale."""
    known = _known()
    if known.bound > max_label and known.greatest() > max_label:
        raise ArgumentError(f"a label is {known.greatest():g}, above {what} {max_label:g}", remedy)


def _known() -> Known:
    """What is known of the call that is running."""
    return NOTHING if torch.compiler.is_compiling() else _running.known or NOTHING


def checked(scores: Tensor, labels: Tensor, lists: Lists | None) -> tuple[Tensor, Tensor, Tensor]:
    """Scores and labels as floats that are 0 at masked positions, and the mask.

    Masked positions may contain anything, even NaN.

    Args:
        scores: floating ``[B, L]``.
        labels: ``[B, L]``.
        lists: bool ``[B, L]``, True for a real document; None if all are real.

    Raises:
        ArgumentError: shapes differ, scores are not floating point, or the mask is not bool.
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
        raise ArgumentError(
            f"scores {tuple(scores.shape)} and labels {tuple(labels.shape)} must both be [B, L]",
            "give a single list a leading axis, scores[None] and labels[None], and flat lists [N] "
            "their lengths or query_ids",
        )
    if not scores.is_floating_point():
        raise ArgumentError(f"scores are {scores.dtype}, not floating point", "call scores.float()")
    if isinstance(mask, Tensor) and (mask.shape != scores.shape or mask.dtype != torch.bool):
        raise ArgumentError(
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


def one_of(value: object, known: tuple[str, ...], what: str) -> None:
    """Raise ArgumentError if ``value`` is not one of the ``known`` names."""
    if not isinstance(value, str) or value not in known:
        raise ArgumentError(f"unknown {what} {value!r}", f"choose one of: {', '.join(known)}")
