"""ApproxNDCG (Qin2010 eq. 13; Bruch2019 eq. 6)."""

from __future__ import annotations

from torch import Tensor

from directrank.metrics._conventions import Judgements
from directrank.metrics._ndcg import ndcg_of
from directrank.relaxations._inputs import checked
from directrank.relaxations.sigmoid import SigmoidRanking


def approx_ndcg(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor | None = None,
    *,
    alpha: float = 10.0,
    k: int | None = None,
    beta: float = 10.0,
    gain: str = "exp2",
    discount: str = "log2",
) -> Tensor:
    """Minus NDCG at the ranks ``1 + Σ_{j≠i} sigmoid(alpha (s_j - s_i))``, per query."""
    scores, labels, mask = checked(scores, labels, mask)
    ranking = SigmoidRanking(scores, mask, alpha=alpha, beta=beta)
    value, _ = ndcg_of(ranking, Judgements(labels, mask), k, discount=discount, gain=gain)
    return -value
