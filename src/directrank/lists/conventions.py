"""The gain of a label and the discount of a rank, in the forms that papers and tools use."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from directrank.lists.flat import Flat, Lists, in_order, spread, sums
from directrank.lists.inputs import check_powers, check_scale, one_of
from directrank.lists.sorting import descending_order
from directrank.system.errors import ArgumentError

GAINS = ("exp2", "linear", "burges2006")
DISCOUNTS = ("log2", "letor")

#: Those of NDCG, unless told otherwise.
GAIN, DISCOUNT = "exp2", "log2"


def gains(labels: Tensor, kind: str | Sequence[float]) -> Tensor:
    """``2^y - 1`` (``exp2``), ``y`` (``linear``) or the gains that Burges2006 prints, ``[B, L]``.

    The latter (``burges2006``) are 0, 3, 7, 15, 31 for the labels 0 to 4, contrary to the paper's
    equation 1: ``2^(y+1) - 1``, and 0 for 0. A list has the gains of the labels 0, 1, …

    Raises:
        ArgumentError: the kind is unknown, or :func:`powers` overflow, or a list does not begin
            with 0, falls, or has no gain for a label.
    """
    if not isinstance(kind, str) and np.ndim(kind):
        return _listed_gains(labels, kind)
    one_of(kind, GAINS, "gain")
    if kind == "linear":
        return labels
    exponential = powers(labels, 2.0 if kind == "burges2006" else 1.0).sub_(1)
    if kind == "exp2":
        return exponential
    return torch.where(exponential > 0, 2 * exponential + 1, exponential)


def _listed_gains(labels: Tensor, listed: Sequence[float]) -> Tensor:
    """The gains of labels that are positions in a list; on a GPU, labels are not examined."""
    try:
        values = torch.as_tensor(listed, dtype=labels.dtype)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ArgumentError(
            f"gains {listed} are not numbers", f"give a list of them, or one of: {', '.join(GAINS)}"
        ) from error
    # Only with such gains is the order by label ideal, and does padding, whose label is 0, gain 0.
    rises = values.ndim == 1 and len(values) and values[0] == 0 and (values.diff() >= 0).all()
    if not (rises and values.isfinite().all()):
        raise ArgumentError(
            f"gains {listed} do not begin with 0, the gain of label 0, or they fall",
            "give the gains of the labels 0, 1, 2, …, such as [0, 1, 3, 7, 15]",
        )
    if labels.device.type == "cpu" and not torch.compiler.is_compiling():
        fits = (labels < len(values)) & (labels == labels.floor())
        if not fits.all():
            raise ArgumentError(
                f"a label is {labels[~fits][0]:g}, but there are gains for the labels 0 to "
                f"{len(values) - 1}",
                "give a gain for every label, which must be a whole number",
            )
    return values.to(labels.device)[labels.long().clamp(0, len(values) - 1)]


def powers(labels: Tensor, times: float = 1.0) -> Tensor:
    """``2^y``, ``[B, L]``.

    Raises:
        ArgumentError: ``times`` their sum is too large for the type of the labels.
    """
    check_powers(labels.dtype, times=times)
    return torch.exp2(labels)


def discount(kind: str, ranks: Tensor) -> Tensor:
    """The weight of a rank; ranks may be real-valued.

    ``log2`` is ``1 / log2(1 + r)``. ``letor`` is the discount of the LETOR 3.0 evaluation tool: 1
    at ranks 1 and 2, and ``1 / log2(r)`` from rank 3.
    """
    one_of(kind, DISCOUNTS, "discount")
    if kind == "log2":
        return torch.log2(1 + ranks).reciprocal()
    return torch.log2(ranks.clamp_min(2)).reciprocal()


def rank_discounts(
    kind: str,
    length: int,
    k: int | None = None,
    dtype: torch.dtype = torch.float64,
    device: torch.device | str = "cpu",
) -> Tensor:
    """The weights of the ranks 1, 2, … and 0 beyond rank k: ``[length]``."""
    ranks = torch.arange(1, length + 1, dtype=dtype, device=device)
    weights = discount(kind, ranks)
    return weights if k is None else weights * (ranks <= k)


def normalised_gains(
    labels: Tensor, mask: Lists, gain: str | Sequence[float], kind: str, k: int | None
) -> Tensor:
    """Gains divided by the largest DCG@k of any ranking of their list, ``[B, L]`` or flat ``[N]``.

    They are 0 if that DCG is 0. Labels must be 0 at masked positions.
    """
    values = gains(labels, gain)
    if isinstance(mask, Flat):
        ranks = torch.arange(len(values), device=values.device) - mask.firsts
        theta = rank_discounts(kind, mask.longest, k, values.dtype, values.device)[ranks]
        top = in_order(values, descending_order(labels, mask), mask)
        best = spread(sums(top * theta, mask), mask)
        return ratio(values, best)
    top = values.gather(1, descending_order(labels, mask)[:, :k])
    weights = rank_discounts(kind, top.shape[1], dtype=top.dtype, device=top.device)
    return ratio(values, (top * weights).sum(1, keepdim=True))


def stopping(labels: Tensor, mask: Tensor, max_label: float | None) -> Tensor:
    """``(2^y - 1) / 2^max``, the probability that a document satisfies the user, ``[B, L]``.

    Labels must be 0 at masked positions. ``max_label`` None means the largest label of each query.

    Raises:
        ArgumentError: a label is above ``max_label``, or :func:`powers` overflow.
    """
    if max_label is not None:
        check_scale(max_label)
        return (powers(labels) - 1) / 2.0**max_label
    if labels.shape[1] == 0:
        return labels
    top = labels.amax(1, keepdim=True)
    return (torch.exp2(labels - top) - torch.exp2(-top)) * mask


def cascade(stops: Tensor) -> Tensor:
    """``Σ_r stops_r / r · Π_{s<r} (1 - stops_s)`` of the columns r = 1, 2, … of ``[B, r]``."""
    reached = torch.ones_like(stops)
    reached[:, 1:] = (1 - stops[:, :-1]).cumprod(1)
    return (stops * reached / ranks_of(stops)).sum(1)


def ranks_of(values: Tensor) -> Tensor:
    """The ranks 1, 2, … of the columns of ``values``, in its type."""
    return torch.arange(1, values.shape[1] + 1, dtype=values.dtype, device=values.device)


def ratio(value: Tensor, best: Tensor) -> Tensor:
    """``value / best``, and 0 where ``best`` is 0, also for gradients."""
    return value / best.masked_fill(best <= 0, torch.inf)


@lru_cache(maxsize=256)
def discount_sums(kind: str, length: int, k: int | None) -> np.ndarray:
    """The sum of the discounts of the first r ranks (at most k), float64 ``[length + 1]``."""
    return np.concatenate([[0.0], rank_discounts(kind, length, k).cumsum(0).numpy()])
