"""NDCG under a differentiable sorting network on a CPU: gains pass through it beside the scores.

The formula sends the discounts of all ranks back through the network, in a batch for each length of
a list. Here every list passes through its own network, and the derivatives go back the same way.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from torch import Tensor

from directrank.kernels.batch import Batch
from directrank.kernels.compiling import compiled
from directrank.kernels.ndcg import in_distribution, top_discounts
from directrank.kernels.soft_ranks import sorted_lists
from directrank.lists.flat import Lists
from directrank.lists.inputs import one_of
from directrank.lists.sorting_networks import DISTRIBUTIONS, NETWORKS, sorting_network

#: The work of a comparison in pairs of documents.
WORK = 8


def ndcg(
    scores: Tensor,
    labels: Tensor,
    mask: Lists | None,
    *,
    k: int | None,
    gain: str,
    discount: str,
    alpha: float,
    network: str,
    distribution: str,
) -> Tensor:
    """Minus NDCG under a sorting network; see :func:`directrank.losses.diff_sort_ndcg`."""
    one_of(network, NETWORKS, "sorting network")
    one_of(distribution, DISTRIBUTIONS, "distribution")

    def own(batch: Batch, mask: Lists) -> tuple[int, Any]:
        lengths, which = np.unique(batch.lengths, return_inverse=True)
        nets = [_comparisons(network, n) for n in lengths.tolist()]
        ends = np.cumsum([0, *map(len, nets)])
        pairs = np.concatenate([_comparisons(network, 0), *nets])
        spans = ends[which], ends[which + 1]
        order, weights = sorted_lists(batch, batch.scores, mask), top_discounts(batch, discount, k)
        work = WORK * int((spans[1] - spans[0]).sum())
        return work, (order, weights, *spans, pairs, float(alpha), distribution == "cauchy")

    return in_distribution(_ndcg, scores, labels, mask, k, gain, discount, own)


@lru_cache(maxsize=1024)
def _comparisons(network: str, n: int) -> np.ndarray:
    """The places that a network for n values compares, one comparison after the other, ``[C, 2]``.

    Those of a layer have no place in common, so that their order does not matter.
    """
    pairs = [pair for layer in sorting_network(network, n) for pair in zip(*layer, strict=True)]
    return np.array(pairs, dtype=np.int32).reshape(-1, 2)


@compiled
def _ndcg(
    begin, end, starts, lengths, scores, gains, order, discounts, net, net_end, pairs, alpha,
    cauchy, value, gradient,
):  # fmt: skip
    """``Σ_r D(r) (P^T gains)_r`` ``[B]`` and its gradient ``[N]``.

    ``order [N]`` counts from each list's first document; ``discounts [R]`` are those of the ranks
    up to the cut-off; a list has the comparisons from ``net`` to ``net_end`` ``[B]`` of all
    ``pairs [C, 2]``.
    """
    longest, most = 1, 1
    for b in range(begin, end):
        longest = max(longest, lengths[b])
        most = max(most, net_end[b] - net[b])
    room, kept = np.empty((4, longest)), np.empty((3, most))
    s, g, of_s, of_g = room[0], room[1], room[2], room[3]
    leads, differences, parts = kept[0], kept[1], kept[2]
    for b in range(begin, end):
        value[b] = 0
        start, n = starts[b], lengths[b]
        if not np.any(gains[start : start + n]):
            continue
        for p in range(n):
            s[p] = scores[start + order[start + p]]
            g[p] = gains[start + order[start + p]]
        for c in range(net[b], net_end[b]):
            i, j, at = pairs[c, 0], pairs[c, 1], c - net[b]
            lead, difference = s[i] - s[j], g[i] - g[j]
            if cauchy:
                stays = np.arctan(alpha * lead) / np.pi + 0.5
            else:
                stays = 1 / (1 + np.exp(-alpha * lead))
            leads[at], differences[at], parts[at] = lead, difference, stays
            s[i], s[j] = s[j] + stays * lead, s[i] - stays * lead
            g[i], g[j] = g[j] + stays * difference, g[i] - stays * difference
        for p in range(n):
            of_s[p] = 0
            of_g[p] = discounts[p] if p < len(discounts) else 0
            value[b] += of_g[p] * g[p]
        # Back through the comparisons, with the derivatives by their results.
        for c in range(net_end[b] - 1, net[b] - 1, -1):
            i, j, at = pairs[c, 0], pairs[c, 1], c - net[b]
            lead, difference, stays = leads[at], differences[at], parts[at]
            if cauchy:
                slope = 1 / (np.pi * (1 + alpha * lead * (alpha * lead)))
            else:
                slope = stays * (1 - stays)
            ahead, ahead_g = of_s[i] - of_s[j], of_g[i] - of_g[j]
            push = alpha * slope * (ahead * lead + ahead_g * difference)
            of_s[i], of_s[j] = of_s[j] + stays * ahead + push, of_s[i] - stays * ahead - push
            of_g[i], of_g[j] = of_g[j] + stays * ahead_g, of_g[i] - stays * ahead_g
        for p in range(n):
            gradient[start + order[start + p]] = of_s[p]
