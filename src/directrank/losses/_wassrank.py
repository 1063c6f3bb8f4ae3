"""WassRank (Yu et al., WSDM 2019): entropic transport between score and label histograms."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from directrank.kernels.dispatch import accelerated
from directrank.lists.calls import ranking_loss
from directrank.lists.flat import Lists
from directrank.lists.gradient import with_gradient
from directrank.lists.inputs import check_powers, checked, nothing_masked, one_of
from directrank.system.errors import ArgumentError

GRADIENTS = ("dual", "autograd")

#: Replaces minus infinity where a difference of two such values must not be NaN.
FAR = 1e30


@ranking_loss
def wassrank(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor | None = None,
    *,
    gradient: str = "dual",
    lam: float = 0.1,
    iterations: int = 10,
    gap: float = 10.0,
    base: float = 4.0,
    penalty: float = math.e,
) -> Tensor:
    """Transport cost between ``softmax(s)`` and ``softmax(y)`` after a few Sinkhorn rounds.

    The cost of two documents is the distance of ``base^y - 1`` (``-gap`` for y = 0), or ``penalty``
    if that is below 1. It depends only on labels, so a product with the transport kernel needs one
    sum per pair of *labels*, and time and memory grow with L, not with L².

    Source: Yu et al., WSDM 2019.

    Args:
        scores: ``[B, L]``.
        labels: ``[B, L]``.
        mask: bool ``[B, L]``, True for a real document; None if all are real.
        gradient: ``dual``, the dual potential after the last round as in the released code
            (Yu2020), or ``autograd``, through the rounds.
        lam: strength of the entropy.
        iterations: Sinkhorn rounds.
        gap, base, penalty: parameters of the cost; the defaults are those of the released code's
            grid search, while its own defaults are 20 iterations and a gap of 100.

    Returns:
        The loss per query, ``[B]``; 0 for a list without documents.

    Raises:
        ConfigError: there is less than one iteration.

    >>> import torch
    >>> from directrank import losses
    >>> scores = torch.tensor([[0.5, 0.1, 0.2], [1.0, 2.0, 3.0]])
    >>> labels = torch.tensor([[0.0, 2.0, 1.0], [1.0, 0.0, 0.0]])
    >>> losses.wassrank(scores, labels)
    tensor([0.0000e+00, 2.2939e-08])
    """
    one_of(gradient, GRADIENTS, "gradient")
    if iterations < 1:
        raise ArgumentError(f"wassrank: {iterations} iterations", "choose 1 or more")
    return cost_of_transport(scores, labels, mask, gradient, lam, iterations, gap, base, penalty)


@accelerated
def cost_of_transport(
    scores: Tensor,
    labels: Tensor,
    lists: Lists | None,
    gradient: str,
    lam: float,
    iterations: int,
    gap: float,
    base: float,
    penalty: float,
) -> Tensor:
    """:func:`wassrank` with settings that are valid, and the positions of flat lists or a mask."""
    scores, labels, mask = checked(scores, labels, lists)
    check_powers(scores.dtype, base, "choose a smaller base, or map the labels to grades 0 to 4")
    if scores.shape[1] == 0:
        return scores.sum(1)
    if gradient == "autograd":
        return _transport(scores, labels, mask, lam, iterations, gap, base, penalty)[0]
    with torch.no_grad():
        value, log_u, log_mu = _transport(
            scores.detach(), labels, mask, lam, iterations, gap, base, penalty
        )
        mu = log_mu.exp() * mask
        potential = lam * log_u.masked_fill(~mask, 0.0)
        by_scores = mu * (potential - (mu * potential).sum(1, keepdim=True))
    return with_gradient(scores, value, by_scores)


def _transport(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor,
    lam: float,
    iterations: int,
    gap: float,
    base: float,
    penalty: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """The cost ``[B]``, the logs of the row scaling and of the score histogram ``[B, L]``."""
    log_mu = torch.log_softmax(scores.masked_fill(~mask, -FAR), 1).masked_fill(~mask, -FAR)
    log_nu = torch.log_softmax(labels.masked_fill(~mask, -FAR), 1).masked_fill(~mask, -FAR)
    kernel = _LabelKernel(labels, mask, lam, gap, base, penalty)
    log_u = kernel.hidden(torch.zeros_like(log_mu))
    log_v = log_u
    for _ in range(iterations):
        log_v = kernel.hidden(log_nu - kernel.product(log_u))
        log_u = kernel.hidden(log_mu - kernel.product(log_v))
    return kernel.cost(log_u, log_v), log_u, log_mu


class _LabelKernel:
    """``exp(-C/lam)`` for a cost C between documents that is a function of their labels.

    Documents of one label are ``penalty`` apart, a document and itself 0.
    """

    def __init__(
        self, labels: Tensor, mask: Tensor, lam: float, gap: float, base: float, penalty: float
    ) -> None:
        # A list of padding only still needs one level to refer to.
        known, level = torch.unique(labels.masked_fill(~mask, 0.0), return_inverse=True)
        self.level = level
        levels = torch.arange(len(known), device=labels.device).view(1, -1, 1)
        member = ((level.unsqueeze(1) == levels) & mask.unsqueeze(1)).to(labels.dtype)
        self.member = member.transpose(1, 2)
        self.outside = (member - 1) * FAR
        #: Where there is padding; None if nothing is known to be padding.
        self.padding = None if nothing_masked(mask) else ~mask
        height = torch.where(known >= 1, base**known - 1, -gap)
        cost = (height.unsqueeze(1) - height.unsqueeze(0)).abs()
        self.costs = cost.masked_fill(cost < 1, penalty)
        self.scaled = self.costs / lam
        self.lam, self.penalty = lam, penalty
        #: log(1 - exp(-penalty/lam)), the difference of K_ii = 1 to the kernel of its label.
        self.own = math.log(-math.expm1(-penalty / lam))

    def hidden(self, log_x: Tensor) -> Tensor:
        """``log x``, with ``-FAR`` at padding."""
        return log_x if self.padding is None else log_x.masked_fill(self.padding, -FAR)

    def product(self, log_x: Tensor) -> Tensor:
        """``log Σ_j K_ij x_j``, ``[B, L]``; K is symmetric."""
        by_level = torch.logsumexp(self._per_level(log_x).unsqueeze(1) - self.scaled, dim=2)
        # A document is counted with its label at the penalty, so the difference is added.
        return torch.logaddexp(self._own_level(by_level), log_x + self.own)

    def cost(self, log_u: Tensor, log_v: Tensor) -> Tensor:
        """``Σ_ij u_i C_ij K_ij v_j``, ``[B]``."""
        both = self._per_level(log_u).unsqueeze(2) + self._per_level(log_v).unsqueeze(1)
        total = (self.costs * torch.exp(both - self.scaled)).sum((1, 2))
        itself = (self.penalty * torch.exp(log_u + log_v - self.penalty / self.lam)).sum(1)
        return (total - itself).clamp_min(0)

    def _per_level(self, log_x: Tensor) -> Tensor:
        """``log Σ x`` over the documents of each label, ``[B, levels]``."""
        # Scaled by each label's largest entry, the sums are one product with the membership matrix.
        top = (log_x.detach().unsqueeze(1) + self.outside).amax(2)
        below = log_x - self._own_level(top)
        if self.padding is not None:  # it has no label; the bound keeps it finite
            below = below.clamp_max(0)
        sums = torch.bmm(torch.exp(below).unsqueeze(1), self.member).squeeze(1)
        return top + sums.clamp_min(torch.finfo(log_x.dtype).tiny).log()

    def _own_level(self, values: Tensor) -> Tensor:
        return values.gather(1, self.level)
