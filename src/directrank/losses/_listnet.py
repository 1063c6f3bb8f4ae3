"""ListNet with top-one probabilities (Cao et al., 2007)."""

from __future__ import annotations

import torch
from torch import Tensor

from directrank.kernels.dispatch import accelerated
from directrank.lists.calls import ranking_loss
from directrank.lists.flat import hidden
from directrank.lists.inputs import checked
from directrank.losses._needs import needs


@ranking_loss
@needs(flat=True)
@accelerated
def listnet(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor | None = None,
    *,
    document_weights: Tensor | None = None,
) -> Tensor:
    """Cross entropy of the scores' softmax under the labels' softmax, per query.

    ``-Σ_i softmax(y)_i log softmax(s)_i`` with the raw labels in the exponent.

    Source: Cao et al., ICML 2007.

    Args:
        scores: ``[B, L]``.
        labels: ``[B, L]``.
        mask: bool ``[B, L]``, True for a real document; None if all are real.
        document_weights: the factor of each document's term of the sum, in the shape of the scores,
            like the weights of TensorFlow Ranking's softmax cross entropy.

    Returns:
        The loss per query, ``[B]``; 0 for a list without documents.

    >>> import torch
    >>> from directrank import losses
    >>> scores = torch.tensor([[0.5, 0.1, 0.2], [1.0, 2.0, 3.0]])
    >>> labels = torch.tensor([[2.0, 0.0, 1.0], [0.0, 0.0, 1.0]])
    >>> losses.listnet(scores, labels)
    tensor([0.9895, 1.0434])
    """
    scores, labels, mask = checked(scores, labels, mask)
    # Not minus infinity, which would give NaN for a list of padding only.
    lowest = torch.finfo(scores.dtype).min
    target = torch.softmax(labels.masked_fill(~mask, lowest), dim=1)
    if document_weights is not None:
        target = target * hidden(document_weights, mask)
    logs = torch.log_softmax(scores.masked_fill(~mask, lowest), dim=1)
    return -(target * logs).masked_fill(~mask, 0.0).sum(1)
