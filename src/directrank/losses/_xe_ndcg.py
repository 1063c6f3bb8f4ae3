"""XE-NDCG, a cross entropy that bounds NDCG (Bruch, WWW 2021)."""

from __future__ import annotations

import torch
from torch import Tensor

from directrank.kernels.dispatch import accelerated
from directrank.lists.calls import ranking_loss
from directrank.lists.conventions import powers
from directrank.lists.draws import uniform
from directrank.lists.flat import Lists, hidden, mask_of, sums
from directrank.lists.inputs import checked_lists
from directrank.losses._needs import needs


@ranking_loss
@needs(draws=True)
@accelerated
def xe_ndcg(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor | None = None,
    *,
    document_weights: Tensor | None = None,
    generator: torch.Generator | None = None,
) -> Tensor:
    """``-Σ_i φ_i log softmax(s)_i``, ``φ_i = (2^{y_i} - γ_i) / Σ_j (2^{y_j} - γ_j)``, per query.

    Each γ is drawn from [0, 1) at each call, as in LightGBM's ``rank_xendcg``, whose first-order
    term equals the gradient; documents without relevance have a share of the target, too.

    Source: Bruch, WWW 2021.

    Args:
        scores: ``[B, L]``.
        labels: ``[B, L]``, not negative.
        mask: bool ``[B, L]``, True for a real document; None if all are real.
        document_weights: the factor of each document's term of the sum, in the shape of the scores,
            like the weights of TensorFlow Ranking's softmax cross entropy.
        generator: random stream of γ, on the scores' device; None takes PyTorch's own.

    Returns:
        The loss per query, ``[B]``; 0 for a list without documents.

    >>> import torch
    >>> from directrank import losses
    >>> scores = torch.tensor([[0.5, 0.1, 0.2], [1.0, 2.0, 3.0]])
    >>> labels = torch.tensor([[2.0, 0.0, 1.0], [0.0, 0.0, 1.0]])
    >>> losses.xe_ndcg(scores, labels, generator=torch.Generator().manual_seed(0))
    tensor([0.9981, 1.2375])
    """
    scores, labels, lists = checked_lists(scores, labels, mask)
    weights, gamma = powers(labels), uniform(scores, lists, generator, scores.dtype)
    if document_weights is None:
        return cross_entropy(scores, weights, gamma, lists)
    target = hidden(weights - gamma, lists)
    weighted = hidden(target * document_weights, lists)
    total = sums(target, lists)
    share = sums(weighted, lists) / total.masked_fill(total <= 0, torch.inf)
    return share * cross_entropy(scores, weighted, torch.zeros_like(weighted), lists)


@accelerated
def cross_entropy(scores: Tensor, powers: Tensor, gamma: Tensor, lists: Lists) -> Tensor:
    """The cross entropy of the scores' softmax under the normalised target ``powers - gamma``,
    ``[B]``.

    Args:
        scores: ``[B, L]``.
        powers, gamma: ``[B, L]``; the value is 0 if the sum of the target is not above 0.
        lists: bool ``[B, L]``, or on a CPU the positions of flat lists.
    """
    mask = mask_of(lists)
    target = hidden(powers - gamma, mask)
    total = target.sum(1, keepdim=True)
    share = target / total.masked_fill(total <= 0, torch.inf)
    lowest = torch.finfo(scores.dtype).min
    chance = torch.log_softmax(scores.masked_fill(~mask, lowest), 1).masked_fill(~mask, 0.0)
    return -(share * chance).sum(1)
