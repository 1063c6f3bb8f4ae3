"""SoftRank's expected NDCG on a CPU, without the cubic recursion.

The rank of document j, minus one, is a sum of independent contests, so that
``E[z^r] = Π_i (1 - p_ij (1 - z))`` for any z; and the discount is a sum of a few powers,
``D(r) = Σ_m w_m z_m^r``, to 1e-8 in float32 and 1e-12 in float64. For each document with a weight,
two passes over the list handle four powers at a time: the first multiplies the factors of all
contests, and the second divides the product by each of them again.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.polynomial import chebyshev
from torch import Tensor

from directrank.kernels.batch import Batch
from directrank.kernels.compiling import compiled, inlined
from directrank.kernels.ndcg import in_distribution
from directrank.kernels.numbers import exp, is_single, like
from directrank.kernels.pairs import room_for, whole_vectors
from directrank.lists.conventions import discount
from directrank.lists.flat import Lists

_discount = discount

#: The score with which lists are filled up; it wins no contest.
LOW = -1e37

#: Beyond this distance a contest is decided, because ``exp(-FAR²)`` is 0 in either type.
FAR = 30.0


#: A smaller product of all contests is taken as 0 in the second pass. Its terms would be subnormal
#: numbers, which are lost in the sum, and for which some processors take a hundred times as long.
LEAST_SINGLE, LEAST_DOUBLE = 1e-20, 1e-280


def _scaled_erfc(degree: int) -> np.ndarray:
    """Coefficients of a polynomial in ``2t - 1``, ``t = 3 / (3 + z)``: ``erfc(z) exp(z²) / t``.

    Its relative error is 2e-8 at degree 10 and 5e-15 at degree 24, for all z ≥ 0.
    """

    def scaled(x: np.ndarray) -> Any:  # an array, although NumPy's stubs require a number
        t = (x + 1) / 2
        return torch.special.erfcx(torch.from_numpy(3 / t - 3)).numpy() / t

    return chebyshev.cheb2poly(chebyshev.chebinterpolate(scaled, degree))


SINGLE, DOUBLE = _scaled_erfc(10), _scaled_erfc(24)


def ndcg(
    scores: Tensor,
    labels: Tensor,
    mask: Lists | None,
    *,
    k: int | None,
    gain: str,
    discount: str,
    sigma: float,
) -> Tensor:
    """Minus NDCG under the rank-binomial distribution; see :func:`directrank.losses.softrank`.

    It supports no cut-off, and only the discount ``log2``.
    """
    if k is not None or discount != "log2":
        return NotImplemented

    def own(batch: Batch, mask: Lists) -> tuple[int, Any]:
        bases, amounts = powers_of_discount(batch.shape[1], batch.scores.dtype)
        powers = [1 - z for z in bases], amounts
        each = (batch.scores.new_tensor(numbers).numpy() for numbers in powers)
        return batch.pairs * len(bases) // 2, (float(sigma), *each)

    return in_distribution(_softrank, scores, labels, mask, k, gain, discount, own)


@lru_cache(maxsize=64)
def powers_of_discount(length: int, dtype: torch.dtype) -> tuple[list[float], list[float]]:
    """Bases ``z_m`` and weights ``w_m`` with ``1/log2(2 + r) ≈ Σ_m w_m z_m^r``, ``0 ≤ r < length``.

    The weights minimise the squared relative error over a geometric grid of decay rates; the number
    of terms is the smallest that reaches 1e-8 (float32) or, before rounding, 1e-13 (float64).
    """
    goal = 1e-13 if dtype == torch.float64 else 1e-8
    size = 1 << max(4, (length - 1).bit_length())
    ranks = np.arange(size)
    exact = _discount("log2", torch.arange(1, size + 1, dtype=torch.float64, device="cpu")).numpy()
    picked = np.unique(np.concatenate([ranks[:64], np.geomspace(1, size - 1, 400).round()]))
    picked = picked.astype(int)
    for terms in range(8, 49, 4):
        rates = np.geomspace(0.2 / size, 8, terms)
        powers = np.exp(-np.outer(ranks, rates))
        relative = powers[picked] / exact[picked, None]
        amounts = np.linalg.lstsq(relative, np.ones(len(picked)), rcond=1e-15)[0]
        if np.abs(powers @ amounts - exact).max() < goal:
            break
    return np.exp(-rates).tolist(), amounts.tolist()


@compiled
def _softrank(
    begin, end, starts, lengths, scores, weights, sigma, shares, amounts, value, gradient
):
    """``Σ_j weights_j Σ_m amounts_m Π_{i≠j} (1 - shares_m p_ij)`` ``[B]``; its gradient ``[N]``.

    ``p_ij = Φ((s_i - s_j) / (√2 sigma))``. The number of ``shares`` is a multiple of four.
    """
    L = lengths[begin:end].max()
    room = np.empty((5, room_for(L)), scores.dtype)
    s, losing, density, derivative, push = room[0], room[1], room[2], room[3], room[4]
    one = like(scores.dtype.type(0), 1.0)
    for b in range(begin, end):
        first = starts[b]
        means = scores[first : first + lengths[b]]
        n = len(means)
        for i in range(n):
            s[i] = means[i] / (2 * sigma)
        whole = whole_vectors(n)
        s[n:whole] = LOW
        push[:whole] = 0
        total = 0.0
        for i in range(n):
            weight = weights[first + i]
            if weight == 0:
                continue
            _contests(s, i, whole, losing, density)
            expected = _expectation(losing, whole, shares, amounts, derivative)
            total += weight * expected
            lost = like(weight, 0.0)
            scale = weight / like(one, 2 * sigma * math.sqrt(math.pi))
            for j in range(whole):
                force = scale * derivative[j] * density[j]
                push[j] += force
                lost += force
            push[i] -= lost
        value[b] = total
        for i in range(n):
            gradient[first + i] = push[i]


@inlined
def _contests(s, i, n, losing, density):
    """``Φ(√2 (s_j - s_i))``, 0 for i itself, and ``exp(-(s_j - s_i)²)``."""
    one, half, three = like(s[0], 1.0), like(s[0], 0.5), like(s[0], 3.0)
    far, own = like(s[0], FAR), s[i]
    for j in range(n):
        difference = s[j] - own
        z = abs(difference)
        z = far if z > far else z
        t = three / (three + z)
        x = t + t - one
        series = like(s[0], 0.0)
        if is_single(z):
            for term in range(10, -1, -1):
                series = like(z, SINGLE[term]) + x * series
        else:
            for term in range(24, -1, -1):
                series = like(z, DOUBLE[term]) + x * series
        falling = exp(-z * z)
        tail = half * falling * t * series
        losing[j] = one - tail if difference > 0 else tail
        density[j] = falling
    losing[i] = 0
    density[i] = 0


@inlined
def _expectation(losing, n, shares, amounts, derivative):
    """``Σ_m amounts_m Π_j (1 - shares_m losing_j)``, and its derivative for each of the first n."""
    one, zero = like(losing[0], 1.0), like(losing[0], 0.0)
    least = like(one, LEAST_SINGLE) if is_single(one) else like(one, LEAST_DOUBLE)
    derivative[:n] = 0
    total = like(one, 0.0)
    for m in range(0, len(shares), 4):
        a, b, c, d = shares[m], shares[m + 1], shares[m + 2], shares[m + 3]
        p, q, r, t = amounts[m], amounts[m + 1], amounts[m + 2], amounts[m + 3]
        for j in range(n):
            p *= one - a * losing[j]
            q *= one - b * losing[j]
            r *= one - c * losing[j]
            t *= one - d * losing[j]
        total += p + q + r + t
        p, q, r, t = -a * p, -b * q, -c * r, -d * t
        p = p if abs(p) > least else zero
        q = q if abs(q) > least else zero
        r = r if abs(r) > least else zero
        t = t if abs(t) > least else zero
        for j in range(n):  # p / e + q / f + r / g + t / h with one division
            e, f = one - a * losing[j], one - b * losing[j]
            g, h = one - c * losing[j], one - d * losing[j]
            ef, gh = e * f, g * h
            derivative[j] += ((p * f + q * e) * gh + (r * h + t * g) * ef) / (ef * gh)
    return total
