"""LambdaLoss on a CPU: pairs in the order of the scores, each visited once."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from directrank.kernels.batch import Batch
from directrank.kernels.compiling import compiled, inlined
from directrank.kernels.numbers import like
from directrank.kernels.pairs import (
    bounded_power,
    fill_up,
    ideal_dcg,
    room_for,
    softplus,
    split_exponentials,
    whole_vectors,
)
from directrank.lists.conventions import discount_sums, gains
from directrank.lists.flat import Lists
from directrank.lists.sorting import descending_order

LN2 = math.log(2.0)


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
    at_cutoff = scheme == "ndcg_loss2_at_k"
    if not at_cutoff and scheme not in ("ndcg_loss1", "ndcg_loss2", "ndcg_loss2pp"):
        return NotImplemented
    batch = Batch(scores, labels, mask)
    mask = torch.ones_like(batch.scores, dtype=torch.bool) if mask is None else mask
    order = descending_order(batch.scores, mask)
    L = batch.shape[1]
    discounts = np.diff(discount_sums("log2", L + 1, None))
    value, gradient = batch.per_list(), batch.zeros()
    batch.run(
        _lambda_loss,
        batch.pairs // 2,
        *(batch.flat(values) for values in (batch.scores, gains(batch.labels, gain))),
        batch.places(order),
        float(sigma),
        L if k is None or at_cutoff else k,
        L if k is None or not at_cutoff else k,
        scheme == "ndcg_loss1",
        float(scheme in ("ndcg_loss1", "ndcg_loss2pp")),
        float(mu) if scheme == "ndcg_loss2pp" else 1.0,
        discounts.astype(gradient.dtype),
        discount_sums("log2", L, k),
        value,
        gradient,
    )
    return batch.loss(value, gradient)


@compiled
def _lambda_loss(
    begin,
    end,
    starts,
    lengths,
    scores,
    gains,
    order,
    sigma,
    cut,
    near,
    by_document,
    rho,
    mu,
    discounts,
    cumulative,
    value,
    gradient,
):
    """``Σ w_ij log2(1 + exp(-sigma (s_i - s_j)))``, ``[B]``, and its gradient ``[N]``.

    ``order [N]`` counts from each list's first document. ``by_document`` selects NDCG-Loss1;
    otherwise the weight of a pair is ``rho`` times the change of NDCG by a swap plus ``mu`` times
    δ, which is divided by one minus the discount of the rank behind if that is beyond ``near``.
    Documents beyond rank ``cut`` are left out. ``discounts [L + 1]`` are those of the ranks, and
    ``cumulative [L + 1]`` their sums up to the cut-off of NDCG.
    """
    L = lengths[begin:end].max()
    room = np.empty((7, room_for(L)), scores.dtype)
    mantissa, power, scaled, push, gain, discount, delta = (
        room[0], room[1], room[2], room[3], room[4], room[5], room[6],
    )  # fmt: skip
    more = np.ones((2, room_for(L)), scores.dtype)
    beyond, far = more[0], more[1]
    for r in range(near, L):
        beyond[r] = 1 / (1 - discounts[r]) if r > 0 else 1
    # δ of documents that are one or more ranks apart.
    delta[:] = 0
    for r in range(L):
        delta[r] = mu * (discounts[r] - discounts[r + 1])
    for b in range(begin, end):
        value[b] = 0
        first, n = starts[b], lengths[b]
        if n == 0:
            continue
        s, g, place = scores[first : first + n], gains[first : first + n], order[first : first + n]
        best = ideal_dcg(g, n, n, cumulative)
        if best <= 0:
            continue
        n = min(n, cut)
        split_exponentials(s, place, n, sigma, mantissa, power)
        least = np.inf
        for i in range(n):
            scaled[i] = sigma * s[place[i]]
            gain[i] = g[place[i]] / best
            discount[i] = discounts[i]
            least = min(least, gain[i])
        fill_up(n, mantissa, power, -1)
        scaled[n:] = -1e37
        push[:] = 0
        total = 0.0
        if by_document:
            for i in range(n):
                gain[i] *= discount[i]
            gain[n:] = 0
            for i in range(n - 1):
                cost, force = _of_documents(mantissa, power, scaled, gain, i, n, push)
                total += cost
                push[i] -= force
        else:
            gain[n:] = least  # documents that fill the list up push no document in front
            discount[n:] = 0
            far[:] = delta
            for i in range(n - 1):
                if near < n:
                    _farther(delta, beyond, i + 1, n, far)
                cost, force = _of_swaps(
                    mantissa, power, scaled, gain, discount, far, rho, i, n, push
                )
                total += cost
                push[i] -= force
        value[b] = total / LN2
        for i in range(n):
            gradient[first + place[i]] = sigma / LN2 * push[i]


@inlined
def _farther(delta, beyond, first, n, far):
    """``far``: δ of a document and those from ``first`` on, times what ranks beyond the cut-off
    make of it."""
    for j in range(n - first):
        far[j] = delta[j] * beyond[first + j]
    far[n - first : whole_vectors(n - first)] = 0


@inlined
def _of_documents(mantissa, power, scaled, weights, i, n, push):
    """Costs and forces of document i with those behind it; both documents weight a pair."""
    one, zero = like(mantissa[0], 1.0), like(mantissa[0], 0.0)
    inverse, own, mine, weight = one / mantissa[i], power[i], scaled[i], weights[i]
    first = i + 1
    m, p, v, g, w = mantissa[first:], power[first:], scaled[first:], push[first:], weights[first:]
    cost = force = zero
    for j in range(whole_vectors(n - first)):
        e = inverse * m[j] * bounded_power(p[j] - own)
        s = one / (one + e)
        lead = v[j] - mine
        cost += (weight + w[j]) * softplus(e, s, lead) - w[j] * lead
        pair = weight * (e * s) - w[j] * s
        g[j] += pair
        force += pair
    return cost, force


@inlined
def _of_swaps(mantissa, power, scaled, gain, discount, delta, rho, i, n, push):
    """Costs and forces of document i with those behind it, whose labels may be better or worse;
    each pair is weighted by its gains and ranks."""
    one, zero = like(mantissa[0], 1.0), like(mantissa[0], 0.0)
    inverse, own, mine = one / mantissa[i], power[i], scaled[i]
    first = i + 1
    m, p, v, g = mantissa[first:], power[first:], scaled[first:], push[first:]
    others_gain, others_discount = gain[first:], discount[first:]
    near = like(mantissa[0], rho)
    cost = force = zero
    for j in range(whole_vectors(n - first)):
        weight = near * (discount[i] - others_discount[j]) + delta[j]
        right = weight * max(gain[i] - others_gain[j], zero)
        wrong = weight * max(others_gain[j] - gain[i], zero)
        e = inverse * m[j] * bounded_power(p[j] - own)
        s = one / (one + e)
        lead = v[j] - mine
        cost += (right + wrong) * softplus(e, s, lead) - wrong * lead
        pair = right * (e * s) - wrong * s
        g[j] += pair
        force += pair
    return cost, force
