"""Real-valued ranks from sigmoids of score differences (Qin2010 eq. 12, Bruch2019 eq. 5)."""

from __future__ import annotations

import torch
from torch import Tensor

from directrank.relaxations.protocol import checks_options
from directrank.relaxations.real_valued import BETA, RealValuedRanking, soft_counts

#: The steepness of the ranks.
ALPHA = 10.0


@checks_options
def sigmoid(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor,
    generator: torch.Generator | None = None,
    *,
    alpha: float | Tensor = ALPHA,
    beta: float = BETA,
) -> SigmoidRanking:
    """Sigmoid ranks as a relaxation; arguments as for :class:`SigmoidRanking`, others unused."""
    return SigmoidRanking(scores, mask, alpha=alpha, beta=beta)


class SigmoidRanking(RealValuedRanking):
    """``r_i = 1 + Σ_{j≠i} sigmoid(alpha (s_j - s_i))``.

    Args:
        scores: ``[B, L]``.
        mask: bool ``[B, L]``.
        alpha: steepness of the ranks; a tensor ``[B, 1]`` sets it per list.
        beta: see :class:`directrank.relaxations.real_valued.RealValuedRanking`.
    """

    def __init__(
        self, scores: Tensor, mask: Tensor, *, alpha: float | Tensor = ALPHA, beta: float = BETA
    ) -> None:
        values = alpha * scores
        super().__init__(lambda front: 1 + soft_counts(values, front, mask), beta=beta)
