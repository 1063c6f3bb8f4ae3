"""Expected reciprocal rank (Chapelle et al., 2009), plain and normalised."""

from __future__ import annotations

from torch import Tensor

from directrank.lists.calls import ranking_metric
from directrank.lists.conventions import ratio
from directrank.metrics.conventions import Judgements
from directrank.metrics.evaluation import Evaluation
from directrank.relaxations.protocol import Ranking


@ranking_metric
def err(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor | None = None,
    k: int | None = None,
    *,
    max_label: float | None = None,
    empty: str = "exclude",
    ties: str = "stable",
) -> Tensor:
    """ERR@k per query: ``Σ_{r≤k} (1/r) R_r Π_{s<r} (1 - R_s)``, ``R = (2^y - 1) / 2^max``.

    Args:
        scores: ``[B, L]``; higher ranks first.
        labels: ``[B, L]``.
        mask: bool ``[B, L]``, True for a real document; None where all are real.
        k: cut-off; None takes the whole list.
        max_label: the largest label of the scale (4 for Web30K); None takes the largest of each
            query, as in Yu2020.
        empty: a query without a positive label is NaN (``exclude``), 0 or 1.
        ties: ``stable`` (order of appearance), ``expected`` (mean over all orders of ties),
            ``optimistic`` or ``pessimistic`` (the best or worst of them: ties by label).

    Returns:
        float64 ``[B]``, without a gradient.

    >>> import torch
    >>> from directrank import metrics
    >>> scores = torch.tensor([[0.5, 0.1, 0.2], [1.0, 2.0, 3.0]])
    >>> labels = torch.tensor([[0.0, 2.0, 1.0], [1.0, 0.0, 0.0]])
    >>> metrics.err(scores, labels, k=2)
    tensor([0.1250, 0.0000], dtype=torch.float64)
    """
    return Evaluation(scores, labels, mask).value(
        err_of, k=k, max_label=max_label, empty=empty, ties=ties
    )


@ranking_metric
def nerr(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor | None = None,
    k: int | None = None,
    *,
    max_label: float | None = None,
    empty: str = "exclude",
    ties: str = "stable",
) -> Tensor:
    """ERR@k divided by its value for the ideal order (Yu2020); arguments as for :func:`err`.

    >>> import torch
    >>> from directrank import metrics
    >>> scores = torch.tensor([[0.5, 0.1, 0.2], [1.0, 2.0, 3.0]])
    >>> labels = torch.tensor([[0.0, 2.0, 1.0], [1.0, 0.0, 0.0]])
    >>> metrics.nerr(scores, labels, k=2)
    tensor([0.1600, 0.0000], dtype=torch.float64)
    """
    return Evaluation(scores, labels, mask).value(
        nerr_of, k=k, max_label=max_label, empty=empty, ties=ties
    )


def err_of(
    ranking: Ranking,
    judgements: Judgements,
    k: int | None = None,
    *,
    max_label: float | None = None,
) -> tuple[Tensor, Tensor]:
    """ERR@k over any ranking: value and where the query has a positive label, ``[B]``."""
    stops = judgements.stops(max_label)
    return ranking.cascade(stops, k), (stops > 0).any(1)


def nerr_of(
    ranking: Ranking,
    judgements: Judgements,
    k: int | None = None,
    *,
    max_label: float | None = None,
) -> tuple[Tensor, Tensor]:
    """Normalised ERR@k over any ranking: value and where it is defined, ``[B]``."""
    value, defined = err_of(ranking, judgements, k, max_label=max_label)
    best, _ = err_of(judgements.ideal, judgements, k, max_label=max_label)
    return ratio(value, best), defined
