"""NeuralNDCG and its transpose (Pobrotyn2021): NDCG of NeuralSort's doubly stochastic matrix."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from directrank.lists.calls import ranking_loss
from directrank.lists.conventions import GAIN
from directrank.losses._compose import NOISE, compose
from directrank.losses._needs import needs
from directrank.metrics._ndcg import ndcg_of
from directrank.relaxations.neural_sort import ITERATIONS, TAU, TOLERANCE, neural_sort


@ranking_loss
@needs(draws="samples")
def neural_ndcg(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor | None = None,
    *,
    k: int | None = None,
    tau: float = TAU,
    iterations: int = ITERATIONS,
    tolerance: float = TOLERANCE,
    gain: str = GAIN,
    samples: int = 0,
    noise: float = NOISE,
    generator: torch.Generator | None = None,
) -> Tensor:
    """``-(1/maxDCG@k) Σ_{r≤k} (P G(y))_r D(r)``, P NeuralSort's matrix after Sinkhorn, per query.

    Args:
        scores: ``[B, L]``.
        labels: ``[B, L]``.
        mask: bool ``[B, L]``, True for a real document; None if all are real.
        k: cut-off; None takes the whole list.
        tau: temperature of NeuralSort.
        iterations: the most rounds of Sinkhorn scaling; 0 means none.
        tolerance: scaling ends when all sums differ from one by at most this.
        gain: ``exp2`` (2^y - 1) or ``linear`` (y).
        samples: 0 is the deterministic form; otherwise the loss is the mean over that many draws of
            Gumbel noise added to the scores, which are then log-weights of a Plackett-Luce model.
        noise: scale of the noise.
        generator: random stream of the noise, on the scores' device; None takes PyTorch's own.

    Returns:
        The loss per query, ``[B]``; 0 for a query without gain.

    >>> import torch
    >>> from directrank import losses
    >>> scores = torch.tensor([[0.5, 0.1, 0.2], [1.0, 2.0, 3.0]])
    >>> labels = torch.tensor([[2.0, 0.0, 1.0], [0.0, 0.0, 1.0]])
    >>> losses.neural_ndcg(scores, labels)
    tensor([-0.8388, -0.9070])
    """
    metric = partial(ndcg_of, k=k, gain=gain)
    sorting = partial(neural_sort, tau=tau, iterations=iterations, tolerance=tolerance)
    loss = compose(metric, sorting, samples=samples, noise=noise)
    return loss(scores, labels, mask, generator)


@ranking_loss
@needs(draws="samples")
def neural_ndcg_transposed(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor | None = None,
    *,
    k: int | None = None,
    tau: float = TAU,
    iterations: int = ITERATIONS,
    tolerance: float = TOLERANCE,
    gain: str = GAIN,
    samples: int = 0,
    noise: float = NOISE,
    generator: torch.Generator | None = None,
) -> Tensor:
    """``-(1/maxDCG@k) Σ_i G(y_i) (scale(Pᵀ) D)_i``, per query; see :func:`neural_ndcg`.

    Once Sinkhorn has converged this *is* NeuralNDCG: both are ``G(y)ᵀ Pᵀ D``. If stopped early they
    differ, because scaling begins with the columns of P there and with those of its transpose here.

    >>> import torch
    >>> from directrank import losses
    >>> scores = torch.tensor([[0.5, 0.1, 0.2], [1.0, 2.0, 3.0]])
    >>> labels = torch.tensor([[2.0, 0.0, 1.0], [0.0, 0.0, 1.0]])
    >>> losses.neural_ndcg_transposed(scores, labels)
    tensor([-0.8388, -0.9070])
    """
    metric = partial(ndcg_of, k=k, gain=gain)
    sorting = partial(
        neural_sort, tau=tau, iterations=iterations, tolerance=tolerance, rows_first=True
    )
    loss = compose(metric, sorting, samples=samples, noise=noise)
    return loss(scores, labels, mask, generator)
