"""Compiled passes over the training queries, one update of the weights per query.

M networks are trained side by side on the same queries. All of a document's units lie next to each
other, those of network m at positions m, m + M, …, so that the innermost loops run over units of
all networks. Shapes: F features, H units (1 for a linear net), K = H · M.
"""

from __future__ import annotations

import math

import numpy as np

from directrank.kernels.compiling import compiled, inlined

#: The forces of :mod:`directrank.losses._lambda_family`, by number.
LAWS = ("step", "spring", "logistic", "sigmoid", "difference")
STEP, SPRING, LOGISTIC, SIGMOID, DIFFERENCE = range(len(LAWS))


@inlined
def forward(x, weight, bias, output, squash, units, scores):
    """Units ``[K]`` and scores ``[M]`` of one document ``x`` ``[F]``; both are overwritten."""
    K, M = len(units), len(scores)
    for k in range(K):
        units[k] = bias[k]
    for f in range(len(x)):
        value = x[f]
        for k in range(K):
            units[k] += value * weight[f, k]
    if not squash:
        for m in range(M):
            scores[m] = units[m]
        return
    for k in range(K):
        units[k] = math.tanh(units[k])
    for m in range(M):
        scores[m] = 0
    for h in range(K // M):
        for m in range(M):
            scores[m] += output[h * M + m] * units[h * M + m]


@inlined
def backward(x, output, squash, units, score_gradient, pull, d_weight, d_bias, d_output):
    """Add the gradients of one document, ``score_gradient`` ``[M]`` being those by its scores.

    ``pull`` ``[K]`` is working space.
    """
    K, M = len(units), len(score_gradient)
    if squash:
        one = units.dtype.type(1)  # a plain 1 would make it float64
        for h in range(K // M):
            for m in range(M):
                k = h * M + m
                d_output[k] += score_gradient[m] * units[k]
                pull[k] = score_gradient[m] * output[k] * (one - units[k] * units[k])
                d_bias[k] += pull[k]
    else:
        for m in range(M):
            pull[m] = score_gradient[m]
    for f in range(len(x)):
        value = x[f]
        for k in range(K):
            d_weight[f, k] += value * pull[k]


@inlined
def pair_gradients(ahead, behind, push, product, cost):
    """Of pairs whose first document should lead: ``push`` ``[M]`` = 1 / (1 + exp(s_i - s_j)).

    Their cost (Burges2006 eq. 8) is added in two parts: what is linear to ``cost`` ``[M]``, and
    the factors of what is left to take the logarithm of to ``product`` ``[M]``, each in (1, 2].
    """
    M = len(push)
    one = push.dtype.type(1)  # a plain 1 would make it float64
    for m in range(M):
        push[m] = math.exp(-abs(ahead[m] - behind[m]))
    for m in range(M):
        lead = ahead[m] - behind[m]
        near = one + push[m]
        product[m] *= near
        cost[m] += max(-lead, push.dtype.type(0))
        push[m] = (push[m] if lead > 0 else one) / near


@inlined
def flush(product, cost):
    """Move the logarithm of ``product`` into ``cost``."""
    for m in range(len(cost)):
        cost[m] += math.log(product[m])
        product[m] = 1


@inlined
def by_label(labels, order, below):
    """``order`` ``[L]``: documents by rising label; ``below`` ``[L]``, in that order: how many
    have a lower label."""
    order[:] = np.argsort(labels, kind="mergesort")
    for place in range(len(labels)):
        same = place > 0 and labels[order[place]] == labels[order[place - 1]]
        below[place] = below[place - 1] if same else place


@inlined
def pushes(law, margin, lead, push):
    """``push`` ``[n]``: by what a document that should lead is pushed up, for each of the ``lead``
    ``[n]`` that it has; see :data:`LAWS`. ``lead`` is changed."""
    one, zero = push.dtype.type(1), push.dtype.type(0)
    if law == DIFFERENCE:
        for j in range(len(lead)):
            push[j] = one / max(abs(lead[j]), margin)
    elif law == SPRING:
        for j in range(len(lead)):
            push[j] = max(margin - lead[j], zero)
    elif law == STEP:
        for j in range(len(lead)):
            push[j] = one if lead[j] < margin else zero
    else:
        for j in range(len(lead)):
            lead[j] = math.exp(lead[j] - margin)
        for j in range(len(lead)):
            push[j] = one / (one + lead[j])
        if law == SIGMOID:
            for j in range(len(lead)):
                push[j] *= one - push[j]


@inlined
def ranknet_pushes(lead, push):
    """As :func:`pushes` for RankNet, and the sum of the pairs' costs (Burges2006 eq. 8)."""
    one, zero = push.dtype.type(1), push.dtype.type(0)
    cost = 0.0
    for j in range(len(lead)):
        push[j] = math.exp(-abs(lead[j]))
    for first in range(0, len(lead), 500):  # 2^500 is far from the largest float64
        product = 1.0
        for j in range(first, min(first + 500, len(lead))):
            near = one + push[j]
            product *= near
            cost += max(-lead[j], zero)
            push[j] = (push[j] if lead[j] > 0 else one) / near
        cost += math.log(product)
    return cost


@inlined
def lambdas(
    law, neighbours, margin, scores, gains, discounts, best, cutoff_best, cutoff, order, below,
    ranks, work, score_gradients, cost,
):  # fmt: skip
    """``score_gradients`` ``[L, M]``: dC/ds, minus the forces of all pairs of each document.

    RankNet's forces count alike, all others by the NDCG that swapping the pair would change
    (eq. 9); with ``neighbours`` only next documents of the order push each other. To ``cost``
    ``[M]`` RankNet's cost is added, or 1 - NDCG@cutoff. ``work`` ``[5, L]`` is working space.
    """
    L, M = scores.shape
    s, force, d, lead, push = work[0], work[1], work[2], work[3], work[4]
    for m in range(M):
        for place in range(L):
            s[place] = scores[order[place], m]
            force[place] = 0
        if law >= 0:
            dcg = 0.0
            for rank, n in enumerate(np.argsort(-scores[:, m], kind="mergesort")):
                ranks[n] = rank + 1
                if rank < cutoff:
                    dcg += gains[n] * discounts[rank + 1]
            cost[m] += 1 - dcg / cutoff_best
            for place in range(L):
                d[place] = discounts[ranks[order[place]]]
        for i in range(L):
            n = below[i]
            if n == 0:
                continue
            for j in range(n):
                lead[j] = s[i] - s[j]
            if law < 0:
                cost[m] += ranknet_pushes(lead[:n], push[:n])
            else:
                pushes(law, margin, lead[:n], push[:n])
                gain = gains[order[i]]
                for j in range(n):
                    push[j] *= (gain - gains[order[j]]) / best * abs(d[i] - d[j])
                if neighbours:
                    for j in range(n):
                        if abs(ranks[order[i]] - ranks[order[j]]) != 1:
                            push[j] = 0
            total = push.dtype.type(0)
            for j in range(n):
                force[j] -= push[j]
                total += push[j]
            force[i] += total
        for place in range(L):
            score_gradients[order[place], m] = -force[place]


@inlined
def update(weights, gradients, rates):
    """``weights`` ``[…, K]`` move against ``gradients``, which become zero."""
    M = len(rates)
    flat, gradient = weights.reshape(-1), gradients.reshape(-1)
    for first in range(0, len(flat), M):
        for m in range(M):
            flat[first + m] -= rates[m] * gradient[first + m]
            gradient[first + m] = 0


@inlined
def ideal(gains, discounts, cutoff):
    """The largest DCG at ``cutoff`` of documents with these ``gains`` ``[L]``."""
    ordered = np.sort(gains)[::-1]
    total = 0.0
    for place in range(min(len(gains), cutoff)):
        total += ordered[place] * discounts[place + 1]
    return total


@compiled
def epoch_by_lambdas(
    features, labels, gains, offsets, discounts, cutoff, law, neighbours, margin, squash, weight,
    bias, output, rates, cost,
):  # fmt: skip
    """V2: n forward passes, the forces of all pairs, n backward passes, one update; per query.

    Args:
        features: ``[N, F]``, documents in the order of training.
        labels, gains: ``[N]``.
        offsets: int64 ``[Q + 1]``.
        discounts: ``[longest + 1]``, by rank from 1.
        cutoff: truncation of the NDCG that is LambdaRank's training cost.
        law: number of the force in :data:`LAWS`, weighted by NDCG; -1 for RankNet's, unweighted.
        neighbours, margin: of the force, where it is weighted.
        squash: hidden units have a tanh and an output layer.
        weight, bias, output: ``[F, K]``, ``[K]``, ``[K]``; changed in place.
        rates: ``[M]``.
        cost: float64 ``[M]``, to which the training costs are added.
    """
    M, K = len(rates), len(bias)
    longest = np.diff(offsets).max()
    units = np.empty((longest, K), features.dtype)
    scores = np.empty((longest, M), features.dtype)
    score_gradients = np.empty((longest, M), features.dtype)
    order = np.empty(longest, np.int64)
    below = np.empty(longest, np.int64)
    ranks = np.empty(longest, np.int64)
    work = np.empty((5, longest), features.dtype)
    pull = np.empty(K, features.dtype)
    d_weight, d_bias, d_output = np.zeros_like(weight), np.zeros_like(bias), np.zeros_like(output)
    for query in range(len(offsets) - 1):
        begin, end = offsets[query], offsets[query + 1]
        L = end - begin
        x, y, g = features[begin:end], labels[begin:end], gains[begin:end]
        for n in range(L):
            forward(x[n], weight, bias, output, squash, units[n], scores[n])
        best = ideal(g, discounts, L)
        if best <= 0:
            continue
        by_label(y, order[:L], below[:L])
        lambdas(
            law, neighbours, margin, scores[:L], g, discounts, best, ideal(g, discounts, cutoff),
            cutoff, order[:L], below[:L], ranks[:L], work[:, :L], score_gradients[:L], cost,
        )  # fmt: skip
        for n in range(L):
            backward(
                x[n], output, squash, units[n], score_gradients[n], pull, d_weight, d_bias, d_output
            )
        update(weight, d_weight, rates)
        if squash:
            update(bias, d_bias, rates)
            update(output, d_output, rates)


@compiled
def epoch_by_pairs(features, labels, offsets, squash, weight, bias, output, rates, cost):
    """V1: two forward and two backward passes per pair, one update per query.

    The arguments are those of :func:`epoch_by_lambdas`, and so are all passes through the net.
    """
    M, K = len(rates), len(bias)
    units = np.empty((2, K), features.dtype)
    scores = np.empty((2, M), features.dtype)
    pull = np.empty(K, features.dtype)
    push = np.empty(M, features.dtype)
    rise = np.empty(M, features.dtype)
    product = np.ones(M)
    d_weight, d_bias, d_output = np.zeros_like(weight), np.zeros_like(bias), np.zeros_like(output)
    for query in range(len(offsets) - 1):
        begin, end = offsets[query], offsets[query + 1]
        for i in range(begin, end):
            for j in range(begin, end):
                if labels[i] > labels[j]:
                    forward(features[i], weight, bias, output, squash, units[0], scores[0])
                    forward(features[j], weight, bias, output, squash, units[1], scores[1])
                    pair_gradients(scores[0], scores[1], push, product, cost)
                    for m in range(M):
                        rise[m] = -push[m]
                    backward(
                        features[i], output, squash, units[0], rise, pull, d_weight, d_bias,
                        d_output,
                    )  # fmt: skip
                    backward(
                        features[j], output, squash, units[1], push, pull, d_weight, d_bias,
                        d_output,
                    )  # fmt: skip
                if (j - begin) % 500 == 499:
                    flush(product, cost)
            flush(product, cost)
        update(weight, d_weight, rates)
        if squash:
            update(bias, d_bias, rates)
            update(output, d_output, rates)
