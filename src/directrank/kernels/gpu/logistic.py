"""Losses that are sums of logistic costs of pairs, on a GPU: RankNet, LambdaRank, LambdaLoss."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from directrank.kernels.gpu.lists import (
    STEP,
    TILE,
    DeviceLists,
    add_up,
    bounds,
    inverse_of,
    other_documents,
    own_documents,
    reach,
)
from directrank.kernels.gpu.pairs import LN2, discount, falling_places, gained, log_of_one_plus
from directrank.lists.conventions import gains
from directrank.lists.flat import Lists


def ranknet(
    scores: Tensor,
    labels: Tensor,
    mask: Lists | None,
    *,
    k: int | None,
    sigma: float,
    pair_reduction: str,
) -> Tensor:
    """See :func:`directrank.losses.ranknet`."""
    if pair_reduction not in ("sum", "mean"):
        return NotImplemented
    lists = DeviceLists(scores, labels, mask)
    ranks = None if k is None else lists.per_document(torch.int32)
    if k is not None:
        lists.run(_ranks, lists.tiles, lists.scores, None, k, lists.tiles, ranks, None)
    pairs = None
    if pair_reduction == "mean":
        pairs = lists.scores.new_zeros(lists.shape[0], lists.tiles)
    value = _summed(lists, lists.labels, ranks, k, sigma, pairs=pairs, weight="one")
    return value if pairs is None else value / pairs.sum(1).clamp_min(1)


def lambdarank(
    scores: Tensor,
    labels: Tensor,
    mask: Lists | None,
    *,
    k: int | None,
    cutoff: str,
    sigma: float,
    gain: str,
) -> Tensor:
    """See :func:`directrank.losses.lambdarank`."""
    if cutoff not in ("both", "either"):
        return NotImplemented
    lists = DeviceLists(scores, labels, mask)
    values, ranks, best = _ranked(lists, gain, k if cutoff == "both" else None)
    return _summed(lists, values, ranks, k, sigma, best=best, weight="swap", cutoff=cutoff)


def lambda_loss(
    scores: Tensor,
    labels: Tensor,
    mask: Lists | None,
    *,
    scheme: str,
    mu: float,
    sigma: float,
    k: int | None,
    gain: str,
) -> Tensor:
    """See :func:`directrank.losses.lambda_loss`."""
    if scheme not in ("ndcg_loss1", "ndcg_loss2", "ndcg_loss2pp", "ndcg_loss2_at_k"):
        return NotImplemented
    lists = DeviceLists(scores, labels, mask)
    values, ranks, best = _ranked(lists, gain, k)
    return _summed(lists, values, ranks, k, sigma, best=best, weight=scheme, mu=mu)


def _ranked(lists: DeviceLists, gain: str, k: int | None) -> tuple[Tensor, Tensor, Tensor]:
    """Gains, ranks by descending score, and parts of the largest DCG@k."""
    values = gains(lists.labels, gain)
    ranks, best = lists.per_document(torch.int32), lists.per_list(lists.tiles)
    lists.run(_ranks, lists.tiles, lists.scores, values, k, lists.tiles, ranks, best)
    return values, ranks, best


def _summed(
    lists: DeviceLists,
    values: Tensor,
    ranks: Tensor | None,
    k: int | None,
    sigma: float,
    *,
    weight: str,
    best: Tensor | None = None,
    pairs: Tensor | None = None,
    mu: float = 0.0,
    cutoff: str = "both",
) -> Tensor:
    """The sum of the costs of the pairs in which ``values`` differ; see :func:`_costs`."""
    costs = lists.per_list(lists.tiles)
    gradient = lists.per_document() if lists.gradient_needed else None
    lists.run(_costs, lists.tiles, lists.scores, values, ranks, k, float(sigma), float(mu),
              lists.tiles, best, costs, pairs, gradient, WEIGHT=weight, EITHER=cutoff == "either",
              TILES=triton.next_power_of_2(lists.tiles), num_warps=8)  # fmt: skip
    return lists.loss(costs.sum(1), gradient)


@triton.jit
def _ranks(spans, mask, L, scores, gains, k, tiles, ranks, best):
    """The ranks ``[N]`` by descending score, and if there are gains a tile's part of the largest
    DCG@k ``[B, tiles]``."""
    begin, n, places = bounds(spans, mask, L)
    i, real = own_documents(mask, begin, n)
    s = tl.load(scores + begin + i, mask=real, other=0.0)
    rank = falling_places(mask, scores, None, begin, n, i, s)
    tl.store(ranks + begin + i, rank, mask=i < places)
    if gains is not None:
        g = tl.load(gains + begin + i, mask=real, other=0.0)
        ideal = falling_places(mask, gains, None, begin, n, i, g)
        add_up(best, tiles, tl.where(real, gained(g, ideal, k, False), 0.0))


@triton.jit
def _costs(
    spans, mask, L, scores, gains, ranks, k, sigma: tl.float64, mu: tl.float64, tiles, best,
    costs, pairs, gradient, WEIGHT: tl.constexpr, EITHER: tl.constexpr, TILES: tl.constexpr,
):  # fmt: skip
    """A tile's part ``[B, tiles]`` of ``Σ w_ij log(1 + exp(-sigma (s_i - s_j)))`` and of the number
    of pairs, and the gradient ``[N]``.

    Document i of a pair has the larger gain, but for ``ndcg_loss1``, which takes all pairs. With a
    cut-off k, both documents have ranks up to k, or ``EITHER``. The weights are 1 (``one``), or the
    change of NDCG by a swap (``swap``), or those of :func:`directrank.losses.lambda_loss`, whose
    logarithm is binary.
    """
    begin, n, places = bounds(spans, mask, L)
    i, real = own_documents(mask, begin, n)
    s = tl.load(scores + begin + i, mask=real, other=0.0)
    g = tl.load(gains + begin + i, mask=real, other=0.0)
    dtype = s.dtype
    slope, delta_weight = tl.full((), sigma, dtype), tl.full((), mu, dtype)
    scale = tl.full((), 1.0, dtype)
    if best is not None:
        scale = inverse_of(best, tiles, TILES)
    if WEIGHT != "one" and WEIGHT != "swap":
        scale /= LN2
    rank = i
    if ranks is not None:
        rank = tl.load(ranks + begin + i, mask=real, other=1)
    own_discount = discount(rank.to(dtype), False)
    cost, push = tl.zeros([TILE], dtype), tl.zeros([TILE], dtype)
    number = tl.zeros([TILE], tl.int32)
    for first in range(0, reach(n), STEP):
        j, other = other_documents(mask, begin, first, n)
        s_j = tl.load(scores + begin + j, mask=other, other=0.0)
        g_j = tl.load(gains + begin + j, mask=other, other=0.0)
        both = real & other
        rank_j = j
        if ranks is not None:
            rank_j = tl.load(ranks + begin + j, mask=other, other=1)
        if k is not None and WEIGHT != "ndcg_loss2_at_k":
            both &= ((rank <= k) | (rank_j <= k)) if EITHER else ((rank <= k) & (rank_j <= k))
        lead = slope * (s - s_j)
        e = tl.exp(-tl.abs(lead))
        certain = 1.0 / (1.0 + e)
        wrong = tl.where(lead > 0, e * certain, certain)  # sigmoid(-lead)
        right = tl.where(lead > 0, certain, e * certain)
        lost = tl.maximum(-lead, 0.0) + log_of_one_plus(e)
        if WEIGHT == "ndcg_loss1":
            both &= i != j
            ahead = tl.where(both, g * own_discount, 0.0)
            behind = tl.where(both, g_j * discount(rank_j.to(dtype), False), 0.0)
        else:
            weight = tl.full([TILE, STEP], 1.0, dtype)
            if WEIGHT != "one":
                weight = tl.abs(g - g_j)
                apart = tl.abs(own_discount - discount(rank_j.to(dtype), False))
                if WEIGHT == "swap":
                    weight *= apart
                else:
                    steps = tl.maximum(tl.abs(rank - rank_j), 1).to(dtype)
                    delta = discount(steps, False) - discount(steps + 1.0, False)
                    if WEIGHT == "ndcg_loss2" or WEIGHT == "ndcg_loss2_at_k":
                        weight *= delta
                        if WEIGHT == "ndcg_loss2_at_k" and k is not None:
                            last = tl.maximum(rank, rank_j)
                            beyond = 1.0 - discount(tl.maximum(last, 2).to(dtype), False)
                            weight = tl.where(last > k, weight / beyond, weight)
                    else:
                        weight *= apart + delta_weight * delta
            ahead = tl.where(both & (g > g_j), weight, 0.0)
            behind = tl.where(both & (g < g_j), weight, 0.0)
        # Outside of pairs everything is weighted by 0, and places without a document hold 0.
        cost += tl.sum(ahead * lost, 1)
        if pairs is not None:
            number += tl.sum((both & (g > g_j)).to(tl.int32), 1)
        if gradient is not None:
            push += tl.sum(behind * right - ahead * wrong, 1)
    add_up(costs, tiles, scale * cost[:, None])
    if pairs is not None:
        add_up(pairs, tiles, number[:, None])
    if gradient is not None:
        pushed = tl.where(real, scale * (slope * push[:, None]), 0.0)
        tl.store(gradient + begin + i, pushed, mask=i < places)
