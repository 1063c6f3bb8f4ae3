"""Reciprocal rank of the first relevant document."""

from __future__ import annotations

from torch import Tensor

from directrank.lists.calls import ranking_metric
from directrank.metrics.conventions import MIN_LABEL, Judgements
from directrank.metrics.evaluation import Evaluation
from directrank.relaxations.protocol import Ranking


@ranking_metric
def reciprocal_rank(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor | None = None,
    k: int | None = None,
    *,
    min_label: float = MIN_LABEL,
    empty: str = "exclude",
    ties: str = "stable",
) -> Tensor:
    """1 / rank of the first relevant document per query; 0 if it is beyond rank k.

    Args:
        scores: ``[B, L]``; higher ranks first.
        labels: ``[B, L]``.
        mask: bool ``[B, L]``, True for a real document; None where all are real.
        k: cut-off; None takes the whole list.
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
    >>> metrics.reciprocal_rank(scores, labels, k=2)
    tensor([0.5000, 0.0000], dtype=torch.float64)
    """
    return Evaluation(scores, labels, mask).value(
        reciprocal_rank_of, k=k, min_label=min_label, empty=empty, ties=ties
    )


def reciprocal_rank_of(
    ranking: Ranking, judgements: Judgements, k: int | None = None, *, min_label: float = MIN_LABEL
) -> tuple[Tensor, Tensor]:
    """Reciprocal rank over any ranking: value and where it is defined, ``[B]``.

    It is the cascade in which a relevant document always satisfies the user.
    """
    chosen = judgements.relevant(min_label)
    return ranking.cascade(chosen, k), chosen.sum(1) > 0
