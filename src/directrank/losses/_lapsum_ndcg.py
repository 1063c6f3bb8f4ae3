"""NDCG at sums of Laplace distribution functions (Struski et al., 2025)."""

from __future__ import annotations

from functools import partial

from torch import Tensor

from directrank.lists.calls import ranking_loss
from directrank.lists.conventions import GAIN
from directrank.losses._compose import compose
from directrank.losses._needs import needs
from directrank.metrics._ndcg import ndcg_of
from directrank.relaxations.lapsum import TAU, lapsum
from directrank.relaxations.real_valued import BETA


@ranking_loss
@needs(per_list=("tau",), flat=True)
def lapsum_ndcg(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor | None = None,
    *,
    k: int | None = None,
    tau: float | Tensor = TAU,
    beta: float = BETA,
    gain: str = GAIN,
) -> Tensor:
    """Minus NDCG at the ranks ``1 + Σ_{j≠i} F((s_j - s_i) / tau)`` with Laplace's F, per query.

    This is ApproxNDCG with another sigmoid, ``exp(x) / 2`` below 0 and ``1 - exp(-x) / 2`` above,
    whose sums over all pairs cost one sort and a pass over the sorted list.

    Args:
        scores: ``[B, L]``.
        labels: ``[B, L]``.
        mask: bool ``[B, L]``, True for a real document; None if all are real.
        k: cut-off, through the smooth truncation ``sigmoid(beta (k + 1/2 - rank))``; None takes the
            whole list.
        tau: scale of the distribution; a tensor ``[B, 1]`` sets it per query.
        beta: steepness of the truncation.
        gain: ``exp2`` (2^y - 1) or ``linear`` (y).

    Returns:
        The loss per query, ``[B]``; 0 for a query without gain.

    >>> import torch
    >>> from directrank import losses
    >>> scores = torch.tensor([[0.5, 0.1, 0.2], [1.0, 2.0, 3.0]])
    >>> labels = torch.tensor([[2.0, 0.0, 1.0], [0.0, 0.0, 1.0]])
    >>> losses.lapsum_ndcg(scores, labels)
    tensor([-0.9726, -1.0000])
    """
    metric = partial(ndcg_of, k=k, gain=gain)
    return compose(metric, partial(lapsum, tau=tau, beta=beta))(scores, labels, mask)
