"""ApproxNDCG of stochastic scores (Bruch et al., 2020)."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from directrank.kernels.dispatch import accelerated
from directrank.lists.calls import ranking_loss
from directrank.lists.conventions import GAIN
from directrank.losses._compose import NOISE, compose
from directrank.losses._needs import needs
from directrank.metrics._ndcg import ndcg_of
from directrank.relaxations.real_valued import BETA
from directrank.relaxations.sigmoid import ALPHA, sigmoid


@ranking_loss
@needs(draws="samples")
@accelerated
def gumbel_approx_ndcg(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor | None = None,
    *,
    k: int | None = None,
    alpha: float = ALPHA,
    beta: float = BETA,
    gain: str = GAIN,
    samples: int = 8,
    noise: float = NOISE,
    generator: torch.Generator | None = None,
) -> Tensor:
    """The mean of ApproxNDCG at scores with Gumbel noise, per query.

    Sorting noisy scores draws orders from the Plackett-Luce model whose log-weights are the scores.
    So this is the expected loss of a stochastic ranker, which is smoother.

    Args:
        scores: ``[B, L]``.
        labels: ``[B, L]``.
        mask: bool ``[B, L]``, True for a real document; None if all are real.
        k: cut-off, through the smooth truncation ``sigmoid(beta (k + 1/2 - rank))``; None takes the
            whole list.
        alpha: steepness of the ranks.
        beta: steepness of the truncation.
        gain: ``exp2`` (2^y - 1) or ``linear`` (y).
        samples: the number of draws over which the loss is averaged; 0 means no noise.
        noise: scale of the noise (the paper's β).
        generator: random stream of the noise, on the scores' device; None takes PyTorch's own.

    Returns:
        The loss per query, ``[B]``; 0 for a query without gain.

    >>> import torch
    >>> from directrank import losses
    >>> scores = torch.tensor([[0.5, 0.1, 0.2], [1.0, 2.0, 3.0]])
    >>> labels = torch.tensor([[2.0, 0.0, 1.0], [0.0, 0.0, 1.0]])
    >>> losses.gumbel_approx_ndcg(scores, labels, noise=0.0)
    tensor([-0.9528, -1.0000])
    """
    metric = partial(ndcg_of, k=k, gain=gain)
    ranks = partial(sigmoid, alpha=alpha, beta=beta)
    loss = compose(metric, ranks, samples=samples, noise=noise)
    return loss(scores, labels, mask, generator)
