"""NDCG at exact ranks with blackbox gradients on a CPU: two sorts, each followed by one pass."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from directrank.kernels.batch import Batch, per_list
from directrank.kernels.compiling import compiled
from directrank.kernels.pairs import ideal_dcg
from directrank.kernels.soft_ranks import sorted_lists
from directrank.lists.conventions import DISCOUNTS, discount, discount_sums, gains
from directrank.lists.flat import Lists
from directrank.lists.inputs import one_of

_discount = discount

#: The work that a document takes in each of the passes, in pairs.
WORK = 5


def ndcg(
    scores: Tensor,
    labels: Tensor,
    mask: Lists | None,
    *,
    k: int | None,
    gain: str,
    discount: str,
    lam: float | Tensor,
    margin: float,
) -> Tensor:
    """Minus NDCG at exact ranks; see :func:`directrank.losses.blackbox_ndcg`."""
    one_of(discount, DISCOUNTS, "discount")
    batch = Batch(scores, labels, mask)
    B, L = batch.shape
    shifted = batch.scores.detach()
    if margin:
        shifted = shifted + margin * (0.5 - (batch.labels > 0).to(shifted.dtype))
    order, distances = sorted_lists(batch, shifted, mask), per_list(lam, B)
    value, moved = batch.per_list(), batch.zeros()
    batch.run(
        _move,
        WORK * batch.documents,
        batch.flat(shifted),
        batch.flat(gains(batch.labels, gain)),
        order,
        *_at_ranks(discount, L if k is None else min(k, L)),
        discount_sums(discount, L, k),
        distances,
        value,
        moved,
    )
    if not batch.gradient_needed:
        return torch.from_numpy(-value)
    gradient = batch.zeros()
    other = sorted_lists(batch, batch.padded(moved), mask)
    batch.run(_steps, WORK * batch.documents, order, other, distances, gradient)
    return batch.loss(-value, gradient)


@lru_cache(maxsize=256)
def _at_ranks(kind: str, last: int) -> tuple[np.ndarray, np.ndarray]:
    """The discounts of the ranks up to the last, and their derivatives with respect to the rank."""
    with torch.inference_mode(False), torch.enable_grad():
        ranks = torch.arange(1, last + 1, dtype=torch.float64, device="cpu").requires_grad_()
        discounts = _discount(kind, ranks)
        (slopes,) = torch.autograd.grad(discounts.sum(), ranks)
    return discounts.detach().numpy(), slopes.numpy()


@compiled
def _move(
    begin, end, starts, lengths, scores, gains, order, discounts, slopes, cumulative, lam, value,
    moved,
):  # fmt: skip
    """NDCG ``[B]``, and the scores ``[N]`` moved by ``lam`` times the loss's derivative by rank.

    ``order [N]`` counts from each list's first document. ``discounts`` are those of the ranks up to
    the cut-off, ``slopes`` their derivatives, and ``cumulative [L + 1]`` the sums of the discounts;
    ``lam`` is ``[B]``.
    """
    for b in range(begin, end):
        first, n = starts[b], lengths[b]
        own, g = scores[first : first + n], gains[first : first + n]
        place, away = order[first : first + n], moved[first : first + n]
        best = ideal_dcg(g, n, n, cumulative)
        gained, finite = 0.0, True
        for i in range(n):
            away[i] = own[i]
            finite &= abs(own[i]) < np.inf
        value[b] = 0
        if best <= 0:
            continue
        for p in range(min(n, len(discounts))):
            gained += g[place[p]] * discounts[p]
            away[place[p]] -= lam[b] * g[place[p]] * slopes[p] / best
        value[b] = gained / best if finite else np.nan


@compiled
def _steps(begin, end, starts, lengths, order, other, lam, gradient):
    """The number of places that documents fall from one order to the other, over ``lam``."""
    for b in range(begin, end):
        first, n = starts[b], lengths[b]
        before, after = order[first : first + n], other[first : first + n]
        own, divisor = gradient[first : first + n], lam[b]
        for p in range(n):
            own[before[p]] -= p
        for p in range(n):
            own[after[p]] += p
        for p in range(n):
            own[p] /= divisor
