"""YetiLoss: the pairs of neighbours in noisy orders (Lyzhin et al., ICML 2023)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain

import torch
from torch import Tensor
from torch.nn.functional import softplus

from directrank.kernels.dispatch import accelerated
from directrank.lists.calls import ranking_loss
from directrank.lists.conventions import normalised_gains, rank_discounts
from directrank.lists.draws import Source
from directrank.lists.flat import Lists, mask_of
from directrank.lists.inputs import checked_lists
from directrank.lists.orders import drawn_orders
from directrank.losses._needs import needs
from directrank.system.errors import ArgumentError


@ranking_loss
@needs(draws=True)
def yeti_loss(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor | None = None,
    *,
    k: int | None = None,
    neighbours: int = 1,
    samples: int = 10,
    noise: float = 1.0,
    gain: str = "exp2",
    generator: torch.Generator | None = None,
) -> Tensor:
    """``Σ w_ij log(1 + exp(-(s_i - s_j)))`` over pairs with ``y_i > y_j``, per query.

    ``w_ij`` is a mean over orders of the documents by their scores with logistic noise, the noise
    of YetiRank: the change of NDCG@k by a swap of i and j if the order has them at most
    ``neighbours`` ranks apart, and 0 otherwise. It is a constant of the gradient (section 3.1;
    CatBoost's ``YetiRank:mode=NDCG``). Without noise and with all neighbours it is
    :func:`directrank.losses.lambdarank`.

    Source: Lyzhin et al., ICML 2023.

    Args:
        scores: ``[B, L]``.
        labels: ``[B, L]``.
        mask: bool ``[B, L]``, True for a real document; None if all are real.
        k: cut-off; None takes the whole list.
        neighbours: how many ranks apart the documents of a pair are at most.
        samples: the number of orders that are drawn.
        noise: scale of the noise.
        gain: ``exp2`` (2^y - 1) or ``linear`` (y).
        generator: random stream of the noise, on the scores' device; None takes PyTorch's own.

    Returns:
        The loss per query, ``[B]``; 0 if there is no gain or no pair.

    Raises:
        ConfigError: there is less than one neighbour or sample.

    >>> import torch
    >>> from directrank import losses
    >>> scores = torch.tensor([[0.5, 0.1, 0.2], [1.0, 2.0, 3.0]])
    >>> labels = torch.tensor([[2.0, 0.0, 1.0], [0.0, 0.0, 1.0]])
    >>> losses.yeti_loss(scores, labels, generator=torch.Generator().manual_seed(0))
    tensor([0.1451, 0.0793])
    """
    if neighbours < 1 or samples < 1:
        raise ArgumentError(
            f"yeti_loss: {neighbours} neighbours, {samples} samples", "choose 1 or more"
        )
    return mean_cost(
        scores, labels, mask, k, neighbours, samples, gain, generator, lambda u: noise * u.logit()
    )


@accelerated
def mean_cost(
    scores: Tensor,
    labels: Tensor,
    lists: Lists | None,
    k: int | None,
    neighbours: int,
    samples: int,
    gain: str,
    generator: Source,
    noise: Callable[[Tensor], Tensor],
) -> Tensor:
    """:func:`yeti_loss` for padded or flat lists; ``noise`` is made of uniform numbers."""
    scores, labels, lists = checked_lists(scores, labels, lists)
    gains = normalised_gains(labels, lists, gain, "log2", k)
    orders = drawn_orders(scores, lists, generator, samples, noise)
    return costs_of_neighbours(scores, gains, lists, orders, neighbours, k) / samples


@accelerated
def costs_of_neighbours(
    scores: Tensor,
    gains: Tensor,
    lists: Lists,
    orders: Iterable[Tensor],
    neighbours: int,
    k: int | None,
) -> Tensor:
    """The costs of neighbours by the scores without noise, summed over ``orders``, ``[B]``.

    Args:
        scores: ``[B, L]``.
        gains: ``[B, L]``, 0 at masked positions.
        lists: bool ``[B, L]``, or on a CPU the positions of flat lists.
        orders: int64 ``[S, B, L]`` each, masked documents last.
        neighbours: how many ranks apart the documents of a pair are at most.
        k: cut-off; None takes the whole list.
    """
    mask = mask_of(lists)
    L = scores.shape[1]
    theta = rank_discounts("log2", L, k, scores.dtype, scores.device)
    values = []
    for order in chain.from_iterable(orders):
        s, g, real = (each.gather(1, order) for each in (scores, gains, mask))
        for apart in range(1, min(neighbours, max(L - 1, 1)) + 1):
            lead, better = s[:, :-apart] - s[:, apart:], g[:, :-apart] - g[:, apart:]
            weight = better.abs() * (theta[:-apart] - theta[apart:]) * real[:, apart:]
            cost = softplus(-torch.sign(better) * lead, threshold=40)
            values.append((weight * cost).sum(1))
    return sum(values[1:], values[0])
