"""Precision at a cut-off."""

from __future__ import annotations

from torch import Tensor

from directrank.lists.calls import ranking_metric
from directrank.metrics.conventions import MIN_LABEL, Judgements
from directrank.metrics.evaluation import Evaluation
from directrank.relaxations.protocol import Ranking


@ranking_metric
def precision(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor | None = None,
    k: int | None = None,
    *,
    min_label: float = MIN_LABEL,
    empty: str = "exclude",
    ties: str = "stable",
) -> Tensor:
    """P@k per query: the number of relevant documents among the first k, divided by k.

    Ranks beyond the end of a list count as irrelevant, as in the LETOR and MSLR tools.

    Args:
        scores: ``[B, L]``; higher ranks first.
        labels: ``[B, L]``.
        mask: bool ``[B, L]``, True for a real document; None where all are real.
        k: cut-off; None takes the length of each list.
        min_label: the least label that counts as relevant (the MSLR tool: 2).
        empty: a query without a relevant document is NaN (``exclude``), 0 or 1.
        ties: ``stable`` (order of appearance), ``expected`` (mean over all orders of ties),
            ``optimistic`` or ``pessimistic`` (the best or worst of them: ties by label).

    Returns:
        float64 ``[B]``, without a gradient.

    >>> import torch
    >>> from directrank import metrics
    >>> scores = torch.tensor([[0.5, 0.1, 0.2], [1.0, 2.0, 3.0]])
    >>> labels = torch.tensor([[0.0, 2.0, 1.0], [1.0, 0.0, 0.0]])
    >>> metrics.precision(scores, labels, k=2)
    tensor([0.5000, 0.0000], dtype=torch.float64)
    """
    return Evaluation(scores, labels, mask).value(
        precision_of, k=k, min_label=min_label, empty=empty, ties=ties
    )


def precision_of(
    ranking: Ranking, judgements: Judgements, k: int | None = None, *, min_label: float = MIN_LABEL
) -> tuple[Tensor, Tensor]:
    """P@k over any ranking: value and where the query has a relevant document, ``[B]``."""
    chosen = judgements.relevant(min_label)
    cut = judgements.mask.sum(1).clamp_min(1) if k is None else k
    return ranking.count(chosen, k) / cut, chosen.sum(1) > 0
