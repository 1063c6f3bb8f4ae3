"""The work of :mod:`.blocks` as compiled loops over blocks of documents.

A block is a row of ``items``: its model m, its first document, and the one after its last. Arrays:
documents ``[M, N, W]``, one number per column ``[M, W]``, sums of each block's documents
``[blocks, W]``, weights ``[M, in, out]``. Each kernel works the blocks of the ``runs`` from
``begin`` to ``end``. Products are BLAS's.

The input is ``x`` ``[M, N, W]`` where ``rows`` is ``[M, 0]``; else ``x`` is ``[1, T, W]``, and
``rows`` ``[M, N]`` says which of its rows each document is.
"""

from __future__ import annotations

import numpy as np

from directrank.relaxations._compiled import compiled, inlined

#: Documents of a block, at most.
BLOCK = 512


@inlined
def taken(block, x, rows, into):
    """The documents of a block of the input.

    One after the other, which is how memory is read ahead: BLAS goes through several at once.
    """
    m, first, last = block
    for i in range(last - first):
        if rows.shape[1] == 0:
            for j in range(x.shape[2]):
                into[i, j] = x[m, first + i, j]
        else:
            row = rows[m, first + i]
            for j in range(x.shape[2]):
                into[i, j] = x[0, row, j]


@inlined
def moments(z, mean, squares):
    """The mean of each column and the sum of its squared distances from it.

    Documents are taken four at a time, so that sums are stored less often.
    """
    n, W = z.shape
    fours = n - n % 4
    mean[:] = 0
    squares[:] = 0
    for i in range(0, fours, 4):
        for j in range(W):
            mean[j] += (z[i, j] + z[i + 1, j]) + (z[i + 2, j] + z[i + 3, j])
    for i in range(fours, n):
        for j in range(W):
            mean[j] += z[i, j]
    for j in range(W):
        mean[j] /= n
    for i in range(0, fours, 4):
        for j in range(W):
            a = z[i, j] - mean[j]
            b = z[i + 1, j] - mean[j]
            c = z[i + 2, j] - mean[j]
            d = z[i + 3, j] - mean[j]
            squares[j] += (a * a + b * b) + (c * c + d * d)
    for i in range(fours, n):
        for j in range(W):
            a = z[i, j] - mean[j]
            squares[j] += a * a


@inlined
def normed(z, scale, shift, a):
    """``a = z · scale + shift``."""
    for i in range(z.shape[0]):
        for j in range(z.shape[1]):
            a[i, j] = z[i, j] * scale[j] + shift[j]


@inlined
def activated(z, scale, shift, a):
    """``a = relu(z · scale + shift)``; NaN stays NaN."""
    zero = a.dtype.type(0)
    for i in range(z.shape[0]):
        for j in range(z.shape[1]):
            value = z[i, j] * scale[j] + shift[j]
            a[i, j] = zero if value < zero else value


@inlined
def before_norm(block, slopes, z, mean, scale, along, offset, result):
    """From a block's slopes behind a norm those before it.

    They are ``scale · slopes - offset - along (z - mean)``.
    """
    m, first, last = block
    own, at = slopes[m][first:last], z[m][first:last]
    for i in range(last - first):
        for j in range(z.shape[2]):
            result[i, j] = (
                scale[m, j] * own[i, j] - offset[m, j] - along[m, j] * (at[i, j] - mean[m, j])
            )


@inlined
def before_relu(slopes, a, z, mean, to_shift, to_scale):
    """Take out of ``slopes`` what the ReLU with the values ``a`` did not let through.

    ``to_shift`` is the sum of what is left, ``to_scale`` its sum times ``z - mean``.
    """
    zero = a.dtype.type(0)
    to_shift[:] = 0
    to_scale[:] = 0
    for i in range(z.shape[0]):
        for j in range(z.shape[1]):
            slope = zero if a[i, j] <= zero else slopes[i, j]
            slopes[i, j] = slope
            to_shift[j] += slope
            to_scale[j] += slope * (z[i, j] - mean[j])


@compiled
def norm(
    items, counts, means, squares, weight, bias, epsilon, mean, variance, inverse, scale, shift
):
    """A norm's statistics and what they make of it, from the moments of its blocks.

    ``inverse`` is one over the standard deviation, ``z · scale + shift`` the norm. Means of blocks
    (Chan et al., 1979) do not lose the digits that sums of squares do.
    """
    M, W = mean.shape
    total = np.zeros((M, W))
    spread = np.zeros((M, W))
    for item in range(len(items)):
        m, first, last = items[item]
        for j in range(W):
            total[m, j] += (last - first) * np.float64(means[item, j])
    for item in range(len(items)):
        m, first, last = items[item]
        for j in range(W):
            apart = means[item, j] - total[m, j] / counts[m]
            spread[m, j] += squares[item, j] + (last - first) * apart * apart
    for m in range(M):
        for j in range(W):
            centre, square = total[m, j] / counts[m], spread[m, j] / counts[m]
            over = 1 / np.sqrt(square + epsilon)
            mean[m, j], variance[m, j], inverse[m, j] = centre, square, over
            scale[m, j] = weight[m, j] * over
            shift[m, j] = bias[m, j] - centre * weight[m, j] * over


@compiled
def norm_slopes(items, counts, parts, scale, inverse, to_weight, to_bias, along, offset):
    """The slopes of a norm's weight and bias from the sums that :func:`before_relu` leaves.

    ``along`` and ``offset`` are what :func:`before_norm` needs.
    """
    M, W = scale.shape
    sums = np.zeros((2, M, W))
    for item in range(len(items)):
        m = items[item, 0]
        for j in range(W):
            sums[0, m, j] += parts[0, item, j]
            sums[1, m, j] += parts[1, item, j]
    for m in range(M):
        for j in range(W):
            to_bias[m, j] = sums[0, m, j]
            to_weight[m, j] = sums[1, m, j] * inverse[m, j]
            offset[m, j] = scale[m, j] * sums[0, m, j] / counts[m]
            along[m, j] = scale[m, j] * inverse[m, j] * to_weight[m, j] / counts[m]


@compiled
def sum_of_runs(begin, end, values, first, total):
    """Sums over each model's runs: of ``values`` ``[runs, n]`` into ``total`` ``[M, n]``.

    Of the columns from ``begin`` to ``end``.
    """
    for m in range(len(first)):
        last = first[m + 1] if m + 1 < len(first) else len(values)
        total[m, begin:end] = values[first[m], begin:end]
        for run in range(first[m] + 1, last):
            total[m, begin:end] += values[run, begin:end]


@compiled
def input_moments(begin, end, runs, items, x, rows, means, squares):
    """The moments of each block of the input."""
    scratch = np.empty((BLOCK, x.shape[2]), means.dtype)
    for item in range(runs[begin, 0], runs[end - 1, 1]):
        _, first, last = items[item]
        own = scratch[: last - first]
        taken(items[item], x, rows, own)
        moments(own, means[item], squares[item])


@compiled
def first_product(begin, end, runs, items, x, rows, scale, shift, weight, z, means, squares):
    """``z = x @ weight`` of the input, and the moments of its blocks.

    Where ``scale`` is not empty, of the input's norm.
    """
    scratch = np.empty((2, BLOCK, x.shape[2]), z.dtype)
    for item in range(runs[begin, 0], runs[end - 1, 1]):
        m, first, last = items[item]
        own, made = scratch[0, : last - first], z[m][first:last]
        taken(items[item], x, rows, own)
        if scale.shape[1] > 0:
            behind = scratch[1, : last - first]
            normed(own, scale[m], shift[m], behind)
            own = behind
        np.dot(own, weight[m], made)
        moments(made, means[item], squares[item])


@compiled
def product(begin, end, runs, items, x, scale, shift, weight, z, means, squares):
    """``z = relu(x · scale + shift) @ weight``, and the moments of its blocks."""
    scratch = np.empty((BLOCK, x.shape[2]), x.dtype)
    for item in range(runs[begin, 0], runs[end - 1, 1]):
        m, first, last = items[item]
        a, made = scratch[: last - first], z[m][first:last]
        activated(x[m][first:last], scale[m], shift[m], a)
        np.dot(a, weight[m], made)
        moments(made, means[item], squares[item])


@compiled
def output(begin, end, runs, items, z, scale, shift, y):
    """``y = relu(z · scale + shift)``."""
    for item in range(runs[begin, 0], runs[end - 1, 1]):
        m, first, last = items[item]
        activated(z[m][first:last], scale[m], shift[m], y[m][first:last])


@compiled
def through_output(begin, end, runs, items, slopes, z, mean, scale, shift, to_shift, to_scale):
    """Slopes behind :func:`output` become those behind the norm; the sums of their blocks."""
    scratch = np.empty((BLOCK, z.shape[2]), z.dtype)
    for item in range(runs[begin, 0], runs[end - 1, 1]):
        m, first, last = items[item]
        a, own = scratch[: last - first], z[m][first:last]
        activated(own, scale[m], shift[m], a)
        before_relu(slopes[m][first:last], a, own, mean[m], to_shift[item], to_scale[item])


@compiled
def through_product(
    begin,
    end,
    runs,
    items,
    behind,
    z,
    z_mean,
    z_scale,
    along,
    offset,
    x,
    mean,
    scale,
    shift,
    weight,
    to_weight,
    slopes,
    to_shift,
    to_scale,
):
    """Back through the norm of ``z`` and through :func:`product`, which made it of activations.

    From the slopes ``behind`` that norm come those behind the norm of ``x``, the sums of their
    blocks, and each run's part of the weights' gradient.
    """
    of_z = np.empty((BLOCK, z.shape[2]), z.dtype)
    of_x = np.empty((BLOCK, x.shape[2]), x.dtype)
    part = np.empty(to_weight.shape[1:], z.dtype)
    for run in range(begin, end):
        to_weight[run] = 0
        for item in range(runs[run, 0], runs[run, 1]):
            m, first, last = items[item]
            g, a = of_z[: last - first], of_x[: last - first]
            own, made = x[m][first:last], slopes[m][first:last]
            before_norm(items[item], behind, z, z_mean, z_scale, along, offset, g)
            activated(own, scale[m], shift[m], a)
            np.dot(a.T, g, part)
            to_weight[run] += part
            np.dot(g, weight[m].T, made)
            before_relu(made, a, own, mean[m], to_shift[item], to_scale[item])


@compiled
def through_input(
    begin, end, runs, items, behind, z, z_mean, z_scale, along, offset, x, rows, mean, to_weight
):
    """Back through the norm of ``z`` and through :func:`first_product`, which made it.

    Gives each run's part of ``x.T @ slopes``; of an input that is normed, which has a ``mean``,
    with ``x - mean``.
    """
    of_z = np.empty((BLOCK, z.shape[2]), z.dtype)
    of_x = np.empty((2, BLOCK, x.shape[2]), z.dtype)
    part = np.empty(to_weight.shape[1:], z.dtype)
    for run in range(begin, end):
        to_weight[run] = 0
        for item in range(runs[run, 0], runs[run, 1]):
            m, first, last = items[item]
            g, own = of_z[: last - first], of_x[0, : last - first]
            before_norm(items[item], behind, z, z_mean, z_scale, along, offset, g)
            taken(items[item], x, rows, own)
            if mean.shape[1] > 0:
                centred = of_x[1, : last - first]
                for i in range(last - first):
                    for j in range(x.shape[2]):
                        centred[i, j] = own[i, j] - mean[m, j]
                own = centred
            np.dot(own.T, g, part)
            to_weight[run] += part
