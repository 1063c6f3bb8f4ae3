"""Discounted cumulative gain (Järvelin and Kekäläinen, 2002)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from torch import Tensor

from directrank.lists.calls import ranking_metric
from directrank.lists.conventions import DISCOUNT, GAIN, discount
from directrank.metrics.conventions import Judgements
from directrank.metrics.evaluation import Evaluation
from directrank.relaxations.protocol import Ranking

_discount = discount


@ranking_metric
def dcg(
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
    """DCG@k per query: ``Σ_{r≤k} G(y_(r)) D(r)``; arguments as for :func:`ndcg`.

    >>> import torch
    >>> from directrank import metrics
    >>> scores = torch.tensor([[0.5, 0.1, 0.2], [1.0, 2.0, 3.0]])
    >>> labels = torch.tensor([[0.0, 2.0, 1.0], [1.0, 0.0, 0.0]])
    >>> metrics.dcg(scores, labels, gain=[0, 1, 5])
    tensor([3.1309, 0.5000], dtype=torch.float64)
    """
    return Evaluation(scores, labels, mask).value(
        dcg_of, k=k, discount=discount, gain=gain, empty=empty, ties=ties
    )


def dcg_of(
    ranking: Ranking,
    judgements: Judgements,
    k: int | None = None,
    *,
    discount: str = DISCOUNT,
    gain: str | Sequence[float] = GAIN,
) -> tuple[Tensor, Tensor]:
    """DCG over any ranking: value and where the query has any gain, ``[B]``."""
    gains = judgements.gains(gain)
    return ranking.weigh(gains, partial(_discount, discount), k), (gains > 0).any(1)
