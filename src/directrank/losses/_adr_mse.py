"""ADR-MSE, the discounted squared error of sigmoid ranks (Schlatt et al., ECIR 2025)."""

from __future__ import annotations

from torch import Tensor

from directrank.lists.calls import ranking_loss
from directrank.lists.conventions import discount
from directrank.lists.inputs import checked
from directrank.losses._needs import needs
from directrank.metrics.mean_ranks import mean_ranks
from directrank.relaxations.real_valued import soft_counts


@ranking_loss
@needs(per_list=("alpha",))
def adr_mse(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor | None = None,
    *,
    alpha: float | Tensor = 1.0,
) -> Tensor:
    """``mean_i (r_i - r*_i)² / log2(1 + r*_i)`` per query, at the ranks
    ``r_i = 1 + Σ_{j≠i} sigmoid(alpha (s_j - s_i))``.

    ``r*`` are the ranks by label. The paper distils rankings, which have no ties; documents with
    equal labels share the mean of their ranks here, as in the loss of sentence-transformers, so
    that they are asked for equal scores.

    Source: Schlatt et al., ECIR 2025.

    Args:
        scores: ``[B, L]``.
        labels: ``[B, L]``.
        mask: bool ``[B, L]``, True for a real document; None if all are real.
        alpha: steepness of the ranks (1 in the paper); a tensor ``[B, 1]`` sets it per query.

    Returns:
        The loss per query, ``[B]``; 0 for a list without documents.

    >>> import torch
    >>> from directrank import losses
    >>> scores = torch.tensor([[0.5, 0.1, 0.2], [1.0, 2.0, 3.0]])
    >>> labels = torch.tensor([[2.0, 0.0, 1.0], [0.0, 0.0, 1.0]])
    >>> losses.adr_mse(scores, labels)
    tensor([0.3564, 0.0986])
    """
    scores, labels, mask = checked(scores, labels, mask)
    ranks = 1 + soft_counts(alpha * scores, mask, mask)
    wanted = mean_ranks(-labels, mask).to(scores.dtype)
    errors = (ranks - wanted).square() * discount("log2", wanted.clamp_min(1))
    return errors.masked_fill(~mask, 0.0).sum(1) / mask.sum(1).clamp_min(1)
