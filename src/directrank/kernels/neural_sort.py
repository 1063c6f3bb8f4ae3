"""NeuralSort and Sinkhorn scaling of one list after the other, as compiled loops on a CPU.

One pass over the matrix P serves a whole round of scaling: as soon as the sum of a row is known,
the row, still in the processor, is added to the sums of the columns. The adjoint goes the same way
back. No other matrix is needed: P's adjoint is a sum of outer products ``a ⊗ b``, and what the
softmax asks of it are sums of its rows and columns weighted with P, made of the vectors ``P b`` and
``Pᵀ a`` that the rounds have at hand.
"""

from __future__ import annotations

import numpy as np

from directrank.kernels.compiling import compiled, inlined
from directrank.kernels.numbers import exp, is_single, largest, like

#: Rows of P worked together, and what its rows are filled up to multiples of.
ROWS, COLUMNS = 4, 16

#: Smaller sums count as empty: their inverse, squared, would overflow float32.
LEAST = 1e-18


@inlined
def _neural_sort(s, n, tau, distances, matrix):
    """P ``[rows, columns]`` of n scores, 0 beyond them; and ``Σ_j |s_i - s_j|``."""
    distances[:n] = 0
    for i in range(n):
        for j in range(n):
            distances[j] += abs(s[i] - s[j])
    matrix[n:] = 0
    inverse_tau = 1 / tau
    for r in range(n):
        row = matrix[r]
        row[n:] = 0
        slope = (n - 1 - 2 * r) * inverse_tau
        for j in range(n):
            row[j] = slope * s[j] - inverse_tau * distances[j]
        top = float(largest(row, n))
        total = 0.0
        for j in range(n):
            row[j] = exp(like(row[0], slope * s[j] - inverse_tau * distances[j] - top))
            total += row[j]
        inverse = like(row[0], 1 / total)
        for j in range(n):
            row[j] *= inverse


@inlined
def _dots(matrix, r, x, n_columns):
    """Products of four rows with x."""
    a, b, c, d = matrix[r], matrix[r + 1], matrix[r + 2], matrix[r + 3]
    zero = like(x[0], 0.0)
    p, q, s, t = zero, zero, zero, zero
    for j in range(n_columns):
        p += a[j] * x[j]
        q += b[j] * x[j]
        s += c[j] * x[j]
        t += d[j] * x[j]
    return p, q, s, t


@inlined
def _add_rows(matrix, r, weights, slopes, n_columns, sums, sloped):
    """Add four rows, times their weights, to ``sums``; times their slopes, too, to ``sloped``."""
    a, b, c, d = matrix[r], matrix[r + 1], matrix[r + 2], matrix[r + 3]
    p, q, s, t = weights[r], weights[r + 1], weights[r + 2], weights[r + 3]
    k, l, m, o = p * slopes[r], q * slopes[r + 1], s * slopes[r + 2], t * slopes[r + 3]
    for j in range(n_columns):
        sums[j] += p * a[j] + q * b[j] + s * c[j] + t * d[j]
        sloped[j] += k * a[j] + l * b[j] + m * c[j] + o * d[j]


@inlined
def _right(matrix, x, product):
    """``P x``."""
    for r in range(0, len(matrix), ROWS):
        p, q, s, t = _dots(matrix, r, x, matrix.shape[1])
        product[r], product[r + 1], product[r + 2], product[r + 3] = p, q, s, t


@inlined
def _left(matrix, weights, slopes, sums, sloped):
    """``weightsᵀ P`` and ``(weights · slopes)ᵀ P``."""
    sums[:] = 0
    sloped[:] = 0
    for r in range(0, len(matrix), ROWS):
        _add_rows(matrix, r, weights, slopes, matrix.shape[1], sums, sloped)


@inlined
def _invert(sums, n, inverse):
    """``1 / sums`` of the first n, 1 where a sum is empty; 0 beyond."""
    one, zero = like(sums[0], 1.0), like(sums[0], 0.0)
    least = like(sums[0], LEAST)
    for i in range(len(sums)):
        inverse[i] = one / sums[i] if sums[i] > least else one
    for i in range(n, len(sums)):
        inverse[i] = zero


@inlined
def _round(matrix, n, v, slopes, dots, u, sums, sloped):
    """``dots = P v``, ``u = 1 / dots``, ``sums = Pᵀ u`` and the sloped ones, in one pass."""
    sums[:] = 0
    sloped[:] = 0
    for r in range(0, len(matrix), ROWS):
        p, q, s, t = _dots(matrix, r, v, matrix.shape[1])
        dots[r], dots[r + 1], dots[r + 2], dots[r + 3] = p, q, s, t
        _invert(dots[r : r + ROWS], min(ROWS, max(n - r, 0)), u[r : r + ROWS])
        _add_rows(matrix, r, u, slopes, matrix.shape[1], sums, sloped)


@inlined
def _off(vector, sums, n):
    """How far the scaled sums are from one at most."""
    most = 0.0
    for i in range(n):
        most = max(most, abs(vector[i] * sums[i] - 1.0))
    return most


@inlined
def _scale(matrix, n, iterations, tolerance, rows_first, slopes, u, v, dots, sums, sloped):
    """Sinkhorn scaling; returns the rounds done.

    Round t = 1 … works with ``v[t]``: ``dots[t] = P v[t]``, ``u[t] = 1 / dots[t]``,
    ``sums[t] = Pᵀ u[t]``. With columns first ``v[t] = 1 / sums[t - 1]``, ``u[0] = 1``. With rows
    first ``v[1] = 1`` and the final one is ``v[rounds + 1] = 1 / sums[rounds]``.
    """
    u[0] = 1
    u[0, n:] = 0
    _left(matrix, u[0], slopes, sums[0], sloped[0])
    v[1] = 1
    v[1, n:] = 0
    for t in range(1, iterations + 1):
        if rows_first:
            _round(matrix, n, v[t], slopes, dots[t], u[t], sums[t], sloped[t])
            off = _off(u[t - 1], dots[t], n)
            if t == 1:
                off = max(off, _off(v[1], sums[0], n))
            if off <= tolerance:
                return t - 1
            _invert(sums[t], n, v[t + 1])
        else:
            off = _off(v[max(t - 1, 1)], sums[t - 1], n)
            if t == 1:
                _right(matrix, v[1], dots[0])
                off = max(off, _off(u[0], dots[0], n))
            if off <= tolerance:
                return t - 1
            _invert(sums[t - 1], n, v[t])
            _round(matrix, n, v[t], slopes, dots[t], u[t], sums[t], sloped[t])
    return iterations


@inlined
def _settle(values):
    """Set to 0 what no longer counts, before it becomes denormal, which is slow; is anything left?

    Adjoints shrink from round to round.
    """
    zero = like(values[0], 0.0)
    least = like(zero, 1e-18) if is_single(zero) else like(zero, 1e-100)
    left = 0
    for i in range(len(values)):
        counts = not abs(values[i]) < least
        values[i] = values[i] if counts else zero
        left += counts
    return left > 0


@inlined
def _adjoint(matrix, n, rounds, rows_first, slopes, u, v, dots, sums, sloped, of_u, of_v, totals):
    """Take the outer products of P's adjoint, given those of the final u and v, to ``totals``.

    ``totals`` are the sums, weighted with P, of the adjoint's rows, of its columns, and of its
    columns weighted by slope. ``of_u`` and ``of_v`` are overwritten.
    """
    by_row, by_column, by_slope = totals[0], totals[1], totals[2]
    found, found_sloped, product = totals[3], totals[4], totals[5]
    if rows_first and rounds > 0:
        for j in range(n):
            of_v[j] *= v[rounds + 1, j] * v[rounds + 1, j]
            by_column[j] -= of_v[j] * sums[rounds, j]
            by_slope[j] -= of_v[j] * sloped[rounds, j]
        _right(matrix, of_v, product)
        for i in range(n):
            by_row[i] -= u[rounds, i] * product[i]
            of_u[i] -= product[i]
        of_v[:] = 0
    if rounds > 0:
        for i in range(n):
            of_u[i] *= u[rounds, i] * u[rounds, i]
            by_row[i] -= of_u[i] * dots[rounds, i]
        _left(matrix, of_u, slopes, found, found_sloped)
    for t in range(rounds, 0, -1):
        for j in range(n):
            by_column[j] -= v[t, j] * found[j]
            by_slope[j] -= v[t, j] * found_sloped[j]
        if t == 1 and rows_first:
            break
        for j in range(n):
            of_v[j] = (of_v[j] - found[j]) * v[t, j] * v[t, j]
            by_column[j] -= of_v[j] * sums[t - 1, j]
            by_slope[j] -= of_v[j] * sloped[t - 1, j]
        if not _settle(of_v):
            break
        found[:] = 0
        found_sloped[:] = 0
        for r in range(0, len(matrix), ROWS):
            p, q, s, k = _dots(matrix, r, of_v, matrix.shape[1])
            product[r], product[r + 1], product[r + 2], product[r + 3] = p, q, s, k
            _settle(product[r : r + ROWS])
            for i in range(r, r + ROWS):
                by_row[i] -= u[t - 1, i] * product[i]
                of_u[i] = -product[i] * u[t - 1, i] * u[t - 1, i]
                by_row[i] -= of_u[i] * dots[t - 1, i] if t > 1 else of_u[i] - of_u[i]
            if t > 1:
                _add_rows(matrix, r, of_u, slopes, matrix.shape[1], found, found_sloped)
        of_v[:] = 0


@compiled
def neural_ndcg(
    begin, end, scores, gains, mask, discounts, tau, iterations, tolerance, rows_first, wanted,
    value, gradient,
):  # fmt: skip
    """``Σ_r D(r) (scale(P) gains)_r`` ``[B]`` and, where wanted, its gradient ``[B, L]``.

    ``discounts [L]`` are those of ranks, 0 beyond the cut-off.
    """
    L = scores.shape[1]
    width = (L + COLUMNS - 1) // COLUMNS * COLUMNS
    kind = scores.dtype
    room = np.empty(width * width, kind)
    place = np.empty(L + 1, np.int64)
    room_of_vectors = np.empty(14 * width, kind)
    room_of_rounds = np.empty(5 * (iterations + 2) * width, kind)
    for b in range(begin, end):
        value[b] = 0
        gradient[b] = 0
        n, gain = 0, False
        for j in range(L):
            place[n] = j
            n += mask[b, j]
            gain = gain or (mask[b, j] and gains[b, j] != 0)
        if not gain:
            continue
        columns = (n + COLUMNS - 1) // COLUMNS * COLUMNS
        rows = (n + ROWS - 1) // ROWS * ROWS
        matrix = room[: rows * columns].reshape(rows, columns)
        vectors = room_of_vectors[: 14 * columns].reshape(14, columns)
        history = room_of_rounds[: 5 * (iterations + 2) * columns].reshape(
            (5, iterations + 2, columns)
        )
        s, g, distances, slopes = vectors[0], vectors[1], vectors[2], vectors[3]
        vectors[:] = 0
        for i in range(n):
            s[i] = scores[b, place[i]]
            g[i] = gains[b, place[i]]
            slopes[i] = (n - 1 - 2 * i) / tau
        _neural_sort(s, n, tau, distances, matrix)
        u, v, dots, sums, sloped = history[0], history[1], history[2], history[3], history[4]
        rounds = _scale(
            matrix, n, iterations, tolerance, rows_first, slopes, u, v, dots, sums, sloped
        )
        last_v = v[rounds + 1 if rows_first else max(rounds, 1)]
        ranked, given, of_u, of_v = vectors[4], vectors[5], vectors[6], vectors[7]
        totals = vectors[8:]
        for i in range(n):
            ranked[i] = u[rounds, i] * discounts[i]
            given[i] = last_v[i] * g[i]
        product = totals[5]
        _right(matrix, given, product[:rows])
        total = 0.0
        for i in range(n):
            total += ranked[i] * product[i]
        value[b] = total
        if not wanted:
            continue
        _left(matrix, ranked, slopes, totals[3], totals[4])
        for i in range(n):
            of_u[i] = discounts[i] * product[i]
            of_v[i] = g[i] * totals[3, i]
            totals[0, i] = ranked[i] * product[i]
            totals[1, i] = given[i] * totals[3, i]
            totals[2, i] = given[i] * totals[4, i]
        _adjoint(
            matrix, n, rounds, rows_first, slopes, u, v, dots, sums, sloped, of_u, of_v, totals
        )
        # Through the softmax: what a row loses as a whole.
        _left(matrix, totals[0], slopes, totals[3], totals[4])
        _scores_gradient(s, n, tau, totals, gradient[b], place)


@inlined
def _scores_gradient(s, n, tau, totals, gradient, place):
    """From the adjoint of the logits ``slope_r s_j - Σ_k |s_j - s_k| / tau`` to that of s."""
    by_distance = totals[0]
    for j in range(n):
        by_distance[j] = (totals[3, j] - totals[1, j]) / tau
    one, zero = like(s[0], 1.0), like(s[0], 0.0)
    for i in range(n):
        found, own = totals[2, i] - totals[4, i], by_distance[i]
        for j in range(n):
            side = (one if s[i] > s[j] else zero) - (one if s[i] < s[j] else zero)
            found += side * (own + by_distance[j])
        gradient[place[i]] = found
