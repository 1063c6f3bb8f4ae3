"""Pointwise logistic losses: sigmoid cross-entropy, and ordinal regression (McCullagh, 1980).

TF-Ranking and allRank have both, Rax has the first.
"""

from __future__ import annotations

from torch import Tensor
from torch.nn.functional import softplus

from directrank.lists.calls import ranking_loss
from directrank.lists.conventions import ratio
from directrank.lists.flat import Lists, counts, hidden, sums
from directrank.lists.inputs import check_scale, checked_lists
from directrank.system.errors import ArgumentError

#: The levels of the largest scale, as that of ``max_label``.
MOST_LEVELS = 1024


@ranking_loss
def sigmoid_cross_entropy(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor | None = None,
    *,
    document_weights: Tensor | None = None,
) -> Tensor:
    """``-mean_i [b_i log σ(s_i) + (1 - b_i) log(1 - σ(s_i))]`` with ``b = min(y, 1)``, per query.

    Scores are log-odds of being relevant. As in Rax's ``pointwise_sigmoid_loss``, grades above 1
    count as 1; :func:`directrank.losses.ordinal` tells them apart.

    Source: logistic regression (Cox, Journal of the Royal Statistical Society B 20, 1958).

    Args:
        scores: ``[B, L]``.
        labels: ``[B, L]``; between 0 and 1 they are probabilities.
        mask: bool ``[B, L]``, True for a real document; None if all are real.
        document_weights: weights of the mean over the documents, in the shape of the scores.

    Returns:
        The loss per query, ``[B]``; 0 for a list without documents.

    >>> import torch
    >>> from directrank import losses
    >>> scores = torch.tensor([[0.5, 0.1, 0.2], [1.0, 2.0, 3.0]])
    >>> labels = torch.tensor([[2.0, 0.0, 1.0], [0.0, 0.0, 1.0]])
    >>> losses.sigmoid_cross_entropy(scores, labels)
    tensor([0.6055, 1.1629])
    """
    scores, labels, lists = checked_lists(scores, labels, mask)
    costs = _costs(scores, labels.clamp(max=1))
    return _mean(costs, document_weights, lists)


@ranking_loss
def ordinal(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor | None = None,
    *,
    levels: int = 5,
    gap: float = 1.0,
    document_weights: Tensor | None = None,
) -> Tensor:
    """``-mean_i Σ_t log P(1{y_i ≥ t})`` over the labels t = 1, …, levels - 1, per query, where the
    probability of a label of at least t is ``σ(s_i - gap (t - 1))``.

    TF-Ranking's and allRank's ordinal losses have an output of the network for each t. Here one
    score has fixed thresholds at equal distances, the model of proportional odds; the first one is
    at 0, so that two levels give :func:`directrank.losses.sigmoid_cross_entropy`.

    Source: McCullagh, Journal of the Royal Statistical Society B 42, 1980.

    Args:
        scores: ``[B, L]``.
        labels: ``[B, L]``.
        mask: bool ``[B, L]``, True for a real document; None if all are real.
        levels: the number of relevance levels, whose labels are 0, 1, …, levels - 1: a whole
            number from 2 to 1024.
        gap: the distance between two thresholds, in units of the score.
        document_weights: weights of the mean over the documents, in the shape of the scores.

    Returns:
        The loss per query, ``[B]``; 0 for a list without documents.

    Raises:
        ArgumentError: ``levels`` is None or not such a number, or a label is above levels - 1.

    >>> import torch
    >>> from directrank import losses
    >>> scores = torch.tensor([[0.5, 0.1, 0.2], [1.0, 2.0, 3.0]])
    >>> labels = torch.tensor([[2.0, 0.0, 1.0], [0.0, 0.0, 1.0]])
    >>> losses.ordinal(scores, labels, levels=3)
    tensor([1.1676, 2.5407])
    """
    if levels is None:
        raise ArgumentError("ordinal has no number of levels", "give the collection's levels")
    if not (2 <= levels <= MOST_LEVELS and levels == int(levels)):
        raise ArgumentError(
            f"levels must be a whole number from 2 to {MOST_LEVELS}, not {float(levels):g}",
            "give the number of the collection's label levels",
        )
    scores, labels, lists = checked_lists(scores, labels, mask)
    check_scale(levels - 1, "levels - 1 =", "give the number of levels that the labels have")
    costs = scores * 0
    for t in range(1, int(levels)):
        costs = costs + _costs(scores - gap * (t - 1), (labels >= t).to(scores.dtype))
    return _mean(costs, document_weights, lists)


def _costs(scores: Tensor, target: Tensor) -> Tensor:
    """``-t log σ(s) - (1 - t) log(1 - σ(s))`` of each document, in the shape of the scores."""
    right, wrong = softplus(-scores, threshold=40), softplus(scores, threshold=40)
    return target * right + (1 - target) * wrong


def _mean(costs: Tensor, document_weights: Tensor | None, lists: Lists) -> Tensor:
    """The mean of the ``costs [B, L]`` over the documents of each list, ``[B]``, which is weighted
    if there are weights; 0 without documents."""
    if document_weights is None:
        return sums(hidden(costs, lists), lists) / counts(lists).clamp_min(1)
    weights = hidden(document_weights.to(costs), lists)
    return ratio(sums(hidden(weights * costs, lists), lists), sums(weights, lists))
