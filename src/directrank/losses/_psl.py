"""PSL, the pairwise softmax loss (Yang et al., NeurIPS 2024)."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from directrank.lists.calls import ranking_loss
from directrank.lists.conventions import GAIN, gains, ratio
from directrank.lists.inputs import checked
from directrank.relaxations.real_valued import soft_counts


@ranking_loss
def psl(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor | None = None,
    *,
    tau: float = 1.0,
    gain: str = GAIN,
) -> Tensor:
    """``(1/Σ_i G(y_i)) Σ_i G(y_i) log Σ_j (1 + tanh(s_j - s_i))^(1/tau)`` per query.

    It is a softmax loss whose exponential is replaced by ``1 + tanh``, which is smaller and still
    at least the step function. Of the paper's activations it alone is positive and smooth for
    scores without bounds, as rankers have; the paper's are cosines. Relevant documents are weighted
    by their gains, and j is any document, itself included. With ``tau`` 1 the loss is
    ``log(2 r_i - 1)`` at the sigmoid ranks r of steepness 2.

    Source: Yang et al., NeurIPS 2024.

    Args:
        scores: ``[B, L]``.
        labels: ``[B, L]``.
        mask: bool ``[B, L]``, True for a real document; None if all are real.
        tau: temperature of the softmax (the paper's τ*).
        gain: ``exp2`` (2^y - 1) or ``linear`` (y).

    Returns:
        The loss per query, ``[B]``; 0 for a query without gain.

    >>> import torch
    >>> from directrank import losses
    >>> scores = torch.tensor([[0.5, 0.1, 0.2], [1.0, 2.0, 3.0]])
    >>> labels = torch.tensor([[2.0, 0.0, 1.0], [0.0, 0.0, 1.0]])
    >>> losses.psl(scores, labels)
    tensor([0.9241, 0.2425])
    """
    scores, labels, mask = checked(scores, labels, mask)
    weights = gains(labels, gain)
    share = ratio(weights, weights.sum(1, keepdim=True))
    if tau == 1.0:
        # The sum over j is 2 r_i - 1, so that no pair is kept in memory.
        costs = torch.log1p(2 * soft_counts(2 * scores, weights != 0, mask))
        return (share * costs).sum(1)
    lead = scores.unsqueeze(1) - scores.unsqueeze(2)
    # log(1 + tanh(x)), which does not vanish where tanh rounds to -1.
    logits = (math.log(2) + logsigmoid(2 * lead)) / tau
    hidden = ~mask.unsqueeze(1)
    costs = logits.masked_fill(hidden, torch.finfo(scores.dtype).min).logsumexp(2)
    return (share * costs).masked_fill(~mask, 0.0).sum(1)
