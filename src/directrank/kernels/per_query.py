"""Compiled passes over the training queries, as Burges2006 trains RankNet and LambdaRank.

M networks are trained in one pass over the same queries. All units of a document are contiguous,
those of network m at positions m, m + M, …, so that the innermost loops run over the units of all
networks. In the shapes, F is the number of features, H that of units (1 for a linear net), and K is
H · M.

A net is a tuple of: whether hidden units have a tanh and an output layer; its weights ``[F, K]``,
biases ``[K]`` and output weights ``[K]``, which are changed in place; learning rates ``[M]``; and
float64 ``[M]``, to which training costs are added.

Training uses :func:`epoch_by_lambdas`: a query's documents pass through the net as a matrix, and
forces come from the losses' own kernels. The other epochs are those that section 6.1 of the paper
times: the same passes of a single document through the net, and the same arithmetic for a single
pair, in the orders of V1 and V2.
"""

from __future__ import annotations

import math

import numpy as np

from directrank.kernels.compiling import compiled, inlined
from directrank.kernels.lambdarank import lambdarank_pushes, ranks_of
from directrank.kernels.numbers import exp, like
from directrank.kernels.pairs import by_falling_label, ideal_dcg, room_for
from directrank.kernels.ranknet import ranknet_pushes

#: The forces of :mod:`directrank.losses._lambda_family`, by number.
LAWS = ("step", "spring", "logistic", "sigmoid", "difference")
STEP, SPRING, LOGISTIC, SIGMOID, DIFFERENCE = range(len(LAWS))

#: In place of such a number: the losses that have a kernel of their own.
RANKNET, LAMBDARANK = -1, -2


@inlined
def forward(x, weight, bias, output, squash, units, scores):
    """Units ``[K]`` and scores ``[M]`` of one document ``x`` ``[F]``; both are overwritten.

    Features are taken four at a time, so that units are stored less often.
    """
    F, K = len(x), len(units)
    for k in range(K):
        units[k] = bias[k]
    fours = F - F % 4
    for f in range(0, fours, 4):
        a, b, c, d = x[f], x[f + 1], x[f + 2], x[f + 3]
        for k in range(K):
            units[k] += (a * weight[f, k] + b * weight[f + 1, k]) + (
                c * weight[f + 2, k] + d * weight[f + 3, k]
            )
    for f in range(fours, F):
        value = x[f]
        for k in range(K):
            units[k] += value * weight[f, k]
    scores_of(output, squash, units, scores)


@inlined
def scores_of(output, squash, units, scores):
    """Scores ``[M]`` of one document from its units ``[K]``, to which tanh is applied in place."""
    K, M = len(units), len(scores)
    if not squash:
        for m in range(M):
            scores[m] = units[m]
        return
    for k in range(K):
        units[k] = tanh(units[k])
    for m in range(M):
        scores[m] = 0
    for h in range(K // M):
        for m in range(M):
            scores[m] += output[h * M + m] * units[h * M + m]


@inlined
def tanh(z):
    """The hyperbolic tangent, in a form that vectorises."""
    one, two = like(z, 1.0), like(z, 2.0)
    e = exp(-two * abs(z))
    value = (one - e) / (one + e)
    return -value if z < 0 else value


@inlined
def backward(x, output, squash, units, score_gradient, pull, d_weight, d_bias, d_output):
    """Add the gradients of one document; ``score_gradient`` ``[M]`` is that of its scores.

    ``pull`` ``[K]`` is working space.
    """
    to_units(output, squash, units, score_gradient, pull, d_bias, d_output)
    for f in range(len(x)):
        value = x[f]
        for k in range(len(pull)):
            d_weight[f, k] += value * pull[k]


@inlined
def to_units(output, squash, units, score_gradient, pull, d_bias, d_output):
    """``pull`` ``[K]``: the gradient of one document's units, before their tanh.

    It may be ``units`` itself. The gradients of biases and output weights are accumulated.
    """
    M = len(score_gradient)
    if not squash:
        for m in range(M):
            pull[m] = score_gradient[m]
        return
    one = like(units[0], 1.0)
    for h in range(len(units) // M):
        for m in range(M):
            k = h * M + m
            d_output[k] += score_gradient[m] * units[k]
            pull[k] = score_gradient[m] * output[k] * (one - units[k] * units[k])
            d_bias[k] += pull[k]


@inlined
def family_pushes(
    law, neighbours, margin, s, g, best, discounts, place, level_end, n, room, lead, force
):  # fmt: skip
    """The gradient of a list's scores, by place, in ``room[3]``; see :data:`LAWS`.

    With ``neighbours`` only documents that are adjacent in the order push each other. The other
    arguments are those of :func:`~.lambdarank.lambdarank_pushes`, and two rows of working space,
    ``[n]`` each.
    """
    scaled, push, gain, discount, ranks = room[2], room[3], room[4], room[5], room[6]
    for i in range(n):
        j = place[i]
        scaled[i] = s[j]
        gain[i] = g[j] / best
        ranks[i] = room[7][j]
        discount[i] = discounts[int(ranks[i]) - 1]
        push[i] = 0
    for i in range(n):
        first = level_end[i]
        for j in range(first, n):
            lead[j] = scaled[i] - scaled[j]
        forces(law, margin, lead[first:n], force[first:n])
        total = like(margin, 0.0)
        for j in range(first, n):
            change = (gain[i] - gain[j]) * abs(discount[i] - discount[j])
            if neighbours:
                change = change if abs(ranks[i] - ranks[j]) == 1 else like(margin, 0.0)
            push[j] += change * force[j]
            total += change * force[j]
        push[i] -= total


@inlined
def forces(law, margin, lead, force):
    """``force`` ``[n]``: the force by which a document that should lead is pushed up, for each
    ``lead`` ``[n]`` that it has; see :data:`LAWS`."""
    one, zero = like(margin, 1.0), like(margin, 0.0)
    if law == DIFFERENCE:
        for j in range(len(lead)):
            force[j] = one / max(abs(lead[j]), margin)
    elif law == SPRING:
        for j in range(len(lead)):
            force[j] = max(margin - lead[j], zero)
    elif law == STEP:
        for j in range(len(lead)):
            force[j] = one if lead[j] < margin else zero
    else:
        for j in range(len(lead)):
            e = exp(-abs(lead[j] - margin))
            force[j] = (e if lead[j] > margin else one) / (one + e)
        if law == SIGMOID:
            for j in range(len(lead)):
                force[j] *= one - force[j]


@inlined
def one_minus_ndcg(gains, ranks, discounts, cutoff, best):
    """LambdaRank's training cost of a list; ``best`` is the DCG of its best order."""
    dcg = 0.0
    for j in range(len(gains)):
        if ranks[j] <= cutoff:
            dcg += gains[j] * discounts[int(ranks[j]) - 1]
    return 1 - dcg / best


@inlined
def differences(values):
    """As ``np.diff(values)``, which would take long to compile."""
    result = np.empty(len(values) - 1, values.dtype)
    for i in range(len(result)):
        result[i] = values[i + 1] - values[i]
    return result


@inlined
def update(weights, gradients, rates):
    """Move ``weights`` ``[…, K]`` against ``gradients``, and set these to zero."""
    M = len(rates)
    flat, gradient = weights.reshape(-1), gradients.reshape(-1)
    for first in range(0, len(flat), M):
        for m in range(M):
            flat[first + m] -= rates[m] * gradient[first + m]
            gradient[first + m] = 0


@compiled
def epoch_by_lambdas(
    features, labels, gains, offsets, sums, cut_sums, cutoff, law, neighbours, margin, squash,
    weight, bias, output, rates, cost,
):  # fmt: skip
    """For each query: n forward passes, the forces of all pairs, n backward passes, one update.

    Activations are kept for the backward passes, and the exponential of each score is computed
    once; these are the two further speed-ups of footnote 3. The n passes are one matrix product.

    Args:
        features: ``[N, F]``, documents in the order of training.
        labels, gains: ``[N]``.
        offsets: int64 ``[Q + 1]``.
        sums: ``[longest + 1]``, the sums of the first r discounts.
        cut_sums: the same up to the cut-off of NDCG, LambdaRank's training cost.
        cutoff: truncation of that NDCG.
        law: number of the force in :data:`LAWS`, or :data:`RANKNET` or :data:`LAMBDARANK`.
        neighbours, margin: of the force; see :mod:`directrank.losses._lambda_family`.
        squash, weight, bias, output, rates, cost: the net, see above. The training cost of
            RankNet is its loss, and that of all others is 1 - NDCG@cutoff.
    """
    M, K = len(rates), len(bias)
    longest = differences(offsets).max()
    discounts = differences(sums)
    units = np.empty((longest, K), features.dtype)
    scores = np.empty((longest, M), features.dtype)
    score_gradients = np.empty((longest, M), features.dtype)
    place, level_end = np.empty(longest, np.int64), np.empty(longest, np.int64)
    room = np.empty((11, room_for(longest)), features.dtype)
    push, ranks, lead, force, own = room[3], room[7], room[8], room[9], room[10]
    one = like(margin, 1.0)
    d_weight, d_bias, d_output = np.zeros_like(weight), np.zeros_like(bias), np.zeros_like(output)
    for query in range(len(offsets) - 1):
        begin, end = offsets[query], offsets[query + 1]
        L = end - begin
        x, g = features[begin:end], gains[begin:end]
        own_units = units[:L]
        np.dot(x, weight, own_units)
        for n in range(L):
            for k in range(K):
                own_units[n, k] += bias[k]
            scores_of(output, squash, own_units[n], scores[n])
        best = ideal_dcg(g, L, L, sums)
        if best <= 0:
            continue
        cut_best = ideal_dcg(g, L, L, cut_sums)
        by_falling_label(labels[begin:end], place, level_end)
        for m in range(M):
            s = own[:L]
            for n in range(L):
                s[n] = scores[n, m]
            if law == RANKNET:
                cost[m] += ranknet_pushes(s, place, level_end, L, one, room)
            else:
                ranks_of(s, ranks)
                cost[m] += one_minus_ndcg(g, ranks, discounts, cutoff, cut_best)
                if law == LAMBDARANK:
                    lambdarank_pushes(s, g, best, discounts, np.inf, place, level_end, L, one, room)
                else:
                    family_pushes(
                        law, neighbours, margin, s, g, best, discounts, place, level_end, L, room,
                        lead, force,
                    )  # fmt: skip
            for n in range(L):
                score_gradients[place[n], m] = push[n]
        for n in range(L):
            pulled = own_units[n]
            to_units(output, squash, pulled, score_gradients[n], pulled, d_bias, d_output)
        np.dot(x.T, own_units, d_weight)
        update(weight, d_weight, rates)
        if squash:
            update(bias, d_bias, rates)
            update(output, d_output, rates)


@inlined
def pair_gradients(ahead, behind, push, product, cost):
    """For a pair whose first document should lead: ``push`` ``[M]`` = 1 / (1 + exp(s_i - s_j)).

    Its cost (Burges2006 eq. 8) is added in two parts: the linear part to ``cost`` ``[M]``, and the
    other, which is a logarithm, as a factor in (1, 2] of ``product`` ``[M]``.
    """
    M = len(push)
    one, zero = like(push[0], 1.0), like(push[0], 0.0)
    for m in range(M):
        lead = ahead[m] - behind[m]
        e = exp(-abs(lead))
        near = one + e
        product[m] *= near
        cost[m] += max(-lead, zero)
        push[m] = (e if lead > 0 else one) / near


@inlined
def flush(product, cost):
    """Move the logarithm of ``product`` into ``cost``."""
    for m in range(len(cost)):
        cost[m] += math.log(product[m])
        product[m] = 1


@compiled
def epoch_by_documents(
    features, labels, offsets, stored, squash, weight, bias, output, rates, cost
):
    """V2, for each query: n forward passes, the forces of all pairs, n forward and backward passes.

    Args:
        features, labels, offsets: as for :func:`epoch_by_lambdas`.
        stored: whether activations are kept and the second n forward passes left out; this is the
            first of footnote 3's further speed-ups, which the paper did not implement.
        squash, weight, bias, output, rates, cost: the net, see above.
    """
    M, K = len(rates), len(bias)
    longest = differences(offsets).max()
    units = np.empty((longest, K), features.dtype)
    scores = np.empty((longest, M), features.dtype)
    score_gradients = np.empty((longest, M), features.dtype)
    place, level_end = np.empty(longest, np.int64), np.empty(longest, np.int64)
    pull = np.empty(K, features.dtype)
    push = np.empty(M, features.dtype)
    product = np.ones(M)
    d_weight, d_bias, d_output = np.zeros_like(weight), np.zeros_like(bias), np.zeros_like(output)
    for query in range(len(offsets) - 1):
        begin, end = offsets[query], offsets[query + 1]
        L = end - begin
        x, y = features[begin:end], labels[begin:end]
        for n in range(L):
            forward(x[n], weight, bias, output, squash, units[n], scores[n])
        score_gradients[:L] = 0
        by_falling_label(y, place, level_end)
        for first in range(L):
            i = place[first]
            for second in range(level_end[first], L):
                j = place[second]
                pair_gradients(scores[i], scores[j], push, product, cost)
                for m in range(M):
                    score_gradients[i, m] -= push[m]
                    score_gradients[j, m] += push[m]
                if second % 500 == 0:  # 2^500 is far from the largest float64
                    flush(product, cost)
            flush(product, cost)
        for n in range(L):
            if not stored:
                forward(x[n], weight, bias, output, squash, units[n], scores[n])
            backward(
                x[n], output, squash, units[n], score_gradients[n], pull, d_weight, d_bias, d_output
            )
        update(weight, d_weight, rates)
        if squash:
            update(bias, d_bias, rates)
            update(output, d_output, rates)


@compiled
def epoch_by_pairs(features, labels, offsets, batch, squash, weight, bias, output, rates, cost):
    """V1: two forward and backward passes per pair; pairs by descending label of the first.

    Args:
        features, labels, offsets: as for :func:`epoch_by_lambdas`.
        batch: whether the weights are updated once per query, and not after every pair.
        squash, weight, bias, output, rates, cost: the net, see above.
    """
    M, K = len(rates), len(bias)
    longest = differences(offsets).max()
    place, level_end = np.empty(longest, np.int64), np.empty(longest, np.int64)
    units = np.empty((2, K), features.dtype)
    scores = np.empty((2, M), features.dtype)
    pull = np.empty(K, features.dtype)
    push = np.empty(M, features.dtype)
    rise = np.empty(M, features.dtype)
    product = np.ones(M)
    d_weight, d_bias, d_output = np.zeros_like(weight), np.zeros_like(bias), np.zeros_like(output)
    # Without batching, the backward passes of a pair add its update to the weights themselves.
    to_weight = d_weight if batch else weight
    to_bias = d_bias if batch else bias
    to_output = d_output if batch else output
    through = output if batch else output.copy()
    for query in range(len(offsets) - 1):
        begin, end = offsets[query], offsets[query + 1]
        x, L = features[begin:end], end - begin
        by_falling_label(labels[begin:end], place, level_end)
        for first in range(L):
            i = place[first]
            for second in range(level_end[first], L):
                j = place[second]
                forward(x[i], weight, bias, output, squash, units[0], scores[0])
                forward(x[j], weight, bias, output, squash, units[1], scores[1])
                pair_gradients(scores[0], scores[1], push, product, cost)
                for m in range(M):
                    push[m] *= 1 if batch else -rates[m]
                    rise[m] = -push[m]
                if not batch:
                    for k in range(K):
                        through[k] = output[k]
                backward(x[i], through, squash, units[0], rise, pull, to_weight, to_bias, to_output)
                backward(x[j], through, squash, units[1], push, pull, to_weight, to_bias, to_output)
                if second % 500 == 0:  # 2^500 is far from the largest float64
                    flush(product, cost)
            flush(product, cost)
        if batch:
            update(weight, d_weight, rates)
            if squash:
                update(bias, d_bias, rates)
                update(output, d_output, rates)
