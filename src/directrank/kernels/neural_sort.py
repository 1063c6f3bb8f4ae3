"""NeuralSort with Sinkhorn scaling, and metrics under it, on a CPU.

One pass over the matrix P suffices for a whole round of scaling: as soon as the sum of a row is
known, the row, which is still in the cache, is added to the sums of the columns. The adjoint goes
through the rounds in the same way, backwards. No other matrix is needed: P's adjoint is a sum of
outer products ``a ⊗ b``, and the softmax needs only sums over its rows and columns weighted with P.
These follow from the vectors ``P b`` and ``Pᵀ a``, which the rounds compute anyway.

Most entries of a long list's P are 0 (:func:`directrank.kernels.numbers.exp`), since a document is
unlikely at ranks far from its own. Long lists are therefore sorted by score, which brings the other
entries of a row next to each other, and passes over P read only these spans. With N(0, 1) scores
and τ = 1 a span has about 8 √L entries. Kernels are compiled once more for batches with such lists,
because short rows are read faster whole: ``spans`` and ``order`` are None in batches without any.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor

from directrank.kernels.batch import Batch, array
from directrank.kernels.compiling import compiled, inlined
from directrank.kernels.ndcg import in_distribution
from directrank.kernels.numbers import exp, is_single, largest, like
from directrank.lists.conventions import rank_discounts
from directrank.lists.flat import Lists

#: Rows of P that are processed together, and the number to multiples of which rows are filled up.
ROWS, COLUMNS = 4, 16

#: Lists with more documents than this are sorted.
LONG = 512

#: The kinds of :func:`sorted_expectation`, by number.
KINDS = ("weigh", "precisions", "cascade")
WEIGH, PRECISIONS, CASCADE = 0, 1, 2

#: Smaller sums count as empty, as in :func:`directrank.relaxations.neural_sort.sinkhorn`.
LEAST = 1e-18

#: Single precision rounds logits above this by too much to be subtracted from others.
LARGE = 1e6


def ndcg(
    scores: Tensor,
    labels: Tensor,
    mask: Lists | None,
    *,
    k: int | None,
    gain: str,
    discount: str,
    tau: float,
    iterations: int,
    tolerance: float,
    rows_first: bool,
) -> Tensor:
    """Minus NDCG under NeuralSort; see :func:`directrank.losses.neural_ndcg`."""

    def own(batch: Batch, mask: Lists) -> tuple[int, Any]:
        discounts = rank_discounts(discount, batch.shape[1], k, batch.scores.dtype).numpy()
        settings = float(tau), int(iterations), float(tolerance), bool(rows_first)
        orders = _orders(batch, batch.flat(batch.scores))
        arguments = discounts, *settings, batch.gradient_needed, orders
        return batch.pairs * (1 + iterations), arguments

    return in_distribution(_ndcg, scores, labels, mask, k, gain, discount, own)


def sorted_expectation(
    scores: Tensor,
    weights: Tensor,
    mask: Tensor,
    discounts: Tensor,
    kind: str,
    tau: float,
    iterations: int,
    tolerance: float,
    rows_first: bool,
) -> Tensor:
    """See :func:`directrank.relaxations.neural_sort.sorted_expectation`."""
    batch = Batch(scores, weights, mask)
    value, gradient = batch.per_list(), batch.zeros()
    flat_scores = batch.flat(batch.scores)
    batch.run(
        _expectation,
        batch.pairs * (1 + iterations),
        flat_scores,
        batch.flat(batch.labels),
        array(discounts.to(batch.scores.dtype)),
        float(tau),
        int(iterations),
        float(tolerance),
        bool(rows_first),
        KINDS.index(kind),
        batch.gradient_needed,
        _orders(batch, flat_scores),
        value,
        gradient,
    )
    return batch.loss(value, gradient)


def _orders(batch: Batch, scores: np.ndarray) -> np.ndarray | None:
    """The documents of each list in the order of P's columns, from its first on: int64 ``[N]``.

    It is None, which is another type to the compiler, if no list is long. Sorting takes so little
    of the time of a long list that it is not worth compiling.
    """
    if batch.lengths.max(initial=0) <= LONG:
        return None
    orders = np.empty(len(scores), np.int64)
    for first, n in zip(batch.starts, batch.lengths, strict=True):
        own = slice(first, first + n)
        orders[own] = np.argsort(-scores[own], kind="stable") if n > LONG else np.arange(n)
    return orders


@inlined
def _of_list(orders, first, n):
    """The part of ``orders`` that belongs to a list."""
    return None if orders is None else orders[first : first + n]


@inlined
def _neural_sort(s, n, tau, distances, matrix):
    """P ``[rows, columns]`` of n scores, 0 beyond them, and ``Σ_j |s_i - s_j|``."""
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
        if abs(top) > LARGE:
            top = -np.inf
            for j in range(n):
                top = max(top, slope * s[j] - inverse_tau * distances[j])
        total = 0.0
        for j in range(n):
            row[j] = exp(like(row[0], slope * s[j] - inverse_tau * distances[j] - top))
            total += row[j]
        inverse = like(row[0], 1 / total)
        for j in range(n):
            row[j] *= inverse


@inlined
def _neural_sort_in_spans(s, n, tau, matrix, spans, fill):
    """P of sorted scores, written within the spans of its rows, or everywhere if ``fill``.

    Row r has its largest logit at column r, which is set to 0. From column j to j + 1 the logit
    changes by ``(2 (r - j) - 1) (s_j - s_{j + 1}) / tau``.
    """
    least = -42.0 if is_single(s[0]) else -348.0  # exp is 0 below
    columns = matrix.shape[1]
    largest_logit = 0.0 * (float(s[0]) - float(s[n - 1]))  # NaN if a score is not finite
    ends = np.empty((ROWS, 2), np.int64)
    for group in range(len(spans)):
        first, last = columns, 0
        for i in range(ROWS):
            r = group * ROWS + i
            if r >= n:
                ends[i] = 0
                continue
            row, x, begin, end = matrix[r], largest_logit, r, r + 1
            row[r] = x
            while begin > 0:
                x -= (2 * (r - begin) + 1) * (float(s[begin - 1]) - float(s[begin])) / tau
                if x < least:
                    break
                begin -= 1
                row[begin] = x
            x = largest_logit
            while end < n:
                x -= (2 * (end - r) - 1) * (float(s[end - 1]) - float(s[end])) / tau
                if x < least:
                    break
                row[end] = x
                end += 1
            total = 0.0
            for j in range(begin, end):
                row[j] = exp(row[j])
                total += row[j]
            inverse = like(row[0], 1 / total)
            for j in range(begin, end):
                row[j] *= inverse
            ends[i, 0], ends[i, 1] = begin, end
            first, last = min(first, begin), max(last, end)
        first = first // COLUMNS * COLUMNS
        last = (last + COLUMNS - 1) // COLUMNS * COLUMNS
        spans[group, 0], spans[group, 1] = first, last
        if fill:
            first, last = 0, columns
        for i in range(ROWS):
            row = matrix[group * ROWS + i]
            row[first : ends[i, 0]] = 0
            row[max(first, ends[i, 1]) : last] = 0


@inlined
def _dots(matrix, r, spans, x):
    """Products of four rows with x."""
    if spans is None:
        n_columns = matrix.shape[1]
        a, b, c, d = matrix[r], matrix[r + 1], matrix[r + 2], matrix[r + 3]
    else:
        first, last = spans[r // ROWS, 0], spans[r // ROWS, 1]
        n_columns, x = last - first, x[first:last]
        a, b = matrix[r, first:last], matrix[r + 1, first:last]
        c, d = matrix[r + 2, first:last], matrix[r + 3, first:last]
    zero = like(x[0], 0.0)
    p, q, s, t = zero, zero, zero, zero
    for j in range(n_columns):
        p += a[j] * x[j]
        q += b[j] * x[j]
        s += c[j] * x[j]
        t += d[j] * x[j]
    return p, q, s, t


@inlined
def _add_rows(matrix, r, spans, weights, slopes, sums, sloped):
    """Add four rows, times their weights, to ``sums``; times their slopes too, to ``sloped``."""
    if spans is None:
        n_columns = matrix.shape[1]
        a, b, c, d = matrix[r], matrix[r + 1], matrix[r + 2], matrix[r + 3]
    else:
        first, last = spans[r // ROWS, 0], spans[r // ROWS, 1]
        n_columns, sums, sloped = last - first, sums[first:last], sloped[first:last]
        a, b = matrix[r, first:last], matrix[r + 1, first:last]
        c, d = matrix[r + 2, first:last], matrix[r + 3, first:last]
    p, q, s, t = weights[r], weights[r + 1], weights[r + 2], weights[r + 3]
    k, l, m, o = p * slopes[r], q * slopes[r + 1], s * slopes[r + 2], t * slopes[r + 3]
    for j in range(n_columns):
        sums[j] += p * a[j] + q * b[j] + s * c[j] + t * d[j]
        sloped[j] += k * a[j] + l * b[j] + m * c[j] + o * d[j]


@inlined
def _right(matrix, spans, x, product):
    """``P x``."""
    for r in range(0, len(matrix), ROWS):
        p, q, s, t = _dots(matrix, r, spans, x)
        product[r], product[r + 1], product[r + 2], product[r + 3] = p, q, s, t


@inlined
def _left(matrix, spans, weights, slopes, sums, sloped):
    """``weightsᵀ P`` and ``(weights · slopes)ᵀ P``."""
    sums[:] = 0
    sloped[:] = 0
    for r in range(0, len(matrix), ROWS):
        _add_rows(matrix, r, spans, weights, slopes, sums, sloped)


@inlined
def _invert(sums, n, inverse):
    """``1 / sums`` of the first n sums, 1 where a sum is empty; 0 beyond."""
    one, zero = like(sums[0], 1.0), like(sums[0], 0.0)
    least = like(sums[0], LEAST)
    for i in range(len(sums)):
        inverse[i] = one / sums[i] if sums[i] > least else one
    for i in range(n, len(sums)):
        inverse[i] = zero


@inlined
def _round(matrix, spans, n, v, slopes, dots, u, sums, sloped):
    """``dots = P v``, ``u = 1 / dots``, ``sums = Pᵀ u`` and ``sloped``, in one pass."""
    sums[:] = 0
    sloped[:] = 0
    for r in range(0, len(matrix), ROWS):
        p, q, s, t = _dots(matrix, r, spans, v)
        dots[r], dots[r + 1], dots[r + 2], dots[r + 3] = p, q, s, t
        _invert(dots[r : r + ROWS], min(ROWS, max(n - r, 0)), u[r : r + ROWS])
        _add_rows(matrix, r, spans, u, slopes, sums, sloped)


@inlined
def _off(vector, sums, n):
    """The largest distance of a scaled sum from one."""
    most = 0.0
    for i in range(n):
        most = max(most, abs(vector[i] * sums[i] - 1.0))
    return most


@inlined
def _scale(
    matrix, spans, n, iterations, tolerance, rows_first, slopes, u, v, dots, sums, sloped
):  # fmt: skip
    """Sinkhorn scaling; returns the number of rounds that were done.

    Round t = 1, … uses ``v[t]``: ``dots[t] = P v[t]``, ``u[t] = 1 / dots[t]``,
    ``sums[t] = Pᵀ u[t]``. If columns come first, ``v[t] = 1 / sums[t - 1]`` and ``u[0] =
    1``. If rows come first, ``v[1] = 1``, and the final v is ``v[rounds + 1] = 1 / sums[rounds]``.
    """
    u[0] = 1
    u[0, n:] = 0
    _left(matrix, spans, u[0], slopes, sums[0], sloped[0])
    v[1] = 1
    v[1, n:] = 0
    for t in range(1, iterations + 1):
        if rows_first:
            _round(matrix, spans, n, v[t], slopes, dots[t], u[t], sums[t], sloped[t])
            off = _off(u[t - 1], dots[t], n)
            if t == 1:
                off = max(off, _off(v[1], sums[0], n))
            if off <= tolerance:
                return t - 1
            _invert(sums[t], n, v[t + 1])
        else:
            off = _off(v[max(t - 1, 1)], sums[t - 1], n)
            if t == 1:
                _right(matrix, spans, v[1], dots[0])
                off = max(off, _off(u[0], dots[0], n))
            if off <= tolerance:
                return t - 1
            _invert(sums[t - 1], n, v[t])
            _round(matrix, spans, n, v[t], slopes, dots[t], u[t], sums[t], sloped[t])
    return iterations


@inlined
def _settle(values):
    """Set negligible values to 0 and return whether any are left.

    Adjoints shrink from round to round, and would become denormal numbers, which are slow.
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
def _adjoint(
    matrix, spans, n, rounds, rows_first, slopes, u, v, dots, sums, sloped, of_u, of_v, totals
):  # fmt: skip
    """Add the outer products of P's adjoint to ``totals``, from the adjoints of the final u and v.

    ``totals`` are the sums, weighted with P, of the adjoint's rows, of its columns, and of its
    columns weighted by slope. ``of_u`` and ``of_v`` are overwritten.
    """
    by_row, by_column, by_slope = totals[0], totals[1], totals[2]
    partial, partial_sloped, product = totals[3], totals[4], totals[5]
    if rows_first and rounds > 0:
        for j in range(n):
            of_v[j] *= v[rounds + 1, j] * v[rounds + 1, j]
            by_column[j] -= of_v[j] * sums[rounds, j]
            by_slope[j] -= of_v[j] * sloped[rounds, j]
        _right(matrix, spans, of_v, product)
        for i in range(n):
            by_row[i] -= u[rounds, i] * product[i]
            of_u[i] -= product[i]
        of_v[:] = 0
    if rounds > 0:
        for i in range(n):
            of_u[i] *= u[rounds, i] * u[rounds, i]
            by_row[i] -= of_u[i] * dots[rounds, i]
        _left(matrix, spans, of_u, slopes, partial, partial_sloped)
    for t in range(rounds, 0, -1):
        for j in range(n):
            by_column[j] -= v[t, j] * partial[j]
            by_slope[j] -= v[t, j] * partial_sloped[j]
        if t == 1 and rows_first:
            break
        for j in range(n):
            of_v[j] = (of_v[j] - partial[j]) * v[t, j] * v[t, j]
            by_column[j] -= of_v[j] * sums[t - 1, j]
            by_slope[j] -= of_v[j] * sloped[t - 1, j]
        if not _settle(of_v):
            break
        partial[:] = 0
        partial_sloped[:] = 0
        for r in range(0, len(matrix), ROWS):
            p, q, s, k = _dots(matrix, r, spans, of_v)
            product[r], product[r + 1], product[r + 2], product[r + 3] = p, q, s, k
            _settle(product[r : r + ROWS])
            for i in range(r, r + ROWS):
                by_row[i] -= u[t - 1, i] * product[i]
                of_u[i] = -product[i] * u[t - 1, i] * u[t - 1, i]
                by_row[i] -= of_u[i] * dots[t - 1, i] if t > 1 else of_u[i] - of_u[i]
            if t > 1:
                _add_rows(matrix, r, spans, of_u, slopes, partial, partial_sloped)
        of_v[:] = 0


@inlined
def _document(order, column):
    """The document in a column of P."""
    return column if order is None else order[column]


@inlined
def _prepared(scores, order, tau, room, room_of_vectors, room_of_rounds, iterations, fill):
    """P of a list's scores in the given working space, with what belongs to it.

    Returns P, the spans of each of its groups of rows, vectors that are 0 except scores and slopes,
    and space for the rounds. With ``fill`` P is also 0 outside the spans.
    """
    n = len(scores)
    columns = (n + COLUMNS - 1) // COLUMNS * COLUMNS
    rows = (n + ROWS - 1) // ROWS * ROWS
    matrix = room[: rows * columns].reshape(rows, columns)
    vectors = room_of_vectors[: 14 * columns].reshape(14, columns)
    history = room_of_rounds[: 5 * (iterations + 2) * columns].reshape((5, iterations + 2, columns))
    s, distances, slopes = vectors[0], vectors[2], vectors[3]
    vectors[:] = 0
    for i in range(n):
        s[i] = scores[i]
        slopes[i] = (n - 1 - 2 * i) / tau
    if order is None:
        _neural_sort(s, n, tau, distances, matrix)
        return matrix, None, vectors, history
    spans = np.empty((rows // ROWS, 2), np.int64)
    if n > LONG:
        for i in range(n):
            s[i] = scores[order[i]]
        _neural_sort_in_spans(s, n, tau, matrix, spans, fill)
    else:
        spans[:, 0], spans[:, 1] = 0, columns
        _neural_sort(s, n, tau, distances, matrix)
    return matrix, spans, vectors, history


@compiled
def _ndcg(
    begin, end, starts, lengths, scores, gains, discounts, tau, iterations, tolerance, rows_first,
    gradient_needed, orders, value, gradient,
):  # fmt: skip
    """``Σ_r D(r) (scale(P) gains)_r`` ``[B]`` and, where needed, its gradient ``[N]``.

    ``discounts [L]`` are those of the ranks, 0 beyond the cut-off.
    """
    width = (lengths[begin:end].max() + COLUMNS - 1) // COLUMNS * COLUMNS
    kind = scores.dtype
    room = np.empty(width * width, kind)
    room_of_vectors = np.empty(14 * width, kind)
    room_of_rounds = np.empty(5 * (iterations + 2) * width, kind)
    for b in range(begin, end):
        value[b] = 0
        first, n = starts[b], lengths[b]
        if not np.any(gains[first : first + n]):
            continue
        order = _of_list(orders, first, n)
        matrix, spans, vectors, history = _prepared(
            scores[first : first + n], order, tau, room, room_of_vectors, room_of_rounds,
            iterations, False,
        )  # fmt: skip
        s, g, slopes = vectors[0], vectors[1], vectors[3]
        for i in range(n):
            g[i] = gains[first + _document(order, i)]
        u, v, dots, sums, sloped = history[0], history[1], history[2], history[3], history[4]
        rounds = _scale(
            matrix, spans, n, iterations, tolerance, rows_first, slopes, u, v, dots, sums, sloped
        )
        last_v = v[rounds + 1 if rows_first else max(rounds, 1)]
        ranked, given, of_u, of_v = vectors[4], vectors[5], vectors[6], vectors[7]
        totals = vectors[8:]
        for i in range(n):
            ranked[i] = u[rounds, i] * discounts[i]
            given[i] = last_v[i] * g[i]
        product = totals[5]
        _right(matrix, spans, given, product[: len(matrix)])
        total = 0.0
        for i in range(n):
            total += ranked[i] * product[i]
        value[b] = total
        if not gradient_needed:
            continue
        _left(matrix, spans, ranked, slopes, totals[3], totals[4])
        for i in range(n):
            of_u[i] = discounts[i] * product[i]
            of_v[i] = g[i] * totals[3, i]
            totals[0, i] = ranked[i] * product[i]
            totals[1, i] = given[i] * totals[3, i]
            totals[2, i] = given[i] * totals[4, i]
        _adjoint(
            matrix, spans, n, rounds, rows_first, slopes, u, v, dots, sums, sloped, of_u, of_v,
            totals,
        )  # fmt: skip
        # Through the softmax: the part that each row loses as a whole.
        _left(matrix, spans, totals[0], slopes, totals[3], totals[4])
        _scores_gradient(s, n, tau, totals, order, gradient[first : first + n])


@compiled
def _expectation(
    begin, end, starts, lengths, scores, weights, discounts, tau, iterations, tolerance, rows_first,
    kind, gradient_needed, orders, value, gradient,
):  # fmt: skip
    """An expectation under the scaled matrix ``[B]`` and, where needed, its gradient ``[N]``.

    ``weights [N]`` are those of the documents, ``discounts [R]`` those of the ranks; ``kind`` is
    the position of a kind in :data:`KINDS`. A pass over the ranks gives the value and, for each
    rank and each document with a weight, the derivatives with respect to the probabilities that it
    is at the rank and that it is before it; a backward pass accumulates the latter. The matrix
    stays in the cache, and each list needs only its own.
    """
    longest = lengths[begin:end].max()
    width = (longest + COLUMNS - 1) // COLUMNS * COLUMNS
    one = like(scores.dtype.type(0), 1.0)
    zero = like(one, 0.0)
    room = np.empty(width * width, scores.dtype)
    room_of_vectors = np.empty(14 * width, scores.dtype)
    room_of_rounds = np.empty(5 * (iterations + 2) * width, scores.dtype)
    place = np.empty(longest + 1, np.int64)
    documents = np.empty((8, longest), scores.dtype)
    chosen, before, p, tail = documents[0], documents[1], documents[2], documents[3]
    most = min(longest, len(discounts)) if gradient_needed else 1
    derivatives = np.empty((2, most, longest), scores.dtype)
    for b in range(begin, end):
        value[b] = 0
        first, n = starts[b], lengths[b]
        if not np.any(weights[first : first + n]):
            continue
        order = _of_list(orders, first, n)
        matrix, spans, vectors, history = _prepared(
            scores[first : first + n], order, tau, room, room_of_vectors, room_of_rounds,
            iterations, True,
        )  # fmt: skip
        m = _with_weight(weights[first : first + n], order, place)
        s, slopes, incoming = vectors[0], vectors[3], vectors[4]
        u, v, dots, sums, sloped = history[0], history[1], history[2], history[3], history[4]
        rounds = _scale(
            matrix, spans, n, iterations, tolerance, rows_first, slopes, u, v, dots, sums, sloped
        )
        last_u, last_v = u[rounds], v[rounds + 1 if rows_first else max(rounds, 1)]
        for i in range(m):
            chosen[i] = weights[first + _document(order, place[i])]
            before[i] = zero
        R = min(n, len(discounts))
        total = 0.0
        for r in range(R):
            if kind == CASCADE and r % 4 == 3 and _surely_ended(chosen, before, m):
                R = r
                break
            row, scale = matrix[r], last_u[r]
            for i in range(m):
                p[i] = row[place[i]] * scale * last_v[place[i]]
            of_p, of_before = derivatives[0, r % most], derivatives[1, r % most]
            if kind == WEIGH:
                total += _weighed(chosen, p, discounts[r], m, of_p, of_before)
            elif kind == PRECISIONS:
                total += _precisions(chosen, p, before, discounts[r], m, of_p, of_before)
            else:
                total += _cascade(
                    chosen, p, before, discounts[r], m, documents[4:], of_p, of_before
                )
            for i in range(m):
                before[i] += p[i]
        value[b] = total
        if not gradient_needed:
            continue
        of_u, of_v, totals = vectors[6], vectors[7], vectors[8:]
        tail[:m] = 0
        for r in range(R - 1, -1, -1):
            for i in range(m):
                incoming[place[i]] = derivatives[0, r, i] + tail[i]
                tail[i] += derivatives[1, r, i]
            of_u[r] = _row_of_outer(
                matrix[r], incoming, last_v, last_u[r], slopes[r], n, of_v, totals[2]
            )
        for i in range(n):
            totals[0, i] = last_u[i] * of_u[i]
            totals[1, i] = last_v[i] * of_v[i]
            totals[2, i] *= last_v[i]
        _adjoint(
            matrix, spans, n, rounds, rows_first, slopes, u, v, dots, sums, sloped, of_u, of_v,
            totals,
        )  # fmt: skip
        _left(matrix, spans, totals[0], slopes, totals[3], totals[4])
        _scores_gradient(s, n, tau, totals, order, gradient[first : first + n])


@inlined
def _with_weight(weights, order, place):
    """Columns of a list's documents whose weight is not 0, and their number."""
    n = 0
    for j in range(len(weights)):
        place[n] = j
        n += weights[_document(order, j)] != 0
    return n


@inlined
def _weighed(chosen, p, discount, m, of_p, of_before):
    """A rank's part of the sum of weights; also its derivatives for ``p`` and ``before``."""
    total = like(discount, 0.0)
    for i in range(m):
        total += chosen[i] * p[i]
        of_p[i] = discount * chosen[i]
        of_before[i] = 0
    return discount * total


@inlined
def _precisions(chosen, p, before, discount, m, of_p, of_before):
    """As :func:`_weighed`, for precisions: that of a rank times the documents at it."""
    one, zero = like(discount, 1.0), like(discount, 0.0)
    at_rank, earlier, itself = zero, zero, zero
    for i in range(m):
        share = chosen[i] * min(max(before[i], zero), one)
        at_rank += chosen[i] * p[i]
        earlier += share
        itself += chosen[i] * p[i] * share
    for i in range(m):
        weight = discount * chosen[i]
        share = chosen[i] * min(max(before[i], zero), one)
        of_p[i] = weight * (one + earlier - share)
        inside = before[i] >= zero and before[i] <= one
        of_before[i] = weight * (at_rank - chosen[i] * p[i]) if inside else zero
    return discount * (at_rank * (one + earlier) - itself)


@inlined
def _surely_ended(stops, before, m):
    """Whether later ranks change neither the cascade nor its derivatives.

    These contain products over all documents except one or two, which from here on would be
    denormal numbers, and those are slow.
    """
    one, zero = like(stops[0], 1.0), like(stops[0], 0.0)
    least = like(one, 1e-20) if is_single(one) else like(one, 1e-100)
    first, second, others = one, one, one  # two smallest factors, product of the others
    for i in range(m):
        passed = one - stops[i] * min(max(before[i], zero), one)
        largest_of_three = max(passed, second)
        second = max(min(passed, second), first)
        first = min(first, passed)
        others = max(others * largest_of_three, least)
    return others <= least


@inlined
def _cascade(stops, p, before, discount, m, room, of_p, of_before):
    """As :func:`_weighed`, for the cascade: a document ends the search here, none before it.

    A pass over the documents in each direction gives the products over all others, and their
    derivatives, without a division, because a document may be certain to end the search.
    """
    one, zero = like(discount, 1.0), like(discount, 0.0)
    passed, chance, product, reached = room[0], room[1], room[2], room[3]
    for i in range(m):
        passed[i] = one - stops[i] * min(max(before[i], zero), one)
        chance[i] = stops[i] * p[i] * discount
    all_pass, stopped = one, zero  # all documents so far; all but one that is here
    for i in range(m):
        product[i], reached[i] = all_pass, stopped
        stopped = stopped * passed[i] + chance[i] * all_pass
        all_pass *= passed[i]
    total = stopped
    all_pass, stopped = one, zero
    for i in range(m - 1, -1, -1):
        reached[i] = reached[i] * all_pass + product[i] * stopped
        product[i] *= all_pass
        stopped = stopped * passed[i] + chance[i] * all_pass
        all_pass *= passed[i]
    for i in range(m):
        of_p[i] = stops[i] * discount * product[i]
        inside = before[i] >= zero and before[i] <= one
        of_before[i] = -stops[i] * reached[i] if inside else zero
    return total


@inlined
def _row_of_outer(row, incoming, v, u, slope, n, of_v, by_slope):
    """Add a rank's part to the adjoints of v, plain and weighted by slope; return that of u."""
    total = like(u, 0.0)
    weight = u * slope
    for i in range(n):
        entry = incoming[i] * row[i]
        total += entry * v[i]
        of_v[i] += u * entry
        by_slope[i] += weight * entry
    return total


@inlined
def _scores_gradient(s, n, tau, totals, order, gradient):
    """The adjoint of the scores from that of the logits ``slope_r s_j - Σ_k |s_j - s_k| / tau``."""
    by_distance = totals[0]
    for j in range(n):
        by_distance[j] = (totals[3, j] - totals[1, j]) / tau
    if order is not None and n > LONG:
        _sorted_scores_gradient(s, n, totals, order, gradient)
        return
    one, zero = like(s[0], 1.0), like(s[0], 0.0)
    for i in range(n):
        total, own = totals[2, i] - totals[4, i], by_distance[i]
        for j in range(n):
            side = (one if s[i] > s[j] else zero) - (one if s[i] < s[j] else zero)
            total += side * (own + by_distance[j])
        gradient[i] = total


@inlined
def _sorted_scores_gradient(s, n, totals, order, gradient):
    """As :func:`_scores_gradient` for sorted scores, without a pass over pairs."""
    by_distance = totals[0]
    higher, lower = 0.0, 0.0
    for j in range(n):
        lower += by_distance[j]
    first = 0
    while first < n:
        end, equal = first + 1, float(by_distance[first])
        while end < n and s[end] == s[first]:
            equal += by_distance[end]
            end += 1
        lower -= equal
        for i in range(first, end):
            own = (n - end - first) * float(by_distance[i])
            gradient[order[i]] = totals[2, i] - totals[4, i] + own + lower - higher
        higher += equal
        first = end
