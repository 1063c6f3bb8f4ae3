"""The LambdaLoss framework's bounds on NDCG (Wang et al., CIKM 2018), and on NDCG@k (Jagerman et
al., SIGIR 2022)."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.functional import softplus

from directrank.kernels.dispatch import accelerated
from directrank.lists.calls import ranking_loss
from directrank.lists.conventions import discount, normalised_gains
from directrank.lists.inputs import checked, one_of
from directrank.lists.pairs import both, differences, itself
from directrank.lists.sorting import descending_order, inverse
from directrank.losses._needs import needs

SCHEMES = ("ndcg_loss1", "ndcg_loss2", "ndcg_loss2pp", "ndcg_loss2_at_k")


@ranking_loss
@needs(flat=True)
@accelerated
def lambda_loss(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor | None = None,
    *,
    scheme: str = "ndcg_loss2pp",
    mu: float = 10.0,
    sigma: float = 1.0,
    k: int | None = None,
    gain: str = "exp2",
) -> Tensor:
    """``Σ w_ij log2(1 + exp(-sigma (s_i - s_j)))`` over pairs, per query.

    With G the gains over the largest DCG, r the current ranks and ``D(r) = 1/log2(1 + r)``, which
    are constants of the gradient:

    - ``ndcg_loss1`` (NDCG-Loss1): ``w_ij = G_i D(r_i)`` over all pairs of two documents;
    - ``ndcg_loss2`` (NDCG-Loss2): ``w_ij = δ_ij |G_i - G_j|`` over pairs with ``y_i > y_j``, where
      ``δ_ij = D(|r_i - r_j|) - D(|r_i - r_j| + 1)`` (equation 18);
    - ``ndcg_loss2pp`` (NDCG-Loss2++): ``w_ij = (|D(r_i) - D(r_j)| + mu δ_ij) |G_i - G_j|`` over the
      same pairs; with ``mu`` 0 it is :func:`directrank.losses.lambdarank` in binary logarithms;
    - ``ndcg_loss2_at_k`` (LambdaLoss@K): ``ndcg_loss2`` for NDCG@k, where δ of a pair with a
      document beyond rank k is divided by ``1 - D(max(r_i, r_j))``.

    The paper's distribution over orders is concentrated on the order by score.

    Source: Wang et al., CIKM 2018; for LambdaLoss@K Jagerman et al., SIGIR 2022.

    Args:
        scores: ``[B, L]``.
        labels: ``[B, L]``.
        mask: bool ``[B, L]``, True for a real document; None if all are real.
        scheme: ``ndcg_loss1``, ``ndcg_loss2``, ``ndcg_loss2pp`` or ``ndcg_loss2_at_k``.
        mu: weight of δ in ``ndcg_loss2pp``; other schemes ignore it.
        sigma: slope of the logistic function.
        k: NDCG is normalised at k, and but for ``ndcg_loss2_at_k``, which takes all pairs, only
            pairs count whose documents both are among the first k by current score, as in allRank;
            None takes the whole list.
        gain: ``exp2`` (2^y - 1) or ``linear`` (y).

    Returns:
        The loss per query, ``[B]``; 0 if there is no gain or no pair.

    >>> import torch
    >>> from directrank import losses
    >>> scores = torch.tensor([[0.5, 0.1, 0.2], [1.0, 2.0, 3.0]])
    >>> labels = torch.tensor([[2.0, 0.0, 1.0], [0.0, 0.0, 1.0]])
    >>> losses.lambda_loss(scores, labels, scheme="ndcg_loss2")
    tensor([0.3371, 0.1908])
    """
    one_of(scheme, SCHEMES, "scheme")
    scores, labels, mask = checked(scores, labels, mask)
    gains = normalised_gains(labels, mask, gain, "log2", k)
    ranks = inverse(descending_order(scores, mask)) + 1
    if k is not None and scheme != "ndcg_loss2_at_k":
        mask = mask & (ranks <= k)
    pairs = both(mask) & ~itself(scores.shape[1], scores.device)
    if scheme == "ndcg_loss1":
        weights = (gains * discount("log2", ranks.to(scores.dtype))).unsqueeze(2)
    else:
        pairs &= differences(labels) > 0
        weights = _of_swaps(ranks.to(scores.dtype), scheme, mu, k) * differences(gains).abs()
    costs = softplus(-sigma * differences(scores), threshold=40) / math.log(2)
    return (weights * costs).masked_fill(~pairs, 0.0).sum((1, 2))


def _of_swaps(ranks: Tensor, scheme: str, mu: float, k: int | None) -> Tensor:
    """The factor of a pair's difference in gain, ``[B, i, j]``."""
    # A document does not form a pair with itself, so any distance will do.
    distance = differences(ranks).abs().clamp_min(1)
    delta = discount("log2", distance) - discount("log2", distance + 1)
    if scheme == "ndcg_loss2_at_k" and k is not None:
        last = torch.maximum(ranks.unsqueeze(2), ranks.unsqueeze(1))
        return torch.where(last > k, delta / (1 - discount("log2", last.clamp_min(2))), delta)
    if scheme != "ndcg_loss2pp":
        return delta
    return torch.add(differences(discount("log2", ranks)).abs(), delta, alpha=mu)
