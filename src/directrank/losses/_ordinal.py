"""Ordinal regression: a logistic cost per threshold of the labels (McCullagh, 1980)."""

from __future__ import annotations

import math

from torch import Tensor

from directrank.lists.calls import ranking_loss
from directrank.lists.inputs import checked_lists
from directrank.losses._sigmoid_cross_entropy import logistic_costs, mean_of_documents
from directrank.system.errors import ArgumentError


@ranking_loss
def ordinal(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor | None = None,
    *,
    levels: float = 5.0,
    gap: float = 1.0,
    document_weights: Tensor | None = None,
) -> Tensor:
    """``-mean_i Σ_t log P(1{y_i ≥ t})`` over the labels t = 1, …, levels - 1, per query, where the
    probability of a label of at least t is ``σ(s_i - gap (t - 1))``.

    TF-Ranking's and allRank's ordinal losses have an output of the network for each t. Here one
    score has fixed thresholds at equal distances, the model of proportional odds; the first one is
    at 0, so that two levels give :func:`directrank.losses.sigmoid_cross_entropy`.

    Args:
        scores: ``[B, L]``.
        labels: ``[B, L]``.
        mask: bool ``[B, L]``, True for a real document; None if all are real.
        levels: the number of relevance levels, whose labels are 0, 1, …, levels - 1.
        gap: the distance between two thresholds, in units of the score.
        document_weights: weights of the mean over the documents, in the shape of the scores.

    Returns:
        The loss per query, ``[B]``; 0 for a list without documents.

    Raises:
        ArgumentError: ``levels`` is None.

    >>> import torch
    >>> from directrank import losses
    >>> scores = torch.tensor([[0.5, 0.1, 0.2], [1.0, 2.0, 3.0]])
    >>> labels = torch.tensor([[2.0, 0.0, 1.0], [0.0, 0.0, 1.0]])
    >>> losses.ordinal(scores, labels, levels=3)
    tensor([1.1676, 2.5407])
    """
    if levels is None:
        raise ArgumentError("ordinal has no number of levels", "give the collection's levels")
    scores, labels, lists = checked_lists(scores, labels, mask)
    costs = scores * 0
    for t in range(1, math.ceil(levels)):
        costs = costs + logistic_costs(scores - gap * (t - 1), (labels >= t).to(scores.dtype))
    return mean_of_documents(costs, document_weights, lists)
