"""StochasticRank: NDCG smoothed with Gaussian noise (Ustimenko and Prokhorenkova, ICML 2020)."""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch
from torch import Tensor

from directrank.kernels.dispatch import accelerated
from directrank.lists.calls import ranking_loss
from directrank.lists.conventions import normalised_gains, rank_discounts, ranks_of
from directrank.lists.draws import Source, normal
from directrank.lists.flat import Lists, counts, hidden, mask_of, spread, sums
from directrank.lists.gradient import with_gradient
from directrank.lists.inputs import checked_lists
from directrank.lists.sorting import descending_order
from directrank.losses._needs import needs
from directrank.system.errors import ArgumentError

#: A constant added to the spread of a list's scores, so that equal scores have a gradient.
NU = 0.01


@ranking_loss
@needs(draws=True)
def stochastic_rank(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor | None = None,
    *,
    k: int | None = None,
    sigma: float = 1.0,
    mu: float = 0.0,
    samples: int = 1,
    gain: str = "exp2",
    generator: torch.Generator | None = None,
) -> Tensor:
    """Minus the mean NDCG@k of the documents' order by noisy scores, per query.

    Like NDCG, the loss does not depend on the location and scale of the scores: the mean of a
    list's scores is subtracted, and they are divided by their standard deviation plus 0.01. So the
    gradient is orthogonal to them, as in the paper's scale-free acceptance. Document i is then at
    ``x_i = z_i - sigma mu y_i + sigma ε_i``, ε standard normal; a mu above 0 moves the more
    relevant of two documents with equal scores back, so that ties are not learned (consistent
    smoothing).

    The gradient is estimated by coordinate conditional sampling: the other documents stay where
    they were drawn, and the document's own noise is integrated out,

    ``Σ_{j≠i} (ρ_i - ρ_j) (θ_p - θ_{p+1}) φ((x_j - E x_i) / sigma) / sigma``

    with ρ the gains over the largest DCG@k, ``θ_r = D(r)`` up to rank k and 0 beyond, p the rank of
    j among all documents except i, and φ the normal density. It takes a pass over the first k + 1
    documents for each document and sample.

    Source: Ustimenko and Prokhorenkova, ICML 2020.

    Args:
        scores: ``[B, L]``.
        labels: ``[B, L]``.
        mask: bool ``[B, L]``, True for a real document; None if all are real.
        k: cut-off; None takes the whole list.
        sigma: standard deviation of the noise, in standard deviations of a list's scores.
        mu: the distance by which documents are moved back for each grade of their label, in
            standard deviations of the noise.
        samples: the number of draws of the noise.
        gain: ``exp2`` (2^y - 1) or ``linear`` (y).
        generator: random stream of the noise, on the scores' device; None takes PyTorch's own.

    Returns:
        The loss per query, ``[B]``, in [-1, 0]; 0 for a query without gain.

    Raises:
        ConfigError: there is less than one sample.

    >>> import torch
    >>> from directrank import losses
    >>> scores = torch.tensor([[0.5, 0.1, 0.2], [1.0, 2.0, 3.0]])
    >>> labels = torch.tensor([[2.0, 0.0, 1.0], [0.0, 0.0, 1.0]])
    >>> losses.stochastic_rank(scores, labels, generator=torch.Generator().manual_seed(0))
    tensor([-0.9639, -1.0000])
    """
    if samples < 1:
        raise ArgumentError(f"stochastic_rank: {samples} samples", "choose 1 or more")
    return smoothed_ndcg(scores, labels, mask, NU, k=k, sigma=sigma, mu=mu, samples=samples,
                         gain=gain, generator=generator)  # fmt: skip


@accelerated
def smoothed_ndcg(
    scores: Tensor,
    labels: Tensor,
    mask: Lists | None,
    nu: float,
    *,
    k: int | None,
    sigma: float,
    mu: float,
    samples: int,
    gain: str,
    generator: Source,
) -> Tensor:
    """The loss; arguments as for :func:`stochastic_rank`, and ``nu`` for :data:`NU`."""
    scores, labels, lists = checked_lists(scores, labels, mask)
    gains = normalised_gains(labels, lists, gain, "log2", k)
    means = _normalised(scores, lists, nu) - sigma * mu * labels
    noise = (sigma * normal(means, lists, generator, means.dtype) for _ in range(samples))
    return -noisy_dcg(means, gains, lists, noise, sigma, k) / samples


def _normalised(scores: Tensor, lists: Lists, nu: float) -> Tensor:
    """Scores minus their mean, divided by their deviation plus ``nu``, ``[B, L]``; 0 at masked
    positions."""
    n = counts(lists).clamp_min(1)
    centred = hidden(scores - spread(sums(scores, lists) / n, lists), lists)
    variance = sums(centred.square(), lists) / n
    tiny = torch.finfo(scores.dtype).tiny
    return centred / (spread(variance.clamp_min(tiny).sqrt(), lists) + nu)


@accelerated
def noisy_dcg(
    means: Tensor,
    gains: Tensor,
    lists: Lists,
    noise: Iterable[Tensor],
    sigma: float,
    k: int | None,
) -> Tensor:
    """DCG@k summed over draws of noise, ``[B]``, with the gradient of conditional sampling.

    Args:
        means: of documents, ``[B, L]``.
        gains: ``[B, L]``, 0 at masked positions.
        lists: bool ``[B, L]``, or on a CPU the positions of flat lists.
        noise: ``[B, L]`` each.
        sigma: its deviation.
        k: cut-off; None takes the whole list.
    """
    mask = mask_of(lists)
    with torch.no_grad():
        value, gradient = means.new_zeros(len(means)), torch.zeros_like(means)
        for draw in noise:
            drawn = means + draw
            order = descending_order(drawn, mask)
            x, m, g, real = (values.gather(1, order) for values in (drawn, means, gains, mask))
            dcg, by_means = _of_order(x, m, g, real, sigma, k)
            value += dcg
            gradient.scatter_add_(1, order, by_means)
    return with_gradient(means, value, gradient)


def _of_order(
    drawn: Tensor, means: Tensor, gains: Tensor, mask: Tensor, sigma: float, k: int | None
) -> tuple[Tensor, Tensor]:
    """DCG@k ``[B]`` and the estimate ``[B, L]`` of documents in the order drawn."""
    L = drawn.shape[1]
    ranks = ranks_of(drawn)
    theta = rank_discounts("log2", L, k, drawn.dtype, drawn.device)
    reached = L if k is None else k + 1
    steps = theta - torch.cat([theta[1:], theta.new_zeros(1)])
    # Among the documents without a given one, those ahead of it keep their rank, others lose one.
    jumps = torch.where(
        ranks.unsqueeze(1) > ranks, steps, torch.cat([steps.new_zeros(1), steps[:-1]])
    ).fill_diagonal_(0)[:, :reached]
    apart = (drawn[:, None, :reached] - means.unsqueeze(2)) / sigma
    density = torch.exp(-apart.square() / 2) / (math.sqrt(2 * math.pi) * sigma)
    change = (gains.unsqueeze(2) - gains[:, None, :reached]) * jumps * mask[:, None, :reached]
    gradient = (change * density).sum(2).masked_fill(~mask, 0.0)
    return (theta * gains).sum(1), gradient
