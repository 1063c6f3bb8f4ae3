"""Sinkhorn sorting: an entropic transport plan from scores to ranks (Cuturi et al., 2019)."""

from __future__ import annotations

import torch
from torch import Tensor

from directrank.relaxations.neural_sort import ITERATIONS, TOLERANCE, SortedDistribution
from directrank.relaxations.protocol import checks_options

#: The strength of the entropy.
TAU = 0.01

#: The smallest spread of scores, below which their standard deviation is not divided by.
LEAST = 1e-3


@checks_options
def sinkhorn_sort(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor,
    generator: torch.Generator | None = None,
    *,
    tau: float | Tensor = TAU,
    iterations: int = ITERATIONS,
    tolerance: float = TOLERANCE,
) -> SortedDistribution:
    """The plan that moves the squashed scores x to the grid 1, …, 1/(n - 1), 0 of the ranks.

    It minimises ``Σ T_ir (x_i - y_r)² + tau Σ T_ir log T_ir`` over matrices T whose rows and
    columns sum to one. As in the paper, x is the logistic function of the scores minus their mean
    over their standard deviation, so that the scale of scores does not matter.

    The plan is the limit of scaling NeuralSort's matrix of x at the temperature ``(n - 1) tau``, as
    docs/neural_sort_transport.md proves, and is computed so.

    Args:
        scores: ``[B, L]``, 0 at masked positions.
        labels: not used; every relaxation is given them.
        mask: bool ``[B, L]``.
        generator: not used.
        tau: strength of the entropy (the paper's ε); a tensor ``[B, 1]`` sets it per list.
        iterations: the most rounds of scaling.
        tolerance: scaling ends when all sums differ from one by at most this.
    """
    n = mask.sum(1, keepdim=True).to(scores.dtype)
    squashed = torch.sigmoid(standardised(scores, mask)).masked_fill(~mask, 0.0)
    rescaled = squashed / (tau * (n - 1).clamp_min(1))
    return SortedDistribution(rescaled, mask, (1.0, iterations, tolerance, False))


def standardised(scores: Tensor, mask: Tensor) -> Tensor:
    """Scores minus their mean over their standard deviation, ``[B, L]``; 0 where masked."""
    n = mask.sum(1, keepdim=True).clamp_min(1)
    centred = (scores - scores.sum(1, keepdim=True) / n).masked_fill(~mask, 0.0)
    variance = centred.square().sum(1, keepdim=True) / n
    return centred / (variance + LEAST**2).sqrt()
