"""PL-Rank-3: the gradient of expected NDCG under Plackett-Luce (Oosterhuis, SIGIR 2022)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain

import torch
from torch import Tensor
from torch.nn.functional import pad

from directrank.kernels.dispatch import accelerated
from directrank.lists.calls import ranking_loss
from directrank.lists.conventions import normalised_gains, rank_discounts
from directrank.lists.draws import Source
from directrank.lists.flat import Lists, mask_of
from directrank.lists.gradient import with_gradient
from directrank.lists.inputs import checked_lists
from directrank.lists.orders import drawn_orders
from directrank.losses._needs import needs
from directrank.relaxations.gumbel import gumbel
from directrank.system.errors import ArgumentError


@ranking_loss
@needs(draws=True)
def pl_rank(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor | None = None,
    *,
    k: int | None = None,
    samples: int = 10,
    gain: str = "exp2",
    generator: torch.Generator | None = None,
) -> Tensor:
    """Minus the mean NDCG@k of orders drawn with the scores as log-weights, per query.

    Its gradient is the estimate PL-Rank-3 from the same draws, whose expectation is the gradient of
    the expected NDCG@k. With ``θ_r = D(r)`` up to rank k and 0 beyond, ρ the gains over the largest
    DCG@k, and ``Z_r`` the sum of ``exp(s)`` of the documents from rank r on, an order in which
    document i is at rank r gives it (Algorithm 1, with placement reward, direct reward and risk)

    ``Σ_{x>r} θ_x ρ_x + exp(s_i) Σ_{x≤r} (θ_x ρ_i - Σ_{y≥x} θ_y ρ_y) / Z_x``.

    Source: Oosterhuis, SIGIR 2022 (PL-Rank-3).

    Args:
        scores: ``[B, L]``.
        labels: ``[B, L]``.
        mask: bool ``[B, L]``, True for a real document; None if all are real.
        k: cut-off; None takes the whole list.
        samples: the number of orders that are drawn.
        gain: ``exp2`` (2^y - 1) or ``linear`` (y).
        generator: random stream of the orders, on the scores' device; None takes PyTorch's own.

    Returns:
        The loss per query, ``[B]``, in [-1, 0]; 0 for a query without gain.

    Raises:
        ConfigError: there is less than one sample.

    >>> import torch
    >>> from directrank import losses
    >>> scores = torch.tensor([[0.5, 0.1, 0.2], [1.0, 2.0, 3.0]])
    >>> labels = torch.tensor([[2.0, 0.0, 1.0], [0.0, 0.0, 1.0]])
    >>> losses.pl_rank(scores, labels, generator=torch.Generator().manual_seed(0))
    tensor([-0.7534, -0.9631])
    """
    if samples < 1:
        raise ArgumentError(f"pl_rank: {samples} samples", "choose 1 or more")
    return mean_dcg(scores, labels, mask, k, samples, gain, generator, gumbel)


@accelerated
def mean_dcg(
    scores: Tensor,
    labels: Tensor,
    lists: Lists | None,
    k: int | None,
    samples: int,
    gain: str,
    generator: Source,
    noise: Callable[[Tensor], Tensor],
) -> Tensor:
    """:func:`pl_rank` for padded or flat lists; ``noise`` makes Gumbel noise of uniform numbers."""
    scores, labels, lists = checked_lists(scores, labels, lists)
    gains = normalised_gains(labels, lists, gain, "log2", k)
    orders = drawn_orders(scores, lists, generator, samples, noise)
    return -drawn_dcg(scores, gains, lists, orders, k) / samples


@accelerated
def drawn_dcg(
    scores: Tensor, gains: Tensor, lists: Lists, orders: Iterable[Tensor], k: int | None
) -> Tensor:
    """DCG@k summed over orders drawn by Plackett-Luce, ``[B]``, with the gradient of PL-Rank-3.

    Args:
        scores: ``[B, L]``.
        gains: ``[B, L]``, 0 at masked positions.
        lists: bool ``[B, L]``, or on a CPU the positions of flat lists.
        orders: int64 ``[S, B, L]`` each, masked documents last.
        k: cut-off; None takes the whole list.
    """
    mask = mask_of(lists)
    with torch.no_grad():
        value, gradient = scores.new_zeros(len(scores)), torch.zeros_like(scores)
        for order in chain.from_iterable(orders):
            s, g, real = (values.gather(1, order) for values in (scores, gains, mask))
            dcg, by_scores = _of_order(s, g, real, k)
            value += dcg
            gradient.scatter_add_(1, order, by_scores)
    return with_gradient(scores, value, gradient)


def _of_order(scores: Tensor, gains: Tensor, mask: Tensor, k: int | None) -> tuple[Tensor, Tensor]:
    """DCG@k ``[B]`` and the estimate ``[B, L]`` of documents in the order drawn."""
    theta = rank_discounts("log2", scores.shape[1], k, scores.dtype, scores.device)
    value = (theta * gains).sum(1)
    # Adding a constant to all gains leaves the expected gradient unchanged, and sums then have
    # logarithms.
    gains = (gains - pad(gains, (0, 1)).amin(1, keepdim=True)) * mask
    reward = theta * gains
    following = reward.flip(1).cumsum(1).flip(1)
    scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    rest = scores.flip(1).logcumsumexp(1).flip(1)

    def over_rest(weights: Tensor) -> Tensor:
        """``exp(s_i) Σ_{x≤r} weights_x / Z_x``."""
        return torch.exp(scores + torch.logcumsumexp(weights.log() - rest, 1))

    gradient = following - reward + gains * over_rest(theta) - over_rest(following)
    return value, gradient.masked_fill(~mask, 0.0)
