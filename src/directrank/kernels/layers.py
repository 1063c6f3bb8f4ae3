"""What compiled loops over layers have in common.

A stack's documents are ``[M, N, W]``, and its weights ``[M, in, out]``. A quantity that each layer
has is stored in one array, layer after layer. The lists of a model are divided into chunks, each of
which has its own gradient of the parameters, so that no sum depends on the number of threads. BLAS
computes the products.
"""

from __future__ import annotations

import numpy as np

from directrank.kernels.compiling import compiled, inlined


@inlined
def columns(values, before, models, width):
    """From ``values`` with one number per column, those of a layer, ``[M, width]``."""
    return values[models * before : models * (before + width)].reshape((models, width))


@inlined
def pages(values, before, models, height, width):
    """From weights or documents of all layers, those of one layer, ``[M, height, width]``."""
    begin = models * before
    return values[begin : begin + models * height * width].reshape((models, height, width))


@inlined
def matrix(numbers, height, width):
    """The first of some ``numbers`` as a matrix."""
    return numbers[: height * width].reshape((height, width))


@inlined
def gather(block, x, rows, into):
    """Copy the documents of a block of the input into ``into``.

    They are read one after the other, which is how the processor prefetches memory, whereas BLAS
    reads several at once.
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
def input_of(arrays, block, into):
    """The features of a list, copied ``into`` a matrix."""
    m, first, last = block
    result = matrix(into, last - first, arrays.x.shape[2])
    source = m if arrays.rows.shape[1] > 0 else min(m, len(arrays.x) - 1)
    gather((source, first, last), arrays.x, arrays.rows, result)
    return result


@inlined
def moments(z, mean, squares):
    """The mean of each column, and the sum of the squared distances from it.

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
def add_product(a, g, anew, part, total):
    """Add ``a.T @ g`` to ``total``, or store it there if ``anew``; ``part`` is working space."""
    if anew:
        np.dot(a.T, g, total)
        return
    np.dot(a.T, g, part)
    for i in range(total.shape[0]):
        for j in range(total.shape[1]):
            total[i, j] += part[i, j]


@inlined
def add(values, anew, total):
    """Add ``values`` to ``total``, or store them there if ``anew``."""
    for j in range(len(total)):
        total[j] = values[j] if anew else total[j] + values[j]


@compiled
def sum_of_chunks(begin, end, sizes, first, of_chunks, total):
    """Sum the gradients of the parameters from ``begin`` to ``end`` over the chunks of each model.

    ``sizes`` is int64 ``[parameters, 2]``: how many numbers of a model come before those of the
    parameter, and how many it has. ``first`` is as in the :class:`Arrays`.
    """
    models = len(first) - 1
    for number in range(begin, end):
        before, size = sizes[number]
        parts = columns(of_chunks, before, first[models], size)
        result = columns(total, before, models, size)
        for m in range(models):
            for chunk in range(first[m], first[m + 1]):
                add(parts[chunk], chunk == first[m], result[m])
