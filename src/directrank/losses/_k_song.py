"""SONG and K-SONG: NDCG at ranks counted by squared hinges (Qiu et al., ICML 2022)."""

from __future__ import annotations

import torch
from torch import Tensor

from directrank.kernels.dispatch import accelerated
from directrank.lists.calls import ranking_loss
from directrank.lists.conventions import discount, normalised_gains
from directrank.lists.flat import Flat, Lists, counts, in_order, mask_of, spread
from directrank.lists.inputs import checked_lists
from directrank.lists.pairs import differences
from directrank.lists.sorting import descending_order
from directrank.system.errors import ArgumentError


@ranking_loss
@accelerated
def k_song(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor | None = None,
    *,
    k: int | None = None,
    margin: float = 1.0,
    beta: float = 2.0,
    gain: str = "exp2",
) -> Tensor:
    """``-(1/maxDCG@k) Σ_i ψ_i G(y_i) / log2(1 + Σ_j max(0, margin - (s_i - s_j))²)``, per query.

    The sum over j includes the document itself, so with a margin of 1 it is at least the document's
    rank, and minus the loss is at most NDCG. Without a cut-off all ``ψ_i`` are 1, and this is SONG.

    K-SONG's ``ψ_i = sigmoid(beta (s_i - λ))`` has the threshold λ of equation 6, which separates
    the first k documents from the others. The authors track the minimum of a smoothed form by
    gradient descent; here it is the limit of that minimum as smoothing vanishes, half-way between
    the scores at ranks k and k + 1. ψ is a constant of the gradient, as in their practical version.
    Lists of at most k documents are not cut off.

    The authors keep moving averages of the sums over j, because they sample the documents of a
    query. Here each call receives whole lists, whose sums are exact: this is their estimator with a
    factor γ of 1, which forgets the past, and for SONG it is the gradient itself. No state is kept.

    Source: Qiu et al., ICML 2022.

    Args:
        scores: ``[B, L]``.
        labels: ``[B, L]``.
        mask: bool ``[B, L]``, True for a real document; None if all are real.
        k: cut-off; None takes the whole list.
        margin: the margin of the squared hinge, above 0.
        beta: steepness of the cut-off.
        gain: ``exp2`` (2^y - 1) or ``linear`` (y).

    Returns:
        The loss per query, ``[B]``; 0 for a query without gain.

    Raises:
        ConfigError: the margin is not above 0.

    >>> import torch
    >>> from directrank import losses
    >>> scores = torch.tensor([[0.5, 0.1, 0.2], [1.0, 2.0, 3.0]])
    >>> labels = torch.tensor([[2.0, 0.0, 1.0], [0.0, 0.0, 1.0]])
    >>> losses.k_song(scores, labels)
    tensor([-0.6737, -1.0000])
    """
    if margin <= 0:
        raise ArgumentError(f"k_song: margin {margin}", "choose a value above 0")
    scores, labels, lists = checked_lists(scores, labels, mask)
    weights = normalised_gains(labels, lists, gain, "log2", k)
    if k is not None and k < scores.shape[-1]:
        weights = weights * _within(k, scores.detach(), lists, beta)
    return -hinged_dcg(scores, weights, lists, margin)


def _within(k: int, scores: Tensor, lists: Lists, beta: float) -> Tensor:
    """The degree to which each document is among the first k, ``[B, L]`` or flat ``[N]``."""
    falling = in_order(scores, descending_order(scores, lists), lists)
    if isinstance(lists, Flat):
        after = torch.from_numpy(lists.starts + k)  # of a list that is not longer than k, anywhere
        ends = torch.stack([after - 1, after], 1).clamp_(0, len(scores) - 1)
        threshold = falling[ends].mean(1)
    else:
        threshold = falling[:, k - 1 : k + 1].mean(1)
    within = torch.sigmoid(beta * (scores - spread(threshold, lists)))
    return torch.where(spread(counts(lists) > k, lists), within, 1.0)


@accelerated
def hinged_dcg(scores: Tensor, weights: Tensor, lists: Lists, margin: float) -> Tensor:
    """``Σ_i weights_i / log2(1 + Σ_j max(0, margin - (s_i - s_j))²)``, ``[B]``.

    Args:
        scores: ``[B, L]``.
        weights: ``[B, L]``, 0 at masked positions.
        lists: bool ``[B, L]``, or on a CPU the positions of flat lists.
        margin: of the squared hinge.
    """
    mask = mask_of(lists)
    short = (margin - differences(scores)).clamp_min(0) * mask.unsqueeze(1)
    return (weights * discount("log2", short.square().sum(2))).masked_fill(~mask, 0.0).sum(1)
