"""NDCG at ranks projected onto the permutahedron (Blondel et al., 2020)."""

from __future__ import annotations

from functools import partial

from torch import Tensor

from directrank.lists.calls import ranking_loss
from directrank.lists.conventions import GAIN
from directrank.losses._compose import compose
from directrank.losses._needs import needs
from directrank.metrics._ndcg import ndcg_of
from directrank.relaxations.fast_soft_rank import REGULARISATION, TAU, fast_soft_rank
from directrank.relaxations.real_valued import BETA


@ranking_loss
@needs(per_list=("tau",), flat=True)
def fast_soft_ndcg(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor | None = None,
    *,
    k: int | None = None,
    tau: float | Tensor = TAU,
    regularisation: str = REGULARISATION,
    beta: float = BETA,
    gain: str = GAIN,
) -> Tensor:
    """Minus NDCG at the projection of ``-s / tau`` onto the hull of all rankings, per query.

    The ranks cost one sort and a pass of isotonic regression over the sorted list.

    Args:
        scores: ``[B, L]``.
        labels: ``[B, L]``.
        mask: bool ``[B, L]``, True for a real document; None if all are real.
        k: cut-off, through the smooth truncation ``sigmoid(beta (k + 1/2 - rank))``; None takes the
            whole list.
        tau: strength of the regularisation; towards 0 ranks become exact. A tensor ``[B, 1]`` sets
            it per query.
        regularisation: ``l2`` or ``entropic``.
        beta: steepness of the truncation.
        gain: ``exp2`` (2^y - 1) or ``linear`` (y).

    Returns:
        The loss per query, ``[B]``; 0 for a query without gain.

    >>> import torch
    >>> from directrank import losses
    >>> scores = torch.tensor([[0.5, 0.1, 0.2], [1.0, 2.0, 3.0]])
    >>> labels = torch.tensor([[2.0, 0.0, 1.0], [0.0, 0.0, 1.0]])
    >>> losses.fast_soft_ndcg(scores, labels, tau=0.3)
    tensor([-0.8804, -1.0000])
    """
    metric = partial(ndcg_of, k=k, gain=gain)
    projection = partial(fast_soft_rank, tau=tau, regularisation=regularisation, beta=beta)
    return compose(metric, projection)(scores, labels, mask)
