"""Recall and hit rate at a cut-off."""

from __future__ import annotations

from torch import Tensor

from directrank.lists.calls import ranking_metric
from directrank.lists.conventions import ratio
from directrank.metrics.conventions import MIN_LABEL, Judgements
from directrank.metrics.evaluation import Evaluation
from directrank.relaxations.exact import StableRanking
from directrank.relaxations.protocol import Ranking


@ranking_metric
def recall(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor | None = None,
    k: int | None = None,
    *,
    min_label: float = MIN_LABEL,
    empty: str = "exclude",
    ties: str = "stable",
) -> Tensor:
    """Recall@k per query: relevant documents among the first k, over all relevant documents.

    Args:
        scores: ``[B, L]``; higher ranks first.
        labels: ``[B, L]``.
        mask: bool ``[B, L]``, True for a real document; None where all are real.
        k: cut-off; None takes the whole list, which has a recall of 1.
        min_label: the least label that counts as relevant.
        empty: a query without a relevant document is NaN (``exclude``), 0 or 1.
        ties: ``stable`` (order of appearance), ``expected`` (mean over all orders of ties),
            ``optimistic`` or ``pessimistic`` (the best or worst of them: ties by label).

    Returns:
        float64 ``[B]``, without a gradient.

    >>> import torch
    >>> from directrank import metrics
    >>> scores = torch.tensor([[0.5, 0.1, 0.2], [1.0, 2.0, 3.0]])
    >>> labels = torch.tensor([[0.0, 2.0, 1.0], [1.0, 0.0, 0.0]])
    >>> metrics.recall(scores, labels, k=2)
    tensor([0.5000, 0.0000], dtype=torch.float64)
    """
    return Evaluation(scores, labels, mask).value(
        recall_of, k=k, min_label=min_label, empty=empty, ties=ties
    )


@ranking_metric
def hit_rate(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor | None = None,
    k: int | None = None,
    *,
    min_label: float = MIN_LABEL,
    empty: str = "exclude",
    ties: str = "stable",
) -> Tensor:
    """Hit@k per query: 1 if a relevant document is among the first k, else 0.

    Its mean over queries is the hit rate, or success at k. Arguments are as for :func:`recall`.

    >>> import torch
    >>> from directrank import metrics
    >>> scores = torch.tensor([[0.5, 0.1, 0.2], [1.0, 2.0, 3.0]])
    >>> labels = torch.tensor([[0.0, 2.0, 1.0], [1.0, 0.0, 0.0]])
    >>> metrics.hit_rate(scores, labels, k=2)
    tensor([1., 0.], dtype=torch.float64)
    """
    return Evaluation(scores, labels, mask).value(
        hit_rate_of, k=k, min_label=min_label, empty=empty, ties=ties
    )


def recall_of(
    ranking: Ranking, judgements: Judgements, k: int | None = None, *, min_label: float = MIN_LABEL
) -> tuple[Tensor, Tensor]:
    """Recall@k over any ranking: value and where the query has a relevant document, ``[B]``."""
    chosen = judgements.relevant(min_label)
    relevant = chosen.sum(1)
    return ratio(ranking.count(chosen, k), relevant), relevant > 0


def hit_rate_of(
    ranking: Ranking, judgements: Judgements, k: int | None = None, *, min_label: float = MIN_LABEL
) -> tuple[Tensor, Tensor]:
    """Hit@k over any ranking: value and where the query has a relevant document, ``[B]``.

    A ranking knows the mean ``RR@k`` of ``1{r ≤ k} / r``, where r is the rank of the first relevant
    document. Summed by parts, the mean of ``1{r ≤ k}`` is ``k RR@k - Σ_{j<k} RR@j``. A certain
    order needs only a count.
    """
    chosen = judgements.relevant(min_label)
    defined = chosen.sum(1) > 0
    if k is None or isinstance(ranking, StableRanking):
        return ranking.count(chosen, k).clamp_max(1), defined
    # No list has ranks beyond its length.
    last = max(1, min(k, chosen.shape[1]))
    value = last * ranking.cascade(chosen, last)
    for cut in range(1, last):
        value = value - ranking.cascade(chosen, cut)
    return value, defined
