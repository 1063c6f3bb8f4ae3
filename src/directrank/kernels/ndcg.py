"""What the kernels of NDCG under a relaxation have in common, on a CPU."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from torch import Tensor

from directrank.kernels.batch import Batch
from directrank.kernels.compiling import inlined
from directrank.kernels.pairs import front_first, ideal_dcg
from directrank.lists.conventions import (
    DISCOUNTS,
    discount_sums,
    gains,
    normalised_gains,
    rank_discounts,
)
from directrank.lists.flat import Lists
from directrank.lists.inputs import checked_lists, one_of


def at_ranks(
    kernel: Callable[..., None],
    batch: Batch,
    work: int,
    k: int | None,
    gain: str,
    discount: str,
    beta: float,
    *own: Any,
) -> Tensor:
    """Minus NDCG ``[B]`` by a ``kernel`` that takes the documents to real-valued ranks.

    The kernel takes scores and gains ``[N]``, what is its ``own``, the cut-off (infinite without
    one), ``beta``, whether the discount is ``letor``, its sums up to the cut-off ``[L + 1]``, and
    NDCG ``[B]`` and its gradient ``[N]`` to be computed. It finds the documents with a gain by
    :func:`front_of`.
    """
    one_of(discount, DISCOUNTS, "discount")
    value, gradient = batch.per_list(), batch.zeros()
    batch.run(
        kernel,
        work,
        batch.flat(batch.scores),
        batch.flat(gains(batch.labels, gain)),
        *own,
        math.inf if k is None else float(k),
        float(beta),
        discount == "letor",
        discount_sums(discount, batch.shape[1], k),
        value,
        gradient,
    )
    return batch.loss(-value, np.negative(gradient, out=gradient))


def in_distribution(
    kernel: Callable[..., None],
    scores: Tensor,
    labels: Tensor,
    mask: Lists | None,
    k: int | None,
    gain: str,
    discount: str,
    own: Callable[[Batch, Lists], tuple[int, Any]],
) -> Tensor:
    """Minus NDCG ``[B]`` by a ``kernel`` that distributes the documents over the ranks.

    The kernel takes scores and normalised gains ``[N]``, what is its own, and NDCG ``[B]`` and its
    gradient ``[N]`` to be computed. ``own`` returns the work, in pairs, and these arguments.
    """
    scores, labels, mask = checked_lists(scores, labels, mask)
    batch = Batch(scores, labels, mask)
    value, gradient = batch.per_list(), batch.zeros()
    work, arguments = own(batch, mask)
    normalised = batch.flat(normalised_gains(labels, mask, gain, discount, k))
    batch.run(kernel, work, batch.flat(scores), normalised, *arguments, value, gradient)
    return batch.loss(-value, np.negative(gradient, out=gradient))


def top_discounts(batch: Batch, discount: str, k: int | None) -> np.ndarray:
    """The discounts of the ranks up to the cut-off, or of all, in the scores' type."""
    last = batch.shape[1] if k is None else min(k, batch.shape[1])
    return rank_discounts(discount, last, dtype=batch.scores.dtype).numpy()


@inlined
def front_of(gains, cumulative, place, weights):
    """The number of documents with a gain, whose positions come first in ``place`` and whose gains
    in ``weights``; and the best DCG, from the ``cumulative`` sums of the discounts."""
    n_front = front_first(gains, place)
    for i in range(n_front):
        weights[i] = gains[place[i]]
    return n_front, ideal_dcg(weights, n_front, len(gains), cumulative)
