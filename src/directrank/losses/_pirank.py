"""PiRank (Swezey et al., 2021): NDCG of the first rows of NeuralSort's matrix."""

from __future__ import annotations

from functools import partial

from torch import Tensor

from directrank.lists.calls import ranking_loss
from directrank.lists.conventions import GAIN
from directrank.losses._compose import compose
from directrank.losses._needs import needs
from directrank.metrics._ndcg import ndcg_of
from directrank.relaxations.pirank import STRAIGHT_THROUGH, TAU
from directrank.relaxations.pirank import pirank as pirank_ranks


@ranking_loss
@needs(per_list=("tau",))
def pirank(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor | None = None,
    *,
    k: int | None = None,
    tau: float | Tensor = TAU,
    straight_through: bool = STRAIGHT_THROUGH,
    gain: str = GAIN,
) -> Tensor:
    """``-(1/maxDCG@k) Σ_{r≤k} (P G(y))_r D(r)``, P NeuralSort's matrix unscaled, per query.

    The paper's loss, at depth 1, is larger by 1. With the straight-through estimator the value is
    exact NDCG@k, and P has the gradient.

    Args:
        scores: ``[B, L]``.
        labels: ``[B, L]``.
        mask: bool ``[B, L]``, True for a real document; None if all are real.
        k: cut-off, which makes it cheaper; None takes the whole list.
        tau: temperature of NeuralSort; a tensor ``[B, 1]`` sets it per query.
        straight_through: use the exact permutation forward.
        gain: ``exp2`` (2^y - 1) or ``linear`` (y).

    Returns:
        The loss per query, ``[B]``; 0 for a query without gain.

    >>> import torch
    >>> from directrank import losses
    >>> scores = torch.tensor([[0.5, 0.1, 0.2], [1.0, 2.0, 3.0]])
    >>> labels = torch.tensor([[2.0, 0.0, 1.0], [0.0, 0.0, 1.0]])
    >>> losses.pirank(scores, labels)
    tensor([-1., -1.])
    """
    metric = partial(ndcg_of, k=k, gain=gain)
    ranks = partial(pirank_ranks, tau=tau, straight_through=straight_through)
    return compose(metric, ranks)(scores, labels, mask)
