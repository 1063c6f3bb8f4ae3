"""Average precision, with three denominators that are all used under the name MAP@k."""

from __future__ import annotations

import torch
from torch import Tensor

from directrank.lists.calls import ranking_metric
from directrank.lists.conventions import ratio
from directrank.lists.inputs import one_of
from directrank.metrics.conventions import MIN_LABEL, Judgements
from directrank.metrics.evaluation import Evaluation
from directrank.relaxations.protocol import Ranking

DENOMINATORS = ("R", "min(k,R)", "graded_ideal")
DENOMINATOR = "R"


@ranking_metric
def average_precision(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor | None = None,
    k: int | None = None,
    *,
    denominator: str = DENOMINATOR,
    min_label: float = MIN_LABEL,
    empty: str = "exclude",
    ties: str = "stable",
) -> Tensor:
    """AP@k per query: ``Σ_{r≤k} b_(r) P@r`` over a denominator; b marks relevant documents.

    Args:
        scores: ``[B, L]``; higher ranks first.
        labels: ``[B, L]``.
        mask: bool ``[B, L]``, True for a real document; None where all are real.
        k: cut-off; None takes the whole list.
        denominator: ``R``, the number of relevant documents (the usual AP); ``min(k,R)``; or
            ``graded_ideal``, the sum of the k largest *graded* labels. The last is what Yu2020's
            tables report as MAP@k; it is not an average of precisions, and its best value is below
            1.
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
    >>> metrics.average_precision(scores, labels, k=2)
    tensor([0.2500, 0.0000], dtype=torch.float64)
    """
    return Evaluation(scores, labels, mask).value(
        average_precision_of,
        k=k,
        denominator=denominator,
        min_label=min_label,
        empty=empty,
        ties=ties,
    )


def average_precision_of(
    ranking: Ranking,
    judgements: Judgements,
    k: int | None = None,
    *,
    denominator: str = DENOMINATOR,
    min_label: float = MIN_LABEL,
) -> tuple[Tensor, Tensor]:
    """AP@k over any ranking: value and where the query has a relevant document, ``[B]``."""
    one_of(denominator, DENOMINATORS, "denominator")
    chosen = judgements.relevant(min_label)
    relevant = chosen.sum(1)
    if denominator == "graded_ideal":
        below = judgements.ideal.weigh(judgements.labels, torch.ones_like, k)
    elif denominator == "min(k,R)" and k is not None:
        below = relevant.clamp_max(k)
    else:
        below = relevant
    return ratio(ranking.precisions(chosen, k), below), relevant > 0
