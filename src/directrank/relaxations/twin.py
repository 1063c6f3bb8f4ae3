"""Twin-sigmoid ranks (Yu2020): exact forward, with a chosen gradient backward."""

from __future__ import annotations

import torch
from torch import Tensor

from directrank.kernels.dispatch import accelerated
from directrank.lists.draws import Source, uniform
from directrank.lists.inputs import one_of
from directrank.lists.pairs import differences
from directrank.lists.sorting import descending_order, inverse
from directrank.relaxations.placed import PlacedRanking
from directrank.relaxations.protocol import checks_options, draws_by

GRADIENTS = ("type1", "type2", "type3")

#: The type of the gradient, the steepness of its sigmoid, and whether tied documents are ranked in
#: random order.
GRADIENT, ALPHA_B, BREAK_TIES = "type3", 1.0, True


@draws_by("break_ties")
@checks_options
def twin(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor,
    generator: torch.Generator | None = None,
    *,
    gradient: str = GRADIENT,
    alpha_b: float = ALPHA_B,
    break_ties: bool = BREAK_TIES,
) -> TwinRanking:
    """Twin-sigmoid ranks as a relaxation; arguments as for :class:`TwinRanking`."""
    return TwinRanking(
        scores,
        labels,
        mask,
        gradient=gradient,
        alpha_b=alpha_b,
        break_ties=break_ties,
        generator=generator,
    )


class TwinRanking(PlacedRanking):
    """``r_i = 1 + Σ_{j≠i} (1 - out_ij)``, out the indicator forward and a sigmoid backward.

    With ``z = s_i - s_j``, ``b = sigmoid(alpha_b z)`` and ``u = sign(y_i - y_j)`` the derivative
    ``g_ij`` of ``out_ij`` by z is ``alpha_b b (1 - b)`` (type1), ``u alpha_b b (1 - b)`` (type2) or
    ``2 alpha_b (1 - b)``, 0, ``-2 alpha_b b`` for u = 1, 0, -1 (type3); so ``dr_i/ds_i = -Σ_j
    g_ij`` and ``dr_i/ds_j = g_ij``. Types 2 and 3 are not the derivatives of any function.

    The four expectations give Yu2020's objectives.

    Args:
        scores: ``[B, L]``.
        labels: ``[B, L]``, which give the direction of types 2 and 3.
        mask: bool ``[B, L]``.
        gradient: ``type1``, ``type2`` or ``type3``.
        alpha_b: steepness of the backward sigmoid.
        break_ties: rank tied documents in random order; otherwise each counts half for the other.
        generator: random stream for ties, on the scores' device.
    """

    def __init__(
        self,
        scores: Tensor,
        labels: Tensor,
        mask: Tensor,
        *,
        gradient: str = GRADIENT,
        alpha_b: float = ALPHA_B,
        break_ties: bool = BREAK_TIES,
        generator: torch.Generator | None = None,
    ) -> None:
        one_of(gradient, GRADIENTS, "gradient")
        self.mask = mask
        order = _order(scores.detach(), mask, break_ties, generator)
        place = inverse(order) + 1
        exact = place.to(scores.dtype)
        if not break_ties:
            exact = _middle_ranks(scores.detach(), mask, order, exact)
        ranks = twin_ranks(scores, exact, labels, mask, gradient, alpha_b)
        super().__init__(order, place, ranks)

    def precisions(self, chosen: Tensor, k: int | None) -> Tensor:
        """See :class:`directrank.relaxations.Ranking`; Yu2020 eq. 14.

        ``Σ_p b_p (1/p) Σ_{q≤p} b_q q/r_q`` over places, summed in the other order.
        """
        at_place = (chosen * self._top(k) / self.place).gather(1, self.order)
        behind = at_place.flip(1).cumsum(1).flip(1).gather(1, self.place - 1)
        return (chosen * self._top(k) * self._place_over_rank * behind).sum(1)


@accelerated
def twin_ranks(
    scores: Tensor, exact: Tensor, labels: Tensor, mask: Tensor, gradient: str, alpha_b: float
) -> Tensor:
    """The ``exact`` ranks ``[B, L]`` with the gradient of a type; see :class:`TwinRanking`."""
    z = differences(scores)
    b = torch.sigmoid(alpha_b * z).detach()
    u = differences(labels).sign()
    if gradient == "type3":
        g = 2 * alpha_b * u * torch.where(u > 0, 1 - b, b)
    else:
        g = alpha_b * b * (1 - b) * (1 if gradient == "type1" else u)
    surrogate = -(g * z).masked_fill(~mask.unsqueeze(1), 0.0).sum(2)
    return exact + surrogate - surrogate.detach()


def _order(scores: Tensor, mask: Tensor, break_ties: bool, generator: Source) -> Tensor:
    """Positions by descending score, int64 ``[B, L]``; broken ties are in random order."""
    if not break_ties:
        return descending_order(scores, mask)
    return order_with_noise(scores, mask, uniform(scores, mask, generator, torch.float32))


@accelerated
def order_with_noise(scores: Tensor, mask: Tensor, noise: Tensor) -> Tensor:
    """Positions that sort ``scores`` descending, ties by descending ``noise``, masked ones last.

    Args:
        scores: floating ``[B, L]``.
        mask: bool ``[B, L]``.
        noise: floating ``[B, L]``; documents with the same score and noise keep their order.

    Returns:
        int64 ``[B, L]``.
    """
    shuffle = descending_order(noise, torch.ones_like(mask))
    order = descending_order(scores.gather(1, shuffle), mask.gather(1, shuffle))
    return shuffle.gather(1, order)


def _middle_ranks(scores: Tensor, mask: Tensor, order: Tensor, places: Tensor) -> Tensor:
    """Each tied document's rank as the mean of the places of its group."""
    ordered = scores.masked_fill(~mask, -torch.inf).gather(1, order)
    rising = -ordered
    first = torch.searchsorted(rising, rising)
    end = torch.searchsorted(rising, rising, right=True)
    middle = (first + end + 1).to(places.dtype) / 2
    return torch.where(mask, middle.gather(1, inverse(order)), places)
