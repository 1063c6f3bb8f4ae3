"""ApproxNDCG (Qin2010 eq. 13; Bruch2019 eq. 6)."""

from __future__ import annotations

from functools import partial

from torch import Tensor

from directrank.lists.calls import ranking_loss
from directrank.lists.conventions import DISCOUNT, GAIN
from directrank.losses._compose import compose
from directrank.losses._needs import needs
from directrank.metrics._ndcg import ndcg_of
from directrank.relaxations.real_valued import BETA
from directrank.relaxations.sigmoid import ALPHA, sigmoid


@ranking_loss
@needs(per_list=("alpha",), flat=True)
def approx_ndcg(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor | None = None,
    *,
    alpha: float | Tensor = ALPHA,
    k: int | None = None,
    beta: float = BETA,
    gain: str = GAIN,
    discount: str = DISCOUNT,
) -> Tensor:
    """Minus NDCG at the ranks ``1 + Σ_{j≠i} sigmoid(alpha (s_j - s_i))``, per query.

    Args:
        scores: ``[B, L]``.
        labels: ``[B, L]``.
        mask: bool ``[B, L]``, True for a real document; None if all are real.
        alpha: steepness of the ranks (Bruch2019, Yu2020: 10; Pobrotyn2021: 1; Qin2010: 50-300);
            a tensor ``[B, 1]`` sets it per query.
        k: cut-off, through the smooth truncation ``sigmoid(beta (k + 1/2 - rank))`` (Qin2010
            eq. 16); None takes the whole list.
        beta: steepness of the truncation.
        gain: ``exp2`` (2^y - 1) or ``linear`` (y).
        discount: ``log2`` or ``letor``, as in :func:`directrank.metrics.ndcg`.

    Returns:
        The loss per query, ``[B]``, in [-1, 0] without a cut-off; 0 for a query without gain.

    >>> import torch
    >>> from directrank import losses
    >>> scores = torch.tensor([[0.5, 0.1, 0.2], [1.0, 2.0, 3.0]])
    >>> labels = torch.tensor([[2.0, 0.0, 1.0], [0.0, 0.0, 1.0]])
    >>> losses.approx_ndcg(scores, labels)
    tensor([-0.9528, -1.0000])
    """
    metric = partial(ndcg_of, k=k, gain=gain, discount=discount)
    return compose(metric, partial(sigmoid, alpha=alpha, beta=beta))(scores, labels, mask)
