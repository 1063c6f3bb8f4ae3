"""ApproxNDCG (Qin2010 eq. 13; Bruch2019 eq. 6)."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from directrank.kernels.compiled import array, over_lists, per_list, usable
from directrank.lists.conventions import DISCOUNTS, discount_sums
from directrank.lists.inputs import checked, one_of, unfilled
from directrank.losses._gradient import with_gradient
from directrank.metrics._ndcg import ndcg_of
from directrank.metrics.conventions import Judgements
from directrank.relaxations._pairs import pairs_of
from directrank.relaxations.sigmoid import SigmoidRanking


def approx_ndcg(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor | None = None,
    *,
    alpha: float | Tensor = 10.0,
    k: int | None = None,
    beta: float = 10.0,
    gain: str = "exp2",
    discount: str = "log2",
) -> Tensor:
    """Minus NDCG at the ranks ``1 + Σ_{j≠i} sigmoid(alpha (s_j - s_i))``, per query.

    Args:
        scores: ``[B, L]``.
        labels: ``[B, L]``.
        mask: bool ``[B, L]``, True for a real document; None where all are real.
        alpha: steepness of the ranks (Bruch2019, Yu2020: 10; Pobrotyn2021: 1; Qin2010: 50-300);
            a tensor ``[B, 1]`` sets it per query.
        k: cut-off, through the smooth truncation ``sigmoid(beta (k + 1/2 - rank))`` (Qin2010
            eq. 16); None takes the whole list.
        beta: steepness of the truncation.
        gain: ``exp2`` (2^y - 1) or ``linear`` (y).
        discount: ``log2`` or ``letor``, as in :func:`directrank.metrics.ndcg`.

    Returns:
        The loss per query, ``[B]``, in [-1, 0] without a cut-off; 0 for a query without gain.
    """
    scores, labels, mask = unfilled(scores, labels, mask)
    if usable(scores, alpha):
        gains = Judgements(labels, mask).gains(gain)
        return _compiled(scores, gains, mask, alpha, k, beta, discount)
    scores, labels, mask = checked(scores, labels, mask)
    judgements = Judgements(labels, mask)
    ranking = SigmoidRanking(scores, mask, alpha=alpha, beta=beta)
    value, _ = ndcg_of(ranking, judgements, k, discount=discount, gain=gain)
    return -value


def _compiled(
    scores: Tensor,
    gains: Tensor,
    mask: Tensor,
    alpha: float | Tensor,
    k: int | None,
    beta: float,
    discount: str,
) -> Tensor:
    """The same on a CPU, value and gradient in one compiled loop."""
    from directrank.kernels import pairs as _pair_kernels

    one_of(discount, DISCOUNTS, "discount")
    B, L = scores.shape
    wanted = scores.requires_grad and torch.is_grad_enabled()
    value = scores.new_empty(B)
    gradient = scores.new_empty((B, L) if wanted else (B, 0))
    over_lists(
        _pair_kernels.approx_ndcg,
        pairs_of(scores),
        B,
        *(array(tensor) for tensor in (scores, gains, mask)),
        per_list(alpha, B),
        math.inf if k is None else float(k),
        float(beta),
        discount == "letor",
        discount_sums(discount, L, k),
        wanted,
        value.numpy(),
        gradient.numpy(),
    )
    return with_gradient(scores, value.neg_(), gradient.neg_()) if wanted else value.neg_()
