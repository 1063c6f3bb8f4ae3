"""The lambda functions that Burges2006 mentions but does not print: forces of pairs (section 6.2).

A document's force is the sum over its pairs (i, j), i the more relevant, of ``|ΔNDCG_ij| f(d)``,
``d = s_i - s_j``; it pushes i up and j down equally, so the forces of a query sum to zero. ΔNDCG,
the change by swapping the pair, is taken at the current order. While the order does not change, the
weights are constants, each force has a potential of differences, and the Jacobian is symmetric.
With ``logistic``, all pairs and no margin, it is the function that the paper chose,
:func:`directrank.losses.lambdarank`.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import softplus

from directrank.lists.calls import ranking_loss
from directrank.lists.conventions import discount
from directrank.lists.gradient import with_gradient
from directrank.lists.inputs import checked, one_of
from directrank.lists.pairs import both, differences
from directrank.lists.sorting import descending_order, inverse
from directrank.metrics.conventions import Judgements
from directrank.system.errors import ArgumentError

PAIRS = ("all", "neighbours")


def _step(d: Tensor, margin: float) -> tuple[Tensor, Tensor]:
    """A force of 1 or 0."""
    return (margin - d).clamp_min(0), (d < margin).to(d.dtype)


def _spring(d: Tensor, margin: float) -> tuple[Tensor, Tensor]:
    """A force in proportion to the gap to the margin."""
    missing = (margin - d).clamp_min(0)
    return missing.square() / 2, missing


def _logistic(d: Tensor, margin: float) -> tuple[Tensor, Tensor]:
    """RankNet's cost."""
    return softplus(margin - d, threshold=40), torch.sigmoid(margin - d)


def _sigmoid(d: Tensor, margin: float) -> tuple[Tensor, Tensor]:
    """A bounded cost: a hopeless pair exerts no force."""
    p = torch.sigmoid(margin - d)
    return p, p * (1 - p)


def _difference(d: Tensor, margin: float) -> tuple[Tensor, Tensor]:
    """A finite difference over ``d``, at least ``margin``; its potential is logarithmic beyond."""
    size = d.abs()
    far = (size.clamp_min(margin) / margin).log()
    near = 1 - d.clamp(-margin, margin) / margin
    return near - torch.sign(d) * far, 1 / size.clamp_min(margin)


#: name → function of d and the margin that returns the potential and the force, ``-dpotential/dd``.
FORCES: dict[str, Callable[[Tensor, float], tuple[Tensor, Tensor]]] = {
    "step": _step,
    "spring": _spring,
    "logistic": _logistic,
    "sigmoid": _sigmoid,
    "difference": _difference,
}


@ranking_loss
def lambda_family(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor | None = None,
    *,
    force: str = "logistic",
    pairs: str = "all",
    margin: float = 0.0,
) -> Tensor:
    """``Σ |ΔNDCG_ij| φ(s_i - s_j)`` over pairs with ``y_i > y_j``, per query; the weights are
    constants.

    Source: Burges2006, section 6.2, which mentions these functions without printing them.

    Args:
        scores: ``[B, L]``.
        labels: ``[B, L]``.
        mask: bool ``[B, L]``, True for a real document; None if all are real.
        force: ``-φ'(d)``: ``step`` 1 where d < margin; ``spring`` max(0, margin - d); ``logistic``
            1 / (1 + exp(d - margin)); ``sigmoid`` the slope of that; ``difference``
            1 / max(|d|, margin), the change of NDCG per change of score.
        pairs: ``all`` with different labels, or of these ``neighbours`` in the current order.
        margin: the lead below which a pair in the right order still exerts a force; for
            ``difference``, the smallest step.

    Returns:
        The loss per query, ``[B]``; 0 if there is no pair.

    Raises:
        ConfigError: a name is unknown, the margin is negative, or it is 0 for ``difference``.

    >>> import torch
    >>> from directrank import losses
    >>> scores = torch.tensor([[0.5, 0.1, 0.2], [1.0, 2.0, 3.0]])
    >>> labels = torch.tensor([[2.0, 0.0, 1.0], [0.0, 0.0, 1.0]])
    >>> losses.lambda_family(scores, labels)
    tensor([0.3479, 0.1791])
    """
    one_of(force, tuple(FORCES), "force")
    one_of(pairs, PAIRS, "choice of pairs")
    if margin < 0 or (margin == 0 and force == "difference"):
        raise ArgumentError(
            f"lambda_family: margin {margin} with force '{force}'",
            "choose a margin of 0 or more, and above 0 for 'difference'",
        )
    scores, labels, mask = checked(scores, labels, mask)
    value, gradient = _forces(scores.detach(), labels, mask, FORCES[force], pairs, margin)
    return with_gradient(scores, value, gradient)


@torch.no_grad()
def _forces(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor,
    law: Callable[[Tensor, float], tuple[Tensor, Tensor]],
    pairs: str,
    margin: float,
) -> tuple[Tensor, Tensor]:
    """The loss ``[B]`` and its gradient ``[B, L]``."""
    judgements = Judgements(labels, mask)
    gains = judgements.gains("exp2")
    ranks = inverse(descending_order(scores, mask)) + 1
    weights = discount("log2", ranks.to(scores.dtype))
    change = differences(gains).clamp_min(0) * differences(weights).abs()
    change = change * both(mask)
    if pairs == "neighbours":
        change = change * (differences(ranks).abs() == 1)
    potential, push = law(differences(scores), margin)
    push = push * change
    best = judgements.ideal_dcg("exp2", "log2", None)
    scale = best.masked_fill(best <= 0, float("inf"))  # without an ideal there is no force
    return (
        (potential * change).sum((1, 2)) / scale,
        (push.sum(1) - push.sum(2)) / scale.unsqueeze(1),
    )
