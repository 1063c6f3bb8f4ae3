"""Normalised discounted cumulative gain (Järvelin and Kekäläinen, 2002)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from torch import Tensor

from directrank.lists.calls import ranking_metric
from directrank.lists.conventions import DISCOUNT, GAIN, discount, ratio
from directrank.metrics.conventions import Judgements
from directrank.metrics.evaluation import Evaluation
from directrank.relaxations.protocol import Ranking

_discount = discount


@ranking_metric
def ndcg(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor | None = None,
    k: int | None = None,
    *,
    discount: str = DISCOUNT,
    gain: str | Sequence[float] = GAIN,
    empty: str = "exclude",
    ties: str = "stable",
) -> Tensor:
    """NDCG@k per query: ``Σ_{r≤k} G(y_(r)) D(r)`` divided by that of the ideal order.

    Args:
        scores: ``[B, L]``; higher ranks first.
        labels: ``[B, L]``.
        mask: bool ``[B, L]``, True for a real document; None where all are real.
        k: cut-off; None takes the whole list.
        discount: ``log2`` (1/log2(1+r)) or ``letor`` (1, 1, 1/log2 3, …: the LETOR 3.0 tool).
        gain: ``exp2`` (2^y - 1), ``linear`` (y), ``burges2006`` (0, 3, 7, 15, 31), or the gains of
            the labels 0, 1, … as a list, such as ``[0, 1, 5]``: it begins with 0 and does not fall.
        empty: a query without gain is NaN (``exclude``), 0 (``zero``) or 1 (``one``).
        ties: ``stable`` (order of appearance), ``expected`` (mean over all orders of ties),
            ``optimistic`` or ``pessimistic`` (the best or worst of them: ties by label).

    Returns:
        float64 ``[B]``, without a gradient.

    >>> import torch
    >>> from directrank import metrics
    >>> scores = torch.tensor([[0.5, 0.1, 0.2], [1.0, 2.0, 3.0]])
    >>> labels = torch.tensor([[0.0, 2.0, 1.0], [1.0, 0.0, 0.0]])
    >>> metrics.ndcg(scores, labels, k=2)
    tensor([0.1738, 0.0000], dtype=torch.float64)
    """
    return Evaluation(scores, labels, mask).value(
        ndcg_of, k=k, discount=discount, gain=gain, empty=empty, ties=ties
    )


def ndcg_of(
    ranking: Ranking,
    judgements: Judgements,
    k: int | None = None,
    *,
    discount: str = DISCOUNT,
    gain: str | Sequence[float] = GAIN,
) -> tuple[Tensor, Tensor]:
    """NDCG over any ranking: value (0 where there is no gain) and where it is defined, ``[B]``."""
    gains = judgements.gains(gain)
    weight = partial(_discount, discount)
    best = judgements.ideal.weigh(gains, weight, k)
    return ratio(ranking.weigh(gains, weight, k), best), best > 0
